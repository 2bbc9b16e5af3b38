"""Writes the damaged and foreign ``.rf`` files of ``tests/data/bad``.

Run it after a change of the file format: ``python tests/data/make_bad_files.py``. What each file
must be refused with is in ``bad/expected.toml``.
"""

import hashlib
import io
import json
import os
import pickle
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from reluflow import Dataset, Network, Status, Trajectory, files, losses

FOLDER = Path(__file__).parent / "bad"


def a_network() -> Network:
    return Network([1.0, -1.0], [[1.0, 0.5], [-0.5, 1.0]], log_scale=-1e6)


def a_run() -> Trajectory:
    net = a_network()
    return Trajectory(
        engine="descent",
        data=Dataset(np.eye(2), [1.0, -1.0], name="toy"),
        net=net,
        loss_function=losses.Square(),
        t=np.array([0.0, 1.0]),
        log_t=np.array([-np.inf, 0.0]),
        log_loss=np.log([0.5, 0.5]),
        kept={name: np.stack([array, array]) for name, array in net.to_arrays().items()}
        | {
            "moved": np.zeros((2, 2), bool),
            "exponent": np.zeros((2, 2), np.int64),
            "least": np.array([-0.5, -0.6]),
        },
        final=net,
        status=Status.STEPS,
        stats={"form": "weights", "iterations": 1, "final_log_loss": -0.6},
        options={"lr": 0.1, "alpha": None, "steps": 1.0, "train": "both"},
    )


def encoded(run: Trajectory) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        run.save(Path(folder) / "run.rf")
        return (Path(folder) / "run.rf").read_bytes()


def changed(fields=None, arrays=None, drop=()) -> bytes:
    """A run with parts replaced, whole and rightly sealed."""
    manifest, stored = files.decode(encoded(a_run()), None, "run")
    new_fields = {**manifest["fields"], **(fields or {})}
    new_arrays = {**stored, **(arrays or {})}
    for name in drop:
        new_fields.pop(name, None)
        new_arrays.pop(name, None)
    return files.encode("trajectory", new_fields, new_arrays)


