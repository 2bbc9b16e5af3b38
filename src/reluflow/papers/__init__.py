"""Papers: the content, all laid out alike; a paper of your own is registered beside them.

``register(paper)`` makes a paper of a notebook known, ``names()`` lists all, ``named(name)`` finds
one. Installed distributions announce theirs in the entry-point group ``reluflow.papers``.
"""

from reluflow.theory.registry import forget, names, register
from reluflow.theory.registry import paper_named as named

__all__ = ["forget", "named", "names", "register"]
