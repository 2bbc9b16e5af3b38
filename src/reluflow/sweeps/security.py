"""Who may give work to workers: those who hold the key, and nobody else.

Whoever can talk to a scheduler or to a worker of Dask can run any code there. So the workers of
this machine speak TLS with a key made for one sweep, which never touches a disk that others read,
and the web servers that Dask starts beside them are closed. A cluster of others is reached with
the certificates of the caller.
"""

from __future__ import annotations

import ssl
import warnings
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

from reluflow.errors import InputError, MissingExtraError, ReluflowWarning

PRELOAD = __name__  # Dask imports it and calls `dask_setup`
CLOSED: dict[str, list[str]] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


@dataclass(frozen=True)
class Certificates:
    """The files, in PEM format, with which a cluster at a ``tls://`` address is entered.

    Parameters
    ----------
    ca : path
        Certificate of the authority that signed those of the cluster.
    cert, key : path
        Certificate and private key of the caller.
    """

    ca: str | PathLike[str]
    cert: str | PathLike[str]
    key: str | PathLike[str]

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            path = Path(getattr(self, name))
            if not path.is_file():
                raise InputError(f"the certificate file `{name}` is {path}, which does not exist.")


def temporary() -> Any:
    """Keys of one sweep, in memory."""
    from distributed import Security

    try:
        return Security.temporary()
    except ImportError:
        raise MissingExtraError(
            "workers need the package cryptography: without it any user of this machine could run "
            "code as you. Install it with: pip install 'reluflow[sweep]', or compute in this "
            "process with workers=0 (--workers 0)."
        ) from None


def dask_setup(server: Any) -> None:
    """Close the web server of a scheduler or worker; Dask calls this when it starts."""
    server.http_server.stop()


def of_caller(address: str, certificates: Certificates | None) -> Any:
    """What opens a connection to ``address``: the files given, or those of Dask's configuration."""
    from distributed import Security

    is_tls = address.startswith(("tls://", "wss://"))
    if certificates is not None and not is_tls:
        raise InputError(
            f"`cluster` is {address!r}, where certificates have no effect. Use an address that "
            "starts with tls://, and start the scheduler with certificates."
        )
    if not is_tls:
        warnings.warn(
            f"the scheduler at {address} takes work from anybody who can reach it, and so does "
            "each of its workers. Use certificates and tls:// (docs/sweeps.md), unless nobody else "
            "can reach them.",
            ReluflowWarning,
            stacklevel=2,
        )
        return Security()
    try:
        security = Security() if certificates is None else _security(certificates)
        context = security.get_connection_args("client")["ssl_context"]
    except (OSError, ssl.SSLError, ValueError) as error:
        raise InputError(
            f"the certificates cannot be used ({error}). Give PEM files that belong together."
        ) from None
    if context is None:
        raise InputError(
            f"`cluster` is {address!r}, which needs certificates. Give them with --tls-ca, "
            "--tls-cert and --tls-key (certificates=Certificates(...)), or in Dask's configuration."
        )
    return security


def _security(certificates: Certificates) -> Any:
    from distributed import Security

    return Security(
        require_encryption=True,
        tls_ca_file=str(certificates.ca),
        tls_client_cert=str(certificates.cert),
        tls_client_key=str(certificates.key),
    )
