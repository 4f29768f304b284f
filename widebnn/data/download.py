"""Files from the network: they arrive whole and verified, or nothing is touched."""

import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pooch
from requests import RequestException

__all__ = ["download_archive", "download_file"]

RETRIES = 2
"""Further attempts at one source after a failure; pooch waits 1 s, then 2 s, and so on."""


def download_archive(sources: Sequence[str], sha256: str, members: Sequence[str], folder: Path) -> None:
    """Put the named files of a tar archive into `folder`.

    Everything happens in a temporary folder inside `folder`, which is removed at the end, after an error
    and after Ctrl-C alike; verified files then take their places one by one, each in a single move.

    Parameters
    ----------
    sources
        Addresses of the same archive, tried in order.
    sha256
        The archive's checksum.
    members
        Paths within the archive; each is written under its last part, and no other is read.
    folder
        Where to put them; made if it does not exist.

    Raises
    ------
    OSError
        If `folder` cannot be written, or no source serves the archive with this checksum.
    ValueError
        If the archive lacks a member, or a member is not an ordinary file.
    """
    with staging(folder) as stage:
        archive = fetch(sources, sha256, stage)
        for file in extract(archive, members, stage):
            os.replace(file, folder / file.name)


def download_file(sources: Sequence[str], sha256: str, folder: Path) -> Path:
    """Put one file into `folder` unless it is there, under the last part of its address; its path.

    Parameters and errors are those of `download_archive`.
    """
    path = folder / sources[0].rpartition("/")[2]
    if not path.is_file():
        with staging(folder) as stage:
            os.replace(fetch(sources, sha256, stage), path)
    return path


@contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """A temporary folder inside `folder`, which is made if it does not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stage = TemporaryDirectory(dir=folder, prefix="download-")
    except OSError as error:
        raise OSError(f"cannot write to the cache {folder} ({error}); set WIDEBNN_CACHE elsewhere") from error
    with stage as name:
        yield Path(name)


def fetch(sources: Sequence[str], sha256: str, folder: Path) -> Path:
    """Download a file from the first source that serves it with the right checksum.

    Raises
    ------
    OSError
        If none does; the message holds each source's failure.
    """
    failures = []
    for source in sources:
        name = source.rpartition("/")[2]
        registry, urls = {name: f"sha256:{sha256}"}, {name: source}
        files = pooch.create(folder, base_url="", registry=registry, urls=urls, retry_if_failed=RETRIES)
        try:
            return Path(files.fetch(name, progressbar=True))
        except (RequestException, ValueError) as error:
            failures.append(f"{source}: {error}")
    raise OSError(
        f"no source served {sources[0].rpartition('/')[2]}; try again later, or put a copy of it, unpacked "
        "if it is an archive, into a folder and set WIDEBNN_DATA to the folder above\n" + "\n".join(failures)
    )


def extract(archive: Path, members: Sequence[str], folder: Path) -> list[Path]:
    """Write the named members below `folder`, whatever paths or links the archive holds besides."""
    with tarfile.open(archive) as tar:
        entries = {entry.name: entry for entry in tar if entry.isfile()}
        missing = [member for member in members if member not in entries]
        if missing:
            raise ValueError(f"the archive lacks the files {missing}; it holds {tar.getnames()}")
        for member in members:
            tar.extract(entries[member], folder, filter="data")
    return [folder / member for member in members]
