"""A folder of arrays and a record of them in JSON: written whole or not at all, and checked when read."""

import contextlib
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import numpy as np

__all__ = ["Folder"]


@dataclass(frozen=True)
class Folder:
    """An open format: `<name>.npy` for each array, without pickles, and `<kind>.json`.

    The record names the format, its version, that of the package, and for each file shape, dtype and SHA-256;
    its own SHA-256, of the rest of it with sorted keys, comes last.

    Parameters
    ----------
    kind
        What lies in it, such as "posterior".
    version
        Version of the format: a reader takes its own and those before.
    """

    kind: str
    version: int

    @property
    def record_name(self) -> str:
        """Name of the record's file."""
        return f"{self.kind}.json"

    @property
    def format(self) -> str:
        """Name of the format."""
        return f"widebnn {self.kind}"

    def write(
        self, path: Path, record: Mapping[str, Any], arrays: Mapping[str, np.ndarray], overwrite: bool
    ) -> None:
        """Write all of it aside, and move it into place.

        Raises
        ------
        FileExistsError
            If something is there that may not be replaced.
        OSError
            If it cannot be written; what was there before is left as it was.
        """
        path = path.resolve()
        self._check_place(path, overwrite)
        aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            aside.mkdir(parents=True)
            files = {f"{name}.npy": _write_array(aside / f"{name}.npy", x) for name, x in arrays.items()}
            whole = {"format": self.format, "version": self.version, "widebnn": version("widebnn")}
            whole |= dict(record) | {"files": files}
            whole["sha256"] = _digest(whole)
            with (aside / self.record_name).open("wb") as file:
                file.write(json.dumps(whole, indent=1).encode() + b"\n")
                _flush(file)
            _move(aside, path)
        except OSError as error:
            reason = f"{self.kind} could not be written, and nothing was changed: {error}"
            raise OSError(error.errno, reason, str(path)) from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def read(self, path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The record, and by name the arrays, mapped from disk.

        Raises
        ------
        FileNotFoundError
            If the folder or a file is missing.
        ValueError
            If it holds something else, a newer format, or was damaged.
        """
        path = path.resolve()
        record = self._record(path)
        return record, {
            name.removesuffix(".npy"): _read_array(path / name, wanted)
            for name, wanted in record["files"].items()
        }

    def _record(self, path: Path) -> dict[str, Any]:
        file = path / self.record_name
        if not path.is_dir():
            raise FileNotFoundError(f"folder must be one with a {self.record_name}; there is none at {path}")
        if not file.is_file():
            raise FileNotFoundError(f"folder must hold a {self.record_name}; {path} has none")
        try:
            record = json.loads(file.read_bytes())
        except ValueError as error:
            raise ValueError(f"{file} is damaged, or none of this package: {error}") from error
        if not isinstance(record, dict) or record.get("format") != self.format:
            found = record.get("format") if isinstance(record, dict) else record
            raise ValueError(f"{file} must have the format {self.format!r}; got {found!r}")
        if not isinstance(number := record.get("version"), int) or number > self.version:
            raise ValueError(
                f"{file} must have version {self.version} of the format or one before; got {number}, written "
                f"by widebnn {record.get('widebnn')}: install that version or a newer one"
            )
        if record.pop("sha256", None) != _digest(record):
            raise ValueError(f"{file} is damaged or was edited: its SHA-256 is not the one it was saved with")
        return record

    def _check_place(self, path: Path, overwrite: bool) -> None:
        if path.exists() and not path.is_dir():
            raise FileExistsError(f"folder must be a new or empty one; {path} is a file")
        if not path.exists() or not (found := {entry.name for entry in path.iterdir()}):
            return
        ours = set()
        with contextlib.suppress(FileNotFoundError, ValueError):
            ours = {self.record_name, *self._record(path)["files"]}
        if not ours >= found:
            raise FileExistsError(
                f"folder must be a new or empty one; {path} holds {sorted(found - ours)[0]}, which is no "
                f"part of a {self.kind}"
            )
        if not overwrite:
            raise FileExistsError(
                f"folder must be a new or empty one; {path} holds a {self.kind}: overwrite=True replaces it"
            )


def _digest(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _flush(file: IO[bytes]) -> None:
    """A folder that has its name is whole, even after a power cut."""
    file.flush()
    os.fsync(file.fileno())


def _write_array(file: Path, array: np.ndarray) -> dict[str, Any]:
    with file.open("w+b") as stream:
        np.save(stream, array, allow_pickle=False)
        _flush(stream)
        stream.seek(0)
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"shape": list(array.shape), "dtype": array.dtype.name, "sha256": sha256}


def _read_array(file: Path, wanted: Mapping[str, Any]) -> np.ndarray:
    if not file.is_file():
        raise FileNotFoundError(f"{file} is missing")
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != wanted["sha256"]:
        raise ValueError(
            f"{file} is damaged: its SHA-256 must be {wanted['sha256'][:12]}…; got {found[:12]}…"
        )
    array = np.load(file, mmap_mode="r", allow_pickle=False)
    return array.view(wanted["dtype"]) if array.dtype.kind == "V" else array  # .npy has no name for bfloat16


def _move(aside: Path, path: Path) -> None:
    """Give the folder its name, and take away the one that had it."""
    if not path.exists():
        aside.rename(path)
        return
    before = aside.with_name(f"{aside.name}.before")
    path.rename(before)
    try:
        aside.rename(path)
    except BaseException:
        before.rename(path)
        raise
    shutil.rmtree(before)
