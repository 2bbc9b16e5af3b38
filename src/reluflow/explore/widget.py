"""The notebook widget: the page of the explorer in a cell, its messages through the kernel."""

from __future__ import annotations

from typing import Any

from reluflow.errors import MissingExtraError
from reluflow.explore import bundle
from reluflow.explore.session import Session
from reluflow.explore.state import State, from_json, to_json


def make(first: State) -> Any:
    """A widget that explores, beginning with a state."""
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise MissingExtraError(
            "the notebook explorer needs anywidget. Install it with: pip install "
            "'reluflow[notebook]', or use `reluflow explore` in a terminal."
        ) from None

    class Explorer(anywidget.AnyWidget):  # type: ignore[misc]
        """The explorer; ``state`` is what is explored now, ``close()`` ends its process."""

        _esm = bundle.bundle("notebook.js") + "\nexport default widgetModule;\n"
        _css = bundle.read("style.css")
        _state = traitlets.Dict(to_json(first)).tag(sync=True)

        def __init__(self) -> None:
            super().__init__()
            self._session = Session(self._tell, first)
            self.on_msg(self._hear)

        @property
        def state(self) -> State:
            """What is explored now: its data, network and settings."""
            return from_json(self._state)

        def _tell(self, frame: bytes) -> None:
            self.send({}, buffers=[frame])

        def _hear(self, widget: Any, content: Any, buffers: Any) -> None:
            self._session.receive(str(content.get("text", "")))

        def close(self) -> None:
            """End the explorer and its process."""
            self._session.close()
            super().close()

    return Explorer()
