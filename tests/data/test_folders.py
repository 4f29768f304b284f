"""The two environment variables."""

from pathlib import Path

import pytest

from widebnn.data.folders import cache_folder, local_folder


def test_the_first_folder_that_exists_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WIDEBNN_DATA", str(tmp_path))
    assert local_folder("first", "second") is None
    (tmp_path / "second").mkdir()
    assert local_folder("first", "second") == tmp_path / "second"
    (tmp_path / "first").mkdir()
    assert local_folder("first", "second") == tmp_path / "first"


@pytest.mark.parametrize("value", [None, ""])
def test_no_variable_means_no_local_folder(
    value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "first").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WIDEBNN_DATA", raising=False) if value is None else monkeypatch.setenv(
        "WIDEBNN_DATA", value
    )
    assert local_folder("first") is None


@pytest.mark.parametrize("made", ["nothing", "a file"])
def test_a_variable_that_names_no_folder_is_refused(
    made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if made == "a file":
        (tmp_path / "data").write_bytes(b"")
    monkeypatch.setenv("WIDEBNN_DATA", str(tmp_path / "data"))
    with pytest.raises(NotADirectoryError, match=r"WIDEBNN_DATA must be a folder.*data"):
        local_folder("first")


def test_the_cache_follows_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WIDEBNN_CACHE", str(tmp_path))
    assert cache_folder("cifar10") == tmp_path / "cifar10"
    monkeypatch.delenv("WIDEBNN_CACHE")
    assert cache_folder("cifar10").parts[-2:] == ("widebnn", "cifar10")
