"""Arrays in the rows of results: in a netCDF file beside the JSON file, which says where each of them is."""

import hashlib
import os
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

__all__ = ["put", "take"]

Rows = list[dict[str, Any]]


def put(path: Path, rows: Rows) -> Rows:
    """Write the arrays in `rows` beside the results file at `path`; rows that name them in their place.

    The file's name has the digest of what is in it, so that a results file never goes with other arrays.
    """
    arrays = {
        f"{name}_{i}": value
        for i, row in enumerate(rows)
        for name, value in row.items()
        if isinstance(value, np.ndarray)
    }
    if not arrays:
        return rows
    variables = {
        name: ([f"{name}_axis_{axis}" for axis in range(value.ndim)], value) for name, value in arrays.items()
    }
    content = bytes(xr.Dataset(variables).to_netcdf(engine="scipy"))
    file = path.with_name(f"{path.stem}-{hashlib.sha256(content).hexdigest()[:12]}.nc")
    whole = file.with_suffix(f".{uuid.uuid4().hex}.partial")
    try:
        whole.write_bytes(content)
        whole.replace(file)
    except OSError:
        whole.unlink(missing_ok=True)
        raise
    return [
        {
            n: {"netcdf": file.name, "variable": f"{n}_{i}"} if f"{n}_{i}" in arrays else v
            for n, v in row.items()
        }
        for i, row in enumerate(rows)
    ]


def take(path: Path, rows: Rows) -> Rows:
    """The rows with their arrays, read from beside `path`.

    Raises
    ------
    ValueError
        If a file of arrays is not there, or damaged.
    """
    files = {v["netcdf"] for row in rows for v in row.values() if _is_named(v)}
    read = {name: _read(path.with_name(os.path.basename(name))) for name in files}
    return [
        {n: read[v["netcdf"]][v["variable"]].to_numpy() if _is_named(v) else v for n, v in row.items()}
        for row in rows
    ]


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"netcdf", "variable"}


def _read(file: Path) -> xr.Dataset:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise ValueError(
            f"path {file.name} does not exist: its results are a part of what they were"
        ) from None
    if hashlib.sha256(content).hexdigest()[:12] != file.stem.rsplit("-", 1)[-1]:
        raise ValueError(f"path {file.name} is damaged: its content is not what was stored")
    return xr.load_dataset(file, engine="scipy")
