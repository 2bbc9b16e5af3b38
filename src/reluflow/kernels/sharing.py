"""Who compiles what: kernels have parts in common, and each worker has to compile its own."""

from __future__ import annotations

from collections.abc import Iterable

from reluflow.kernels.entered import Entry


class Shares:
    """Kernels to be shared out among workers: each is given what others have least of.

    Examples
    --------
    >>> whole = Entry("m", "whole", b"", frozenset({("m.long", 5), ("m.short", 2)}))
    >>> half = Entry("m", "half", b"", frozenset({("m.long", 5)}))
    >>> other = Entry("m", "other", b"", frozenset({("m.other", 3)}))
    >>> shares = Shares([half, other, whole], 2)
    >>> [shares.next(worker).name for worker in (0, 1, 0)]
    ['whole', 'other', 'half']
    """

    def __init__(self, kernels: Iterable[Entry], workers: int) -> None:
        self._left = list(kernels)
        self._compiled: list[frozenset[tuple[str, int]]] = [frozenset()] * workers

    def next(self, worker: int) -> Entry | None:
        """The kernel that a worker is to compile now; None if none is left."""
        if not self._left:
            return None
        own = self._compiled[worker]
        others = frozenset().union(*self._compiled) - own

        def gain(kernel: Entry) -> tuple[int, int]:
            """Code that is new to all, less that which is compiled again; then its length."""
            again = _size(kernel.parts & others)
            return _size(kernel.parts - own) - 2 * again, _size(kernel.parts)

        chosen = max(self._left, key=gain)
        self._left.remove(chosen)
        self._compiled[worker] = own | chosen.parts
        return chosen


def _size(parts: Iterable[tuple[str, int]]) -> int:
    return sum(size for _, size in parts)
