"""Downloads against a loopback server: what arrives is whole and verified. The two environment variables."""

import hashlib
import os
from pathlib import Path

import pytest

from widebnn.data.download import RETRIES, cache_folder, download, local_folder

from .loopback import Server, body, cut_short, status

GOOD = os.urandom(300_000)
SHA256 = hashlib.sha256(GOOD).hexdigest()


def test_a_file_arrives_once_and_anew_where_it_is_damaged(server: Server, tmp_path: Path):
    address = server.offer("/x.bin", body(GOOD))
    for _ in range(2):
        assert download([address], SHA256, tmp_path / "new").read_bytes() == GOOD
    assert server.requests == {"/x.bin": 1}
    (tmp_path / "new" / "x.bin").write_bytes(GOOD[:1_000])
    assert download([address], SHA256, tmp_path / "new").read_bytes() == GOOD
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["x.bin"]


def test_a_busy_server_is_asked_again_and_then_the_second_source(
    server: Server, unserved: str, tmp_path: Path, waits: list[float]
):
    address = server.offer("/archive.tar.gz", status(503), body(GOOD))
    assert download([unserved, address], SHA256, tmp_path).read_bytes() == GOOD
    assert len(waits) == RETRIES + 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(body(b"forged"), "hash"), (cut_short(GOOD), "IncompleteRead"), (status(404), "404")],
    ids=["forged", "truncated", "not found"],
)
def test_failures_name_every_source_and_leave_nothing(
    server: Server, unserved: str, tmp_path: Path, waits: list[float], answer, reason
):
    address = server.offer("/archive.tar.gz", answer)
    with pytest.raises(OSError, match=r"no source served archive.tar.gz.*WIDEBNN_DATA") as error:
        download([unserved, address], SHA256, tmp_path)
    assert unserved in str(error.value) and address in str(error.value) and reason in str(error.value)
    assert not list(tmp_path.iterdir())


def test_the_first_local_folder_that_exists_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WIDEBNN_DATA", str(tmp_path))
    assert local_folder("first", "second") is None
    (tmp_path / "second").mkdir()
    assert local_folder("first", "second") == tmp_path / "second"
    (tmp_path / "first").mkdir()
    assert local_folder("first", "second") == tmp_path / "first"
    monkeypatch.setenv("WIDEBNN_DATA", "")
    assert local_folder("first") is None
    monkeypatch.setenv("WIDEBNN_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(NotADirectoryError, match=r"WIDEBNN_DATA must be a folder.*nowhere"):
        local_folder("first")


def test_the_cache_follows_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WIDEBNN_CACHE", str(tmp_path))
    assert cache_folder("cifar10") == tmp_path / "cifar10"
    monkeypatch.delenv("WIDEBNN_CACHE")
    assert cache_folder("cifar10").parts[-2:] == ("widebnn", "cifar10")
