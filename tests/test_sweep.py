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

import cloudpickle
import distributed
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widebnn as wb
from widebnn.experiments import Results
from widebnn.sweep import place, sweep


@dataclasses.dataclass(frozen=True)
class Config:
    seed: int
    num_samples: int = 0


CONFIGS = [Config(0), Config(1, num_samples=3), *(Config(seed) for seed in range(2, 6))]
KILLED = CONFIGS[3]


def half_square(u):
    return jnp.sum(u**2) / 2


def measure(log: Path, config: Config):
    """A number of its own for every seed, by NumPy or by a chain; each run leaves a line in `log`."""
    with (log / str(config.seed)).open("a") as file:
        print("run", file=file)
    if config.num_samples == 0:
        return [{"value": float(np.random.default_rng(config.seed).normal())}]
    target = wb.targets.from_potential(half_square, jnp.zeros(2))
    sampler = wb.samplers.pcn(target.potential, 0.5)
    draws = wb.sample(jax.random.key(config.seed), sampler, target, num_samples=config.num_samples)
    return [{"value": float(draws["potential"].sum())}]


def measure_or_be_killed(log: Path, config: Config):
    """The first attempt at `KILLED` says who it is and waits for its end."""
    if config.seed == KILLED.seed and not (log / "pid").exists():
        (log / "pid.new").write_text(str(os.getpid()))
        (log / "pid.new").rename(log / "pid")
        time.sleep(60)
        raise TimeoutError("nobody came to kill")
    return measure(log, config)


def runs(log: Path) -> dict[int, int]:
    """How often each seed was run to its end."""
    return {int(file.name): len(file.read_text().split()) for file in log.iterdir() if file.name.isdigit()}


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log").mkdir()
    return tmp_path / "log"


def test_results_come_in_order_and_are_stored(tmp_path, log):
    folder = tmp_path / "new" / "results"
    results = sweep(functools.partial(measure, log), CONFIGS, folder)
    assert [result.config["seed"] for result in results] == [config.seed for config in CONFIGS]
    assert len({result.rows[0]["value"] for result in results}) == len(CONFIGS)
    assert all(isinstance(result, Results) for result in results)
    assert {path.name for path in folder.iterdir()} == {place(folder, config).name for config in CONFIGS}
    assert runs(log) == dict.fromkeys(range(6), 1)


def test_what_is_stored_is_not_run_again(tmp_path, log):
    """Nor submitted: a second sweep over more configurations runs those that are new."""
    submitted = []

    class Watched(ThreadPoolExecutor):
        def submit(self, *args, **kwargs):
            submitted.append(args)
            return super().submit(*args, **kwargs)

    first = sweep(functools.partial(measure, log), CONFIGS[2:4], tmp_path / "results")
    with Watched(2) as executor:
        results = sweep(functools.partial(measure, log), CONFIGS[2:], tmp_path / "results", executor)
    assert len(submitted) == 2
    assert results[:2] == first
    assert runs(log) == dict.fromkeys(range(2, 6), 1)


def test_a_failure_costs_no_other(tmp_path, log):
    def fail_at_3_and_4(config):
        if config.seed in (3, 4):
            raise RuntimeError(f"seed {config.seed} is out of luck")
        return measure(log, config)

    with pytest.raises(ExceptionGroup, match="2 of 4 configurations failed; the others are stored") as caught:
        sweep(fail_at_3_and_4, CONFIGS[2:], tmp_path / "results")
    for error, config in zip(caught.value.exceptions, CONFIGS[3:5], strict=True):
        assert isinstance(error, RuntimeError)
        assert error.__notes__ == [f"in the configuration {config}"]
    assert runs(log) == {2: 1, 5: 1}
    sweep(functools.partial(measure, log), CONFIGS[2:], tmp_path / "results")
    assert runs(log) == dict.fromkeys(range(2, 6), 1)


def test_an_interrupt_keeps_what_is_stored(tmp_path, log):
    def interrupted(config):
        if config.seed == 3:
            raise KeyboardInterrupt
        return measure(log, config)

    with pytest.raises(KeyboardInterrupt):
        sweep(interrupted, CONFIGS[2:], tmp_path / "results")
    assert [path.name for path in (tmp_path / "results").iterdir()] == [place("", CONFIGS[2]).name]


@pytest.mark.parametrize("name", ["notes.txt", "Config.json", "Config-00.json"])
def test_a_folder_with_something_else_is_refused(tmp_path, log, name):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / name).touch()
    with pytest.raises(ValueError, match=f"folder must be new, empty .* results holds {name}"):
        sweep(functools.partial(measure, log), CONFIGS, tmp_path / "results")
    assert not runs(log)


def test_a_damaged_file_is_found_before_anything_runs(tmp_path, log):
    damaged = place(tmp_path / "results", CONFIGS[5])
    damaged.parent.mkdir()
    damaged.write_text("{")
    with pytest.raises(ValueError, match=f"{damaged.name} is no results file of widebnn"):
        sweep(functools.partial(measure, log), CONFIGS, tmp_path / "results")
    assert not runs(log)
    assert damaged.read_text() == "{"


def test_partial_files_of_a_killed_writer_do_not_matter(tmp_path, log):
    path = place(tmp_path / "results", CONFIGS[2])
    path.parent.mkdir()
    path.with_suffix(".0f.partial").write_text("{")
    assert sweep(functools.partial(measure, log), CONFIGS[2:4], tmp_path / "results")[0].rows
    assert runs(log) == {2: 1, 3: 1}


def test_dask_finishes_although_a_worker_is_killed(tmp_path, log):
    """Two worker processes; one is killed in the middle of a run and what it had stored stays."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test
    (serial_log := tmp_path / "serial log").mkdir()
    serial = sweep(functools.partial(measure, serial_log), CONFIGS, tmp_path / "serial")

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
        function = functools.partial(measure_or_be_killed, log)
        results = sweep(function, CONFIGS, tmp_path / "results", client.get_executor())
        assert set(client.scheduler_info()["workers"]) != before, "no worker was killed"

        ghost = types.ModuleType("ghost")
        exec("def haunt(config): return []", ghost.__dict__)
        sys.modules["ghost"] = ghost  # here, and on no worker
        with pytest.raises(ExceptionGroup) as caught:
            sweep(ghost.haunt, CONFIGS[:1], tmp_path / "ghost", client.get_executor())
        assert "No module named 'ghost'" in str(caught.value.exceptions[0])
    assert [result.rows for result in results] == [result.rows for result in serial]
    assert runs(log) == dict.fromkeys(range(6), 1)
