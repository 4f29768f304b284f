"""Where data lie: the user's own folder first, then the download cache. The two variables are read here."""

import os
from pathlib import Path

import pooch

__all__ = ["cache_folder", "local_folder"]


def local_folder(*names: str) -> Path | None:
    """The first of the folders `$WIDEBNN_DATA/name` that exists, or None.

    Raises
    ------
    NotADirectoryError
        If `WIDEBNN_DATA` is set but is not a folder.
    """
    root = os.environ.get("WIDEBNN_DATA")
    if not root:
        return None
    if not Path(root).expanduser().is_dir():
        raise NotADirectoryError(f"WIDEBNN_DATA must be a folder of data files; there is no folder {root!r}")
    candidates = [Path(root).expanduser() / name for name in names]
    return next((folder for folder in candidates if folder.is_dir()), None)


def cache_folder(name: str) -> Path:
    """The folder for downloaded files of one data set: in `WIDEBNN_CACHE`, else in the user's cache."""
    root = os.environ.get("WIDEBNN_CACHE") or pooch.os_cache("widebnn")
    return Path(root).expanduser() / name