def sealed(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """A ZIP whose whole-file checksum is right."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, body in members.items():
            archive.writestr(zipfile.ZipInfo(name), body, compress_type=method)
        archive.comment = b"0" * 64
    raw = buffer.getvalue()[:-64]
    return raw + hashlib.sha256(raw).hexdigest().encode()


def manifested(members: dict[str, bytes], **changes: object) -> bytes:
    """Members with a manifest whose checksums are right."""
    manifest = {
        "format": "reluflow",
        "format_version": 1,
        "kind": "trajectory",
        "fields": {},
        "sha256": {name: hashlib.sha256(body).hexdigest() for name, body in members.items()},
        **changes,
    }
    return sealed({"manifest.json": json.dumps(manifest).encode(), **members})


def npy(array: object, **options: bool) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), **options)
    return buffer.getvalue()


def promising(shape: str) -> bytes:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


class Payload:
    """Would make a folder if it were ever unpickled."""

    def __reduce__(self):
        return os.mkdir, ("canary-ran",)


def flipped(raw: bytes, position: int) -> bytes:
    return raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]


def cases() -> dict[str, bytes]:
    run = encoded(a_run())
    network = files.encode("network", {}, a_network().to_arrays())
    npz = io.BytesIO()
    np.savez(npz, X=np.eye(2))
    one = npy([1.0])
    return {
        "run_empty": b"",
        "run_text": b"this is no run\n",
        "run_npz": npz.getvalue(),
        "run_npy": one,
        "run_pickle": pickle.dumps(Payload()),
        "run_cut": run[: len(run) // 2],
        "run_cut_by_one": run[:-1],
        "run_longer": run + b"\0",
        "run_flipped_first_byte": flipped(run, 0),
        "run_flipped_in_array": flipped(run, len(run) // 3),
        "run_flipped_in_directory": flipped(run, len(run) - 200),
        "run_flipped_in_checksum": flipped(run, len(run) - 1),
        "run_is_a_network": network,
        "run_without_manifest": sealed({"a.npy": one}),
        "run_manifest_not_json": sealed({"manifest.json": b"{"}),
        "run_manifest_foreign": sealed({"manifest.json": b'{"format": "other"}'}),
        "run_newer_format": manifested({}, format_version=99),
        "run_member_not_listed": manifested({"a.npy": one}, sha256={}),
        "run_member_checksum_wrong": manifested({"a.npy": one}, sha256={"a.npy": "0" * 64}),
        "run_name_leaves_folder": manifested({"../a.npy": one}),
        "run_name_absolute": manifested({"/tmp/a.npy": one}),
        "run_compressed": sealed(
            {"manifest.json": b"{}", "a.npy": b"\0" * 10**6}, zipfile.ZIP_DEFLATED
        ),
        "run_object_array": manifested({"a.npy": npy([Payload()], allow_pickle=True)}),
        "run_promises_too_much": manifested({"a.npy": promising("(1000000000000,)")}),
        "run_negative_shape": manifested({"a.npy": promising("(-1,)")}),
        "run_member_not_an_array": manifested({"a.npy": b"hello"}),
        "run_status_unknown": changed(fields={"status": "splendid"}),
        "run_engine_unknown": changed(fields={"engine": "magic"}),
        "run_loss_unknown": changed(fields={"loss": {"name": "hinge"}}),
        "run_fields_missing": changed(drop=("status",)),
        "run_data_missing": changed(drop=("data.X",)),
        "run_data_nan": changed(arrays={"data.X": np.full((2, 2), np.nan)}),
        "run_records_uneven": changed(arrays={"t": np.zeros(5)}),
        "run_events_foreign": changed(arrays={"events": np.zeros(2)}),
        "run_states_too_wide": changed(arrays={"states.W": np.ones((2, 2, 9))}),
        "run_states_missing": changed(drop=("states.exponent",)),
        "run_states_infinite": changed(arrays={"states.a": np.full((2, 2), np.inf)}),
        "run_states_other_type": changed(arrays={"states.moved": np.ones((2, 2))}),
        "run_times_fall": changed(arrays={"t": np.array([1.0, 0.0])}),
        "run_times_and_logs_differ": changed(arrays={"t": np.array([0.0, 7.0])}),
        "run_option_missing": changed(fields={"options": {"train": "both"}}),
        "run_option_unknown": changed(fields={"options": {"train": "most"}}),
        "run_form_unknown": changed(fields={"stats": {"form": "\x1b[31mred"}}),
        "run_iterations_float": changed(
            fields={"stats": {"form": "weights", "iterations": 1.0, "final_log_loss": 0.0}}
        ),
        "run_version_true": manifested({}, format_version=True),
        "run_version_float": manifested({}, format_version=1.0),
        "run_kind_with_escapes": manifested({}, kind="\x1b]0;title\x07"),
        "network_empty": b"",
        "network_damaged": flipped(network, len(network) // 2),
        "network_is_a_run": run,
        "network_without_weights": files.encode("network", {}, {"a": np.ones(2)}),
        "network_width_zero": files.encode(
            "network",
            {},
            {
                "a": np.empty(0),
                "W": np.empty((0, 2)),
                "log_scale": np.empty(0),
                "log_scale_out": np.empty(0),
            },
        ),
        "network_nan": files.encode(
            "network", {}, {**a_network().to_arrays(), "a": np.array([np.nan, 1.0])}
        ),
        "network_text": files.encode(
            "network", {}, {**a_network().to_arrays(), "a": np.array(["x", "y"])}
        ),
        "network_other_inputs": files.encode(
            "network", {}, Network([1.0], [[1.0, 2.0, 3.0]]).to_arrays()
        ),
    }


def main() -> None:
    for name, body in cases().items():
        (FOLDER / f"{name}.rf").write_bytes(body)


if __name__ == "__main__":
    main()
