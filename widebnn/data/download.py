"""Files from the network, whole and verified; and where data lie: the user's own folder, then the cache."""

import os
from collections.abc import Sequence
from pathlib import Path

import pooch
from requests import RequestException

__all__ = ["cache_folder", "download", "local_folder"]

RETRIES = 2
"""Further attempts at one source after a failure; pooch waits 1 s, then 2 s, and so on."""


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


def download(sources: Sequence[str], sha256: str, folder: Path) -> Path:
    """A file in `folder`, under the last part of its address: one that has this checksum, or a new one.

    Sources are tried in order; a file takes its place in a single move.

    Raises
    ------
    OSError
        If `folder` cannot be written, or no source serves the file with this checksum; the message holds
        each source's failure.
    """
    name = sources[0].rpartition("/")[2]
    failures = []
    for source in sources:
        registry, urls = {name: f"sha256:{sha256}"}, {name: source}
        files = pooch.create(folder, base_url="", registry=registry, urls=urls, retry_if_failed=RETRIES)
        try:
            return Path(files.fetch(name, progressbar=True))
        except PermissionError as error:
            raise OSError(
                f"cannot write to the cache {folder} ({error}); set WIDEBNN_CACHE elsewhere"
            ) from error
        except (RequestException, ValueError) as error:
            failures.append(f"{source}: {error}")
    raise OSError(
        f"no source served {name}; try again later, or put a copy of it, unpacked if it is an archive, into "
        "a folder and set WIDEBNN_DATA to the folder above\n" + "\n".join(failures)
    )
