"""Somebody who tries to run code at ports that are not theirs: ``stranger.py PORT...``.

Becomes another user if it can, and has no certificates but some of its own. Prints a line for each
way that was tried.
"""

import asyncio
import logging
import os
import sys
import urllib.request

from distributed import Security
from distributed.comm import connect

WAIT_S = 3.0
NOBODY = 65534


def as_peer(address, security):
    """Ask a scheduler, worker or nanny who it is: those who may ask this may run code there."""

    async def ask():
        comm = await connect(address, timeout=WAIT_S, **security.get_connection_args("client"))
        await comm.write({"op": "identity", "reply": True})
        answer = await comm.read()
        comm.abort()
        return answer["type"]

    return asyncio.run(asyncio.wait_for(ask(), 2 * WAIT_S))


def as_reader(address, security):
    """Read a dashboard."""
    host = address.partition("://")[2]
    with urllib.request.urlopen(f"http://{host}/health", timeout=WAIT_S) as page:
        return page.read()


if __name__ == "__main__":
    logging.disable()
    ways = [("tcp", Security()), ("tls", Security.temporary())]
    if os.getuid() == 0:  # after the imports: the other user may not read this interpreter
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    for port in sys.argv[1:]:
        for scheme, security in ways:
            for attempt in (as_peer, as_reader):
                try:
                    attempt(f"{scheme}://127.0.0.1:{port}", security)
                except Exception as error:
                    print(port, attempt.__name__, scheme, "refused", type(error).__name__)
                else:
                    print(port, attempt.__name__, scheme, "IN")
    print("user", os.getuid(), "tried", len(sys.argv) - 1)
