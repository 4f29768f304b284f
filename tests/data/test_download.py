"""Downloads against a loopback server: what arrives is whole and verified, or the folder stays as it was."""

import hashlib
import os
import signal
import tarfile
from pathlib import Path

import pytest

from widebnn.data.download import RETRIES, download_archive, download_file

from .loopback import Server, archive, body, cut_short, status

MEMBERS = ("box/a.bin", "box/b.bin")
CONTENT = {"box/a.bin": os.urandom(300_000), "box/b.bin": b"second"}
GOOD = archive(CONTENT)
SHA256 = hashlib.sha256(GOOD).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cache folder that already holds an older, good `a.bin`."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "a.bin").write_bytes(b"older")
    return tmp_path / "cache"


def holds_the_archive(folder: Path) -> bool:
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    return found == {Path(member).name: CONTENT[member] for member in MEMBERS}


def is_untouched(folder: Path) -> bool:
    return {path.name: path.read_bytes() for path in folder.iterdir()} == {"a.bin": b"older"}


def test_files_arrive_and_nothing_else_stays(server: Server, folder: Path):
    download_archive([server.offer("/x.tar.gz", body(GOOD))], SHA256, MEMBERS, folder)
    assert holds_the_archive(folder)


def test_a_file_arrives_once(server: Server, tmp_path: Path, folder: Path):
    address = server.offer("/a.bin", body(GOOD))
    assert download_file([address], SHA256, folder).read_bytes() == b"older", "what is there is kept"
    for _ in range(2):
        assert download_file([address], SHA256, tmp_path / "new").read_bytes() == GOOD
    assert server.requests == {"/a.bin": 1}


def test_a_busy_server_is_asked_again_after_growing_pauses(server: Server, folder: Path, waits: list[float]):
    address = server.offer("/x.tar.gz", status(503), status(503), body(GOOD))
    download_archive([address], SHA256, MEMBERS, folder)
    assert holds_the_archive(folder)
    assert waits == [1, 2]


def test_the_second_source_serves_when_the_first_is_down(
    server: Server, unserved: str, folder: Path, waits: list[float]
):
    download_archive([unserved, server.offer("/x.tar.gz", body(GOOD))], SHA256, MEMBERS, folder)
    assert holds_the_archive(folder)
    assert len(waits) == RETRIES


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (body(archive(dict.fromkeys(MEMBERS, b"forged"))), "hash"),
        (cut_short(GOOD), "IncompleteRead"),
        (status(404), "404"),
        (status(503), "503"),
    ],
    ids=["forged", "truncated", "not found", "busy"],
)
def test_failures_name_every_source_and_change_nothing(
    server: Server, unserved: str, folder: Path, waits: list[float], answer, reason
):
    address = server.offer("/x.tar.gz", answer)
    with pytest.raises(OSError, match=r"no source served x.tar.gz.*WIDEBNN_DATA") as error:
        download_archive([address, unserved], SHA256, MEMBERS, folder)
    assert f"{address}: " in str(error.value) and f"{unserved}: " in str(error.value)
    assert reason in str(error.value)
    assert server.requests["/x.tar.gz"] == 1 + RETRIES
    assert is_untouched(folder)


def test_an_interrupted_download_leaves_nothing_behind(server: Server, folder: Path, sigint: None):
    press_ctrl_c = cut_short(GOOD, meanwhile=lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        download_archive([server.offer("/x.tar.gz", press_ctrl_c)], SHA256, MEMBERS, folder)
    assert is_untouched(folder)


def test_a_file_in_place_of_the_cache_is_refused_before_any_request(server: Server, tmp_path: Path):
    (tmp_path / "cache").write_bytes(b"a file, not a folder")
    address = server.offer("/x.tar.gz", body(GOOD))
    with pytest.raises(OSError, match=r"cannot write to the cache .*WIDEBNN_CACHE"):
        download_archive([address], SHA256, MEMBERS, tmp_path / "cache")
    assert not server.requests
    assert (tmp_path / "cache").read_bytes() == b"a file, not a folder"


def link(name: str, target: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    return entry


@pytest.mark.parametrize(
    "content",
    [archive({"box/a.bin": b"alone"}), archive({"box/a.bin": b"beside a link"}, link("box/b.bin", "a.bin"))],
    ids=["missing", "a link"],
)
def test_an_archive_without_a_member_changes_nothing(server: Server, folder: Path, content: bytes):
    address = server.offer("/x.tar.gz", body(content))
    with pytest.raises(ValueError, match=r"lacks the files .*box/b.bin"):
        download_archive([address], hashlib.sha256(content).hexdigest(), MEMBERS, folder)
    assert is_untouched(folder)


def test_other_members_are_left_where_they_are(server: Server, folder: Path):
    content = archive(CONTENT | {"../escaped.bin": b"out", "box/readme": b"more"}, link("way", "/"))
    address = server.offer("/x.tar.gz", body(content))
    download_archive([address], hashlib.sha256(content).hexdigest(), MEMBERS, folder)
    assert holds_the_archive(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["cache"]
