"""Stale kernels are forgotten: numba's cache on disk does not see changes in imported modules.

A kernel's cache entry is dated by the file that holds the kernel. The kernels it calls are compiled
into it, so after an edit of *their* file alone the old code would still run. Here the sources of
all kernels are hashed together; when the hash is not the one noted beside the cache, the index
files of the cache are removed, and numba compiles again.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

STAMP = "kernels.sha256"


def forget_stale(folder: Path) -> bool:
    """Remove the cache indices of the modules in ``folder`` if any source changed; say whether.

    Nothing else is touched. A folder that cannot be written is left alone: numba then caches
    elsewhere, and an installed package changes all its files at once.
    """
    sources = sorted(folder.glob("*.py"))
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    cache = folder / "__pycache__"
    stamp = cache / STAMP
    try:
        if stamp.exists() and stamp.read_text() == digest.hexdigest():
            return False
        cache.mkdir(exist_ok=True)
        for source in sources:
            for index in cache.glob(f"{source.stem}.*.nbi"):
                index.unlink(missing_ok=True)
        aside = cache / f"{STAMP}.{os.getpid()}"
        aside.write_text(digest.hexdigest())
        os.replace(aside, stamp)
    except OSError:
        return False
    return True


forget_stale(Path(__file__).parent)
