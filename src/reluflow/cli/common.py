"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path, typer.Option("--out", help="Folder of the results.")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Replaces the seed.")]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=0, help="Processes; 0 computes in this one. Default: all cores."),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="A Dask scheduler, such as tls://host:8786."),
]
Json = Annotated[bool, typer.Option("--json", help="Print plain data instead of tables.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Compute everything again; reuse nothing.")]
TlsCa = Annotated[
    Path | None, typer.Option("--tls-ca", help="Certificate of the cluster's authority (PEM).")
]
TlsCert = Annotated[Path | None, typer.Option("--tls-cert", help="Your certificate (PEM).")]
TlsKey = Annotated[Path | None, typer.Option("--tls-key", help="Your private key (PEM).")]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Compute failed points once more.")
]
