"""reluflow: a laboratory for the training dynamics and implicit bias of two-layer ReLU networks.

Importing it loads NumPy only; engines, solvers and plots load what they need when called.
"""

from reluflow import datasets, densities, errors, geometry, interpolators, limits, losses, networks
from reluflow._version import __version__
from reluflow.dataset import Dataset
from reluflow.engines import LossBased, descend, flow
from reluflow.network import Network
from reluflow.trajectory import Status, Trajectory, load

__all__ = [
    "Dataset",
    "LossBased",
    "Network",
    "Status",
    "Trajectory",
    "__version__",
    "datasets",
    "densities",
    "descend",
    "errors",
    "flow",
    "geometry",
    "interpolators",
    "limits",
    "load",
    "losses",
    "networks",
]
