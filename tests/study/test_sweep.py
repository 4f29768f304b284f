"""Sweeps: stored once, in order, on executors of all kinds, with workers that fail and workers that die."""

import dataclasses
import functools
import logging
import os
import signal
import sys
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import distributed
import pytest
from measured import Config, Nested, Pair, measure, measure_or_be_killed, shown

from widebnn.study import Results, place, sweep


def runs(log: Path) -> dict[int, int]:
    """How often each seed was run to its end."""
    return {int(file.name): len(file.read_text().split()) for file in log.iterdir() if file.name.isdigit()}


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log").mkdir()
    return tmp_path / "log"


@pytest.fixture
def configs(log):
    return [Config(seed, str(log), num_samples=3 if seed == 1 else 0) for seed in range(6)]


@pytest.mark.slow
def test_results_come_in_order_and_are_stored(tmp_path, log, configs):
    folder = tmp_path / "new" / "results"
    results = sweep(measure, configs, folder)
    assert [result.config["seed"] for result in results] == [config.seed for config in configs]
    assert len({result.rows[0]["value"] for result in results}) == len(configs)
    assert all(isinstance(result, Results) for result in results)
    assert {path.name for path in folder.iterdir()} == {place(folder, config).name for config in configs}
    assert runs(log) == dict.fromkeys(range(6), 1)


def test_what_is_stored_is_not_run_again(tmp_path, log, configs):
    """Nor submitted: a second sweep over more configurations runs those that are new."""
    submitted = []

    class Watched(ThreadPoolExecutor):
        def submit(self, *args, **kwargs):
            submitted.append(args)
            return super().submit(*args, **kwargs)

    first = sweep(measure, configs[2:4], tmp_path / "results")
    with Watched(2) as executor:
        results = sweep(measure, configs[2:], tmp_path / "results", executor)
    assert len(submitted) == 2
    assert results[:2] == first
    assert runs(log) == dict.fromkeys(range(2, 6), 1)


def test_a_failure_costs_no_other(tmp_path, log, configs):
    def fail_at_3_and_4(config):
        if config.seed in (3, 4):
            raise RuntimeError(f"seed {config.seed} is out of luck")
        return measure(config)

    with pytest.raises(ExceptionGroup, match="2 of 4 configurations failed; the others are stored") as caught:
        sweep(fail_at_3_and_4, configs[2:], tmp_path / "results")
    for error, config in zip(caught.value.exceptions, configs[3:5], strict=True):
        assert isinstance(error, RuntimeError)
        assert error.__notes__ == [f"in the configuration {config}"]
    assert runs(log) == {2: 1, 5: 1}
    sweep(measure, configs[2:], tmp_path / "results")
    assert runs(log) == dict.fromkeys(range(2, 6), 1)


def test_an_interrupt_keeps_what_is_stored(tmp_path, log, configs):
    def interrupted(config):
        if config.seed == 3:
            raise KeyboardInterrupt
        return measure(config)

    with pytest.raises(KeyboardInterrupt):
        sweep(interrupted, configs[2:], tmp_path / "results")
    assert [path.name for path in (tmp_path / "results").iterdir()] == [place("", configs[2]).name]


@pytest.mark.parametrize("name", ["notes.txt", "Config.json", "Config-00.json"])
def test_a_folder_with_something_else_is_refused(tmp_path, log, name, configs):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / name).touch()
    with pytest.raises(ValueError, match=f"folder must be new, empty .* results holds {name}"):
        sweep(measure, configs, tmp_path / "results")
    assert not runs(log)


def test_a_damaged_file_is_found_before_anything_runs(tmp_path, log, configs):
    damaged = place(tmp_path / "results", configs[5])
    damaged.parent.mkdir()
    damaged.write_text("{")
    with pytest.raises(ValueError, match=f"{damaged.name} is no results file of widebnn"):
        sweep(measure, configs, tmp_path / "results")
    assert not runs(log)
    assert damaged.read_text() == "{"


def test_partial_files_of_a_killed_writer_do_not_matter(tmp_path, log, configs):
    path = place(tmp_path / "results", configs[2])
    path.parent.mkdir()
    path.with_suffix(".0f.partial").write_text("{")
    assert sweep(measure, configs[2:4], tmp_path / "results")[0].rows
    assert runs(log) == {2: 1, 3: 1}


NESTED = Nested(Pair(1, (0.5, 2.0)), Config(2, "log"), names=("a", "b"))


def test_configurations_survive_the_way_to_an_executor(tmp_path):
    with ThreadPoolExecutor(1) as executor:
        (result,) = sweep(shown, [NESTED], tmp_path / "results", executor)
    assert result.rows == [{"seen": str(NESTED)}]


@pytest.mark.parametrize("function", [functools.partial(measure), lambda config: [], Config(0, "").__eq__])
def test_an_executor_gets_no_function_without_a_name(tmp_path, configs, log, function):
    with (
        ThreadPoolExecutor(1) as executor,
        pytest.raises(TypeError, match="workers can import"),
    ):
        sweep(function, configs, tmp_path / "results", executor)
    assert not (tmp_path / "results").exists() and not runs(log)


def test_an_executor_gets_no_function_of_a_notebook(tmp_path, configs, monkeypatch):
    def in_a_cell(config):
        return []

    in_a_cell.__module__, in_a_cell.__qualname__ = "__main__", "in_a_cell"
    monkeypatch.setattr(sys.modules["__main__"], "in_a_cell", in_a_cell, raising=False)
    with (
        ThreadPoolExecutor(1) as executor,
        pytest.raises(TypeError, match="workers can import"),
    ):
        sweep(in_a_cell, configs, tmp_path / "results", executor)


def test_an_executor_gets_no_configuration_that_changes_on_the_way(tmp_path):
    """A list would come back as a tuple."""
    with (
        ThreadPoolExecutor(1) as executor,
        pytest.raises(TypeError, match="numbers, names and tuples"),
    ):
        sweep(
            shown, [dataclasses.replace(NESTED, names=["a"])], tmp_path / "results", executor
        )  # a list comes back as a tuple


@pytest.mark.slow
def test_dask_finishes_although_a_worker_is_killed(tmp_path, log, configs, monkeypatch):
    """Two worker processes; one is killed in the middle of a run and what it had stored stays."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))  # where workers find `measured`
    (serial_log := tmp_path / "serial log").mkdir()
    elsewhere = [dataclasses.replace(config, log=str(serial_log)) for config in configs]
    serial = sweep(measure, elsewhere, tmp_path / "serial")

    def kill():
        while not (log / "pid").exists():
            time.sleep(0.05)
        os.kill(int((log / "pid").read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = set(client.scheduler_info()["workers"])
        killer.start()
        results = sweep(measure_or_be_killed, configs, tmp_path / "results", client.get_executor())
        assert set(client.scheduler_info()["workers"]) != before, "no worker was killed"

        ghost = types.ModuleType("ghost")
        exec("def haunt(config): return []", ghost.__dict__)
        sys.modules["ghost"] = ghost  # here, and on no worker
        with pytest.raises(ExceptionGroup) as caught:
            sweep(ghost.haunt, configs[:1], tmp_path / "ghost", client.get_executor())
        assert "No module named 'ghost'" in str(caught.value.exceptions[0])
    assert [result.rows for result in results] == [result.rows for result in serial]
    assert runs(log) == dict.fromkeys(range(6), 1)
