"""Runs: stored once and resumed; and nothing stored is lost, whatever goes wrong."""

import errno
import logging
import os
import signal
import threading
import time
from pathlib import Path

import distributed
import pytest
from measured import Config, measure, measure_or_be_killed
from study.grids import CONFIG, LAPTOP, declared, registry, rows_of

from widebnn import data
from widebnn.study import Results, Rows, config_hash, load, load_or_run, place
from widebnn.study.results import gather

SMOKE_ROWS, LAPTOP_ROWS = list(rows_of(CONFIG)), list(rows_of(LAPTOP))


class Stopped(KeyboardInterrupt):
    """The user stops a run."""


@pytest.fixture
def calls():
    """The widths that were computed."""
    return []


@pytest.fixture
def grid(calls):
    """A registry of an experiment over width that notes its calls."""

    def noted(config):
        calls.extend(config.widths)
        yield from rows_of(config)

    return registry(declared(noted))


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_run_is_stored_once(calls, grid, tmp_path):
    folder, rows = tmp_path / "new", []
    first = grid.run("grid", "smoke", folder, on_row=rows.append)
    assert first.rows == SMOKE_ROWS == rows
    assert names(folder) == ["grid_smoke.json"] and not list(folder.glob("*.parts"))
    assert first == load(folder / "grid_smoke.json", CONFIG)
    assert (first.name, first.scale) == ("grid", "smoke")
    assert first.provenance.keys() == {"seconds", "device", "commit", "versions"}
    assert grid.run("H-F1", "smoke", folder) == first  # by the row that it serves
    assert calls == [2, 4]


def test_the_scale_is_that_of_the_environment(calls, grid, tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEBNN_SCALE", "laptop")
    grid.run("grid", results=tmp_path)
    assert names(tmp_path) == ["grid_laptop.json"] and calls == [2, 4, 8]


def test_an_interrupted_run_goes_on_where_it_was(calls, grid, tmp_path):
    seen = []

    def stopped(config):
        if config.widths == (8,):
            raise Stopped
        seen.extend(config.widths)
        yield from rows_of(config)

    with pytest.raises(Stopped):
        registry(declared(stopped)).run("grid", "laptop", tmp_path)
    assert seen == [2, 4]
    stored = names(tmp_path)
    with pytest.raises(FileExistsError, match=r"2 of 3 parts of an interrupted run: resume it \(--resume\)"):
        grid.run("grid", "laptop", tmp_path)
    assert names(tmp_path) == stored
    assert grid.run("grid", "laptop", tmp_path, resume=True).rows == LAPTOP_ROWS
    assert calls == [8]
    assert names(tmp_path) == ["grid_laptop.json"]


def test_parts_of_a_changed_configuration_do_not_mix(grid, tmp_path):
    parts = tmp_path / f"grid_smoke-{config_hash(LAPTOP)[:12]}.parts"
    parts.mkdir()
    (parts / "old.json").write_text("a part of another time")
    assert grid.run("grid", "smoke", tmp_path).rows == SMOKE_ROWS
    assert (parts / "old.json").read_text() == "a part of another time"


def test_results_of_another_configuration_are_kept(grid, tmp_path):
    grid.run("grid", "smoke", tmp_path)
    before = (tmp_path / "grid_smoke.json").read_text()
    other = registry(declared(pytest.fail, scales={"smoke": LAPTOP}))
    with pytest.raises(FileExistsError, match=r"grid_smoke\.json of another configuration, which is kept"):
        other.run("grid", "smoke", tmp_path)
    assert (tmp_path / "grid_smoke.json").read_text() == before


@pytest.mark.parametrize("keep", [0, 100, -30])
def test_damaged_results_are_refused_and_kept(grid, tmp_path, keep):
    grid.run("grid", "smoke", tmp_path)
    path = tmp_path / "grid_smoke.json"
    damaged = path.read_text()[:keep]
    path.write_text(damaged)
    shipped = registry(declared(), folder=tmp_path).shipped
    for attempt in (lambda: grid.run("grid", "smoke", tmp_path), lambda: shipped("grid", "smoke")):
        with pytest.raises(ValueError, match=r"grid_smoke\.json is no results file of widebnn, or a damaged"):
            attempt()
    assert path.read_text() == damaged


def test_a_damaged_part_is_refused_before_anything_runs(calls, grid, tmp_path):
    parts = tmp_path / f"grid_laptop-{config_hash(LAPTOP)[:12]}.parts"
    parts.mkdir()
    first = place(parts, grid.find("grid").parts(LAPTOP)[0])
    first.write_text("{")
    with pytest.raises(ValueError, match="a damaged one"):
        grid.run("grid", "laptop", tmp_path, resume=True)
    assert not calls and first.read_text() == "{"


def test_a_full_disk_loses_nothing_that_was_stored(calls, grid, tmp_path, monkeypatch):
    write, writes = Path.write_text, []

    def until_full(path, *args, **kwargs):
        writes.append(path)
        if len(writes) == 2:
            write(path, args[0][:50])  # as far as there was room
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, *args, **kwargs)

    with monkeypatch.context() as full:
        full.setattr(Path, "write_text", until_full)
        with pytest.raises(OSError, match="No space left on device") as caught:
            grid.run("grid", "laptop", tmp_path)
    assert caught.value.errno == errno.ENOSPC
    assert any(
        "could not be stored; what was stored before is as it was" in n for n in caught.value.__notes__
    )
    assert len(names(tmp_path)) == 1  # the part before, and no half of one
    calls.clear()
    assert grid.run("grid", "laptop", tmp_path, resume=True).rows == LAPTOP_ROWS
    assert calls == [4, 8]


