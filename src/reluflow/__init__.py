"""reluflow: a laboratory for the training dynamics and implicit bias of two-layer ReLU networks.

Importing it loads NumPy only; engines, solvers and plots load what they need when called, and the
packages of predictions and measurements are loaded when first named.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reluflow import datasets, densities, errors, losses, networks
from reluflow._version import __version__
from reluflow.dataset import Dataset
from reluflow.engines import Batches, LossBased, batch_of, descend, flow
from reluflow.errors import InputError
from reluflow.explore.entry import explore
from reluflow.network import Network
from reluflow.trajectory import Mode, Status, Trajectory, load

if TYPE_CHECKING:
    from reluflow import figures, geometry, interpolators, limits, papers, plot, sweeps, theory
    from reluflow.theory import Paper, Reference

__all__ = [
    "Batches",
    "Dataset",
    "InputError",
    "LossBased",
    "Mode",
    "Network",
    "Paper",
    "Reference",
    "Status",
    "Trajectory",
    "__version__",
    "batch_of",
    "datasets",
    "densities",
    "descend",
    "errors",
    "explore",
    "figures",
    "flow",
    "geometry",
    "interpolators",
    "limits",
    "load",
    "losses",
    "networks",
    "papers",
    "plot",
    "sweeps",
    "theory",
]

_WHEN_NAMED = (
    *("figures", "geometry", "interpolators", "limits", "papers", "plot", "sweeps", "theory"),
)


def __getattr__(name: str) -> Any:
    """Load a package of `_WHEN_NAMED` (PEP 562): it keeps the import of reluflow short."""
    if name in _WHEN_NAMED:
        return import_module(f"reluflow.{name}")
    if name in ("Paper", "Reference"):
        return getattr(import_module("reluflow.theory"), name)
    raise AttributeError(f"module 'reluflow' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
