"""`reluflow.explore`: the notebook's door to the explorer; it loads nothing heavy unless called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.network import Network
from reluflow.trajectory import Trajectory

if TYPE_CHECKING:
    from reluflow.explore.state import State


def explore(data: Dataset | Trajectory | None = None, net: Network | None = None) -> Any:
    """Open the explorer in a notebook: drag points and neurons, and the exact flow follows.

    Parameters
    ----------
    data : Dataset or Trajectory, optional
        The points, at most 40; or a run of `reluflow.flow`, with its network, loss and tolerance.
        Six points on a line if not given.
    net : Network, optional
        Where training starts, at most 400 neurons; 50 balanced ones if not given.

    Returns
    -------
    widget
        Shown by the notebook; ``widget.state`` is what is explored now. It needs the extra
        ``reluflow[notebook]``. Outside a notebook use ``reluflow explore``.
    """
    from reluflow.explore.widget import make

    return make(state_of(data, net))


def state_of(data: Any = None, net: Any = None) -> State:
    """The state that values describe."""
    from reluflow.explore import documents, presets
    from reluflow.explore.state import of_values

    if data is None and net is None:
        return presets.first()
    if isinstance(data, Trajectory) and net is None:
        if data.engine != "flow":
            raise InputError(
                f"the run is of {data.engine}; the explorer shows the flow. Pass its data and its "
                "network instead."
            )
        return documents.from_run(data)
    if not isinstance(data, Dataset) or not (net is None or isinstance(net, Network)):
        raise InputError(
            f"explore got {type(data).__name__} and {type(net).__name__}. Pass a Dataset and, if "
            "you like, a Network, or a run of rf.flow."
        )
    return of_values(data, net)