def test_data_that_are_absent_are_named_once(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEBNN_DATA", str(tmp_path / "absent"))
    grid = registry(declared(lambda config: data.cifar10(10, 10)))
    with pytest.raises(NotADirectoryError, match=r"WIDEBNN_DATA must be a folder of data files.*absent"):
        grid.run("grid", "laptop", tmp_path / "results")
    (tmp_path / "absent" / "cifar10").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="holds no CIFAR-10 binary file data_batch_1.bin"):
        grid.run("grid", "laptop", tmp_path / "results")


def test_data_of_the_last_part_are_looked_for_before_the_first(tmp_path):
    grid = registry(
        declared(pytest.fail, observes=lambda c: [("digits", n) for n in (10, 1_000 * len(c.widths))])
    )
    with pytest.raises(ValueError, match="num_train is 2,000 but there are 1,797 records"):
        grid.run("grid", "smoke", tmp_path)
    assert not names(tmp_path)


def test_a_folder_of_other_things_is_left_alone(calls, grid, tmp_path):
    (tmp_path / "letter.txt").write_text("dear reader")
    for attempt in (lambda: grid.run("grid", "smoke", tmp_path), lambda: grid.ledger(tmp_path)):
        with pytest.raises(
            ValueError, match=r"results must be a folder that is new.*holds letter\.txt and none"
        ):
            attempt()
    with pytest.raises(NotADirectoryError, match=r"results must be a folder; letter\.txt is a file"):
        grid.run("grid", "smoke", tmp_path / "letter.txt")
    assert not calls and names(tmp_path) == ["letter.txt"]


def test_shipped_results_are_of_the_largest_scale_unless_told(grid, tmp_path):
    shipped = registry(declared(), folder=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"results hold none of grid.*holds none at all"):
        shipped.shipped("grid")
    small, large = (grid.run("grid", scale, tmp_path) for scale in ("smoke", "laptop"))
    assert shipped.shipped("H-F1") == large and shipped.shipped("grid", "smoke") == small
    (tmp_path / "grid_smoke.json").unlink()
    with pytest.raises(FileNotFoundError, match="none of grid_smoke: .* holds grid_laptop"):
        shipped.shipped("grid", "smoke")
    with pytest.raises(ValueError, match="scale must be one of 'laptop', 'smoke'; got 'paper'"):
        shipped.shipped("grid", "paper")


def test_a_report_has_the_verdict_and_its_numbers(grid, tmp_path):
    results = grid.run("grid", "laptop", tmp_path)
    shipped = registry(declared(), folder=tmp_path)
    for one in (shipped.report("H-F1"), grid.report("H-F1", results)):
        assert (one.verdict, one.scale) == ("reproduced", "laptop")
        assert "H-F1  Rows there are." in str(one) and "rows: 6 (wanted: above 0)" in str(one)
        shown = one._repr_html_()
        for word in ("H-F1: reproduced", "Rows there are.", "<td", "above 0", results.source):
            assert word in shown
    with pytest.raises(ValueError, match="row must be one of 'H-F1'; got 'H-F9'"):
        grid.report("H-F9")
    with pytest.raises(ValueError, match="results must be those of grid, on which H-F1 rests; got 'other'"):
        grid.report("H-F1", Results(Rows(), {}, {}, "other", "laptop"))


def test_gathered_results_name_all_that_made_them(tmp_path):
    parts = []
    for seconds, device in ((1.0, "a"), (2.0, "b")):
        made = {"seconds": seconds, "device": device, "commit": None, "versions": {"jax": "1"}}
        parts.append(Results(Rows([{"width": seconds}]), {}, made))
    found = gather(tmp_path / "r.json", CONFIG, parts)
    assert found.rows == [{"width": 1.0}, {"width": 2.0}]
    wanted = {"seconds": 3.0, "device": "a; b", "commit": None, "versions": {"jax": "1"}}
    assert found.provenance == wanted


def test_a_failure_ends_a_run_and_keeps_what_was_stored(tmp_path):
    def failing(config):
        if config.widths == (4,):
            raise RuntimeError("out of luck")
        yield from rows_of(config)

    with pytest.raises(RuntimeError, match="out of luck"):
        registry(declared(failing)).run("grid", "laptop", tmp_path)
    assert len(names(tmp_path)) == 1


@pytest.mark.slow
def test_a_sweep_on_dask_finishes_although_a_worker_is_killed(tmp_path, monkeypatch):
    """As chapter 22 maps it: two worker processes, one of which is killed in the middle of a run."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))  # where workers find `measured`
    configs = [Config(seed, str(tmp_path)) for seed in range(6)]
    (tmp_path / "sweep").mkdir()
    paths = [place(tmp_path / "sweep", config) for config in configs]

    def kill():
        while not (tmp_path / "pid").exists():
            time.sleep(0.05)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options, silence_logs=logging.CRITICAL) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = set(client.scheduler_info()["workers"])
        threading.Thread(target=kill, daemon=True).start()
        results = client.gather(client.map(load_or_run, paths, configs, run=measure_or_be_killed))
        assert set(client.scheduler_info()["workers"]) != before, "no worker was killed"
    assert [result.rows for result in results] == [measure(config) for config in configs]
    assert results == [load_or_run(path, config, pytest.fail) for path, config in zip(paths, configs)]
