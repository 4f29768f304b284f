"""Arrays and a record in one file, NumPy's `.npz`: written whole or not at all, and checked when read."""

import contextlib
import json
import os
import zipfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["read", "to_host", "write"]

FORMAT = 2
"""A reader takes files of its own format and of none that comes later."""
RECORD = "record"


def write(path: Path, kind: str, record: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write all of it aside, and move it into place.

    Raises
    ------
    OSError
        If it cannot be written; what was there before is left as it was.
    """
    path = path.absolute()
    aside = path.with_name(f".{path.name}.partial")
    arrays = {name: to_host(array) for name, array in arrays.items()}
    head = {"kind": kind, "format": FORMAT, "widebnn": version("widebnn")}
    head |= {"dtypes": {name: array.dtype.name for name, array in arrays.items()}} | dict(record)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            np.savez(file, **{RECORD: np.array(json.dumps(head))}, **arrays)
            file.flush()
            os.fsync(file.fileno())  # what has its name is whole, even after a power cut
        aside.replace(path)
    except OSError as error:
        reason = f"the {kind} could not be written, and nothing was changed: {error}"
        raise OSError(error.errno, reason, str(path)) from error
    finally:
        with contextlib.suppress(OSError):
            aside.unlink()


def read(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The record, and the arrays by name in the order in which they were written.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it holds something else, a newer format, or was damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():  # by checksums
                raise ValueError(f"its {damaged} is damaged")
        with np.load(path, allow_pickle=False) as found:
            record = json.loads(str(found[RECORD]))
            arrays = {name: found[name] for name in found.files if name != RECORD}
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no {kind} at {path}") from None
    except (PermissionError, MemoryError):  # which say nothing of the file
        raise
    except Exception as error:
        raise ValueError(f"{path} is damaged, or no {kind} of this package: {error}") from error
    if record["kind"] != kind:
        raise ValueError(f"{path} must hold a {kind}; it holds a {record['kind']}")
    if record["format"] > FORMAT:
        raise ValueError(
            f"{path} was written by widebnn {record['widebnn']}: install that version or a newer one"
        )
    dtypes = record["dtypes"]  # the files have no name for bfloat16
    return record, {name: x.view(dtypes[name]) if x.dtype.kind == "V" else x for name, x in arrays.items()}


def to_host(leaf: Any) -> np.ndarray:
    """An array of NumPy; random keys as their numbers."""
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)
