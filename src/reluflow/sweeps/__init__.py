"""Sweeps: many computations, planned as data, executed on workers, kept in a store.

`Plan` lists `Point`, `execute` computes what a `Store` lacks, and the store gives back `Result`.
"""

from reluflow.interrupts import Interrupted
from reluflow.sweeps.execute import Summary, execute
from reluflow.sweeps.limits import Limits
from reluflow.sweeps.outcome import Result
from reluflow.sweeps.plan import Plan
from reluflow.sweeps.point import Point, derived_seed, seeded
from reluflow.sweeps.security import Certificates
from reluflow.sweeps.store import Store
from reluflow.sweeps.tables import columns, load
from reluflow.sweeps.tasks import allow

__all__ = [
    "Certificates",
    "Interrupted",
    "Limits",
    "Plan",
    "Point",
    "Result",
    "Store",
    "Summary",
    "allow",
    "columns",
    "derived_seed",
    "execute",
    "load",
    "seeded",
]
