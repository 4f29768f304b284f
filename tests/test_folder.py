"""Folders that draws and posteriors are saved in: written whole or not at all, and checked when read."""

import errno
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from widebnn import _folder
from widebnn._folder import Folder

FOLDER, RECORD = Folder("thing", version=1), {"thin": 2, "name": "../b"}
ARRAYS = {"a": np.linspace(0, 1, 12).reshape(3, 4), "b": np.arange(5, dtype=np.float32)}


def write(path, arrays=ARRAYS, overwrite=False):
    FOLDER.write(path, RECORD, arrays, overwrite)


def read(path):
    """Record and arrays, read through."""
    record, arrays = FOLDER.read(path)
    return record, {name: np.array(array) for name, array in arrays.items()}


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "deep" / "thing")
    return tmp_path / "deep" / "thing"


def test_files_are_open(folder):
    """NumPy, JSON and sha256sum read them; nothing is pickled, and nothing else is left."""
    record = json.loads((folder / "thing.json").read_text())
    assert (record["format"], record["version"], record["thin"]) == ("widebnn thing", 1, 2)
    found, arrays = FOLDER.read(folder)
    assert found["name"] == "../b" and arrays.keys() == ARRAYS.keys()
    for name, array in arrays.items():
        assert isinstance(array, np.memmap)
        assert (array.dtype, array.tobytes()) == (ARRAYS[name].dtype, ARRAYS[name].tobytes())
        path = folder / f"{name}.npy"
        assert np.array_equal(np.load(path, allow_pickle=False), array)
        assert record["files"][path.name]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [entry.name for entry in folder.parent.iterdir()] == ["thing"]


def test_every_damaged_byte_is_found(folder):
    rng, whole = np.random.default_rng(0), read(folder)[0]
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        for at in [0, len(data) - 2, *rng.integers(len(data), size=30)]:
            damaged = bytearray(data)
            damaged[at] ^= 1 << int(rng.integers(8))
            path.write_bytes(damaged)
            if path.suffix == ".json" and json_or_none(damaged) == json.loads(data):
                continue  # white space became other white space
            with pytest.raises(ValueError, match=path.name.replace(".", r"\.")):
                FOLDER.read(folder)
        path.write_bytes(data)
    assert read(folder)[0] == whole


def json_or_none(data):
    try:
        return json.loads(bytes(data))
    except ValueError:
        return None


def edited(folder, **changes):
    """The record with other entries, and a checksum that fits them."""
    record = json.loads((folder / "thing.json").read_text()) | changes
    del record["sha256"]
    record["sha256"] = _folder._digest(record)
    (folder / "thing.json").write_text(json.dumps(record))


def test_missing_foreign_and_newer_folders_are_refused(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"thing\.json; there is none at"):
        FOLDER.read(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"must hold a thing\.json"):
        FOLDER.read(tmp_path)
    for text, wanted in [("[]", r"'widebnn thing'; got \[\]"), ('{"format": "pickle"}', "got 'pickle'")]:
        (tmp_path / "thing.json").write_text(text)
        with pytest.raises(ValueError, match=wanted):
            FOLDER.read(tmp_path)
    edited(folder, version=2, widebnn="9.9")
    with pytest.raises(ValueError, match=r"version 1 of the format or one before; got 2.*widebnn 9\.9"):
        FOLDER.read(folder)
    edited(folder, version=1)
    (folder / "b.npy").unlink()
    with pytest.raises(FileNotFoundError, match=r"b\.npy is missing"):
        FOLDER.read(folder)


def test_nothing_foreign_is_written_over(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    write(tmp_path / "empty")  # will do
    with pytest.raises(FileExistsError, match="holds a thing: overwrite=True"):
        write(folder)
    write(folder, {"c": np.zeros(3)}, overwrite=True)
    assert list(read(folder)[1]) == ["c"]
    (folder / "notes.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match=r"notes\.txt, which is no part of a thing"):
        write(folder, overwrite=True)
    assert (folder / "notes.txt").read_text() == "years of work"
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="is a file"):
        write(tmp_path / "file")


@pytest.mark.parametrize("succeeds_before", range(6))  # two arrays, a record and two moves
def test_full_disk_changes_nothing(succeeds_before, folder, monkeypatch):
    """At whichever write it is full, the folder is as it was, and nothing lies beside it."""
    before = bytes_of(folder)
    calls = iter(range(100))

    def until_full(function):
        def call(*args):
            if next(calls) == succeeds_before:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return function(*args)

        return call

    monkeypatch.setattr(_folder, "_flush", until_full(_folder._flush))
    monkeypatch.setattr(Path, "rename", until_full(Path.rename))
    try:
        write(folder, {"a": np.zeros(2), "b": np.ones(3)}, overwrite=True)
    except OSError as error:
        assert error.errno == errno.ENOSPC and "nothing was changed" in str(error)
        assert bytes_of(folder) == before
    else:
        assert succeeds_before > 4 and list(read(folder)[1]["b"]) == [1, 1, 1]
    assert [entry.name for entry in folder.parent.iterdir()] == ["thing"]
