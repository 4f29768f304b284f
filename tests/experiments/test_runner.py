"""Runs: stored once, resumed, on executors; and nothing stored is lost, whatever goes wrong."""

import dataclasses
import errno
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from widebnn import data, experiments
from widebnn.experiments import Experiment, Finding, config_hash, load
from widebnn.study import run as runner
from widebnn.study.results import gather

from .test_experiment import Grid, grid

CONFIG = Grid(widths=(2, 4), steps=(30, 20), taus=(0.1,))
LAPTOP = dataclasses.replace(CONFIG, widths=(2, 4, 8), steps=(30, 20, 10))


class Stopped(KeyboardInterrupt):
    """The user stops a run."""


@pytest.fixture
def calls(monkeypatch):
    """An experiment over width, and the widths that were computed."""
    seen = []

    def function(config, on_row=lambda row: None):
        seen.extend(config.widths)
        return grid(config, on_row)

    declare(monkeypatch, function)
    monkeypatch.setattr(runner, "SHIPPED", Path("nothing is shipped"))
    return seen


def declare(monkeypatch, function, configs=None):
    configs = configs or {"smoke": CONFIG, "laptop": LAPTOP}
    options = {"over": (("widths", "steps"),), "effort": lambda c: sum(c.widths)}
    one = Experiment("suprema", "a grid in its place", configs, function, **options)
    monkeypatch.setitem(experiments.DECLARED, "suprema", one)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_run_is_stored_once(calls, tmp_path):
    folder, rows = tmp_path / "new", []
    first = experiments.run("suprema", "smoke", folder, on_row=rows.append)
    assert first.rows == grid(CONFIG) == rows
    assert names(folder) == ["suprema_smoke.json"] and not list(folder.glob("*.parts"))
    assert first == load(folder / "suprema_smoke.json", CONFIG)
    assert {"seconds", "device", "commit", "versions", "peak_bytes"} <= first.provenance.keys()
    assert first.provenance["peak_bytes"]["host"] > 1e6
    assert experiments.run("V-T2", "smoke", folder) == first  # by the row that it serves
    assert calls == [2, 4]


def test_the_scale_is_that_of_the_environment(calls, tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEBNN_SCALE", "laptop")
    experiments.run("suprema", results=tmp_path)
    assert names(tmp_path) == ["suprema_laptop.json"] and calls == [2, 4, 8]


def test_an_interrupted_run_goes_on_where_it_was(calls, tmp_path, monkeypatch):
    seen = list(calls)

    def stopped(config, on_row=lambda row: None):
        if config.widths == (8,):
            raise Stopped
        seen.extend(config.widths)
        return grid(config, on_row)

    complete = experiments.DECLARED["suprema"]
    declare(monkeypatch, stopped)
    with pytest.raises(Stopped):
        experiments.run("suprema", "laptop", tmp_path)
    assert seen == [2, 4]
    stored = names(tmp_path)
    with pytest.raises(FileExistsError, match=r"2 of 3 parts of an interrupted run: resume it \(--resume\)"):
        experiments.run("suprema", "laptop", tmp_path)
    assert names(tmp_path) == stored

    monkeypatch.setitem(experiments.DECLARED, "suprema", complete)
    assert experiments.run("suprema", "laptop", tmp_path, resume=True).rows == grid(LAPTOP)
    assert calls == [8]
    assert names(tmp_path) == ["suprema_laptop.json"]


def test_parts_of_a_changed_configuration_do_not_mix(calls, tmp_path, monkeypatch):
    test_an_interrupted_run_goes_on_where_it_was(calls, tmp_path / "one", monkeypatch)
    parts = tmp_path / f"suprema_smoke-{config_hash(LAPTOP)[:12]}.parts"
    parts.mkdir()
    (parts / "old.json").write_text("a part of another time")
    assert experiments.run("suprema", "smoke", tmp_path).rows == grid(CONFIG)
    assert (parts / "old.json").read_text() == "a part of another time"


def test_parts_run_on_an_executor(calls, tmp_path, monkeypatch):
    declare(monkeypatch, grid)  # which has a name, by which it goes there
    with ThreadPoolExecutor(2) as executor:
        found = experiments.run("suprema", "laptop", tmp_path, executor=executor)
    assert found.rows == grid(LAPTOP) == experiments.run("suprema", "laptop", tmp_path).rows


def test_arrays_of_parts_are_those_of_the_whole(tmp_path, monkeypatch):
    declare(monkeypatch, lambda config: [{"width": w, "trace": np.full(w, 0.5)} for w in config.widths])
    monkeypatch.setattr(runner, "SHIPPED", Path("nothing is shipped"))
    experiments.run("suprema", "smoke", tmp_path)
    first, second = load(tmp_path / "suprema_smoke.json", CONFIG).rows
    assert first["trace"].tolist() == [0.5] * 2 and second["trace"].tolist() == [0.5] * 4
    assert len(names(tmp_path)) == 2  # rows and arrays


def test_results_of_another_configuration_are_kept(calls, tmp_path, monkeypatch):
    experiments.run("suprema", "smoke", tmp_path)
    before = (tmp_path / "suprema_smoke.json").read_text()
    declare(monkeypatch, pytest.fail, {"smoke": LAPTOP})
    with pytest.raises(FileExistsError, match=r"suprema_smoke\.json of another configuration, which is kept"):
        experiments.run("suprema", "smoke", tmp_path)
    assert (tmp_path / "suprema_smoke.json").read_text() == before


@pytest.mark.parametrize("keep", [0, 1, 100, -30])
def test_damaged_results_are_refused_and_kept(calls, tmp_path, keep):
    experiments.run("suprema", "smoke", tmp_path)
    path = tmp_path / "suprema_smoke.json"
    damaged = path.read_text()[:keep]
    path.write_text(damaged)
    for attempt in (experiments.run, experiments.summarise):
        with pytest.raises(
            ValueError, match=r"suprema_smoke\.json is no results file of widebnn, or a damaged"
        ):
            attempt("suprema", "smoke", tmp_path)
    assert path.read_text() == damaged


def test_results_that_lack_a_part_are_damaged(calls, tmp_path):
    experiments.run("suprema", "smoke", tmp_path)
    path = tmp_path / "suprema_smoke.json"
    content = json.loads(path.read_text())
    del content["rows"]
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="a damaged one"):
        experiments.run("suprema", "smoke", tmp_path)


def test_a_damaged_part_is_refused_before_anything_runs(calls, tmp_path, monkeypatch):
    parts = tmp_path / f"suprema_laptop-{config_hash(LAPTOP)[:12]}.parts"
    parts.mkdir()
    first = runner.sweeps.place(parts, experiments.DECLARED["suprema"].parts(LAPTOP)[0])
    first.write_text("{")
    with pytest.raises(ValueError, match="a damaged one"):
        experiments.run("suprema", "laptop", tmp_path, resume=True)
    assert not calls and first.read_text() == "{"


def test_a_full_disk_loses_nothing_that_was_stored(calls, tmp_path, monkeypatch):
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
            experiments.run("suprema", "laptop", tmp_path)
    assert caught.value.errno == errno.ENOSPC
    assert any(
        "could not be stored; what was stored before is as it was" in n for n in caught.value.__notes__
    )
    assert len(names(tmp_path)) == 2  # the other two parts, and no half of one
    calls.clear()
    assert experiments.run("suprema", "laptop", tmp_path, resume=True).rows == grid(LAPTOP)
    assert calls == [4]


def test_data_that_are_absent_are_named_once(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEBNN_DATA", str(tmp_path / "absent"))
    declare(monkeypatch, lambda config, on_row=None: data.cifar10(10, 10))
    with pytest.raises(NotADirectoryError, match=r"WIDEBNN_DATA must be a folder of data files.*absent"):
        experiments.run("suprema", "laptop", tmp_path / "results")
    (tmp_path / "absent" / "cifar10").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="holds no CIFAR-10 binary file data_batch_1.bin"):
        experiments.run("suprema", "laptop", tmp_path / "results")


def test_data_of_the_last_part_are_looked_for_before_the_first(calls, tmp_path, monkeypatch):
    declared = dataclasses.replace(
        experiments.DECLARED["suprema"],
        observes=lambda c: [("digits", n) for n in (10, 1_000 * len(c.widths))],
    )
    monkeypatch.setitem(experiments.DECLARED, "suprema", declared)
    with pytest.raises(ValueError, match="num_train is 2,000 but there are 1,797 records"):
        experiments.run("suprema", "smoke", tmp_path)
    assert not calls and not names(tmp_path)


@pytest.mark.parametrize(
    "name", ["gain_over_data", "gain_resnet", "architectures", "step_cost", "elbo_ratio"]
)
def test_experiments_of_several_data_sets_say_which(name, tmp_path, monkeypatch):
    """All that their parts load, and with nothing there the first of them is missed."""
    experiment = experiments.DECLARED[name]
    for config in experiment.configs.values():
        parts = [set(experiment.observes(part)) for part in experiment.parts(config)]
        assert all(len(part) == 1 for part in parts) and set.union(*parts) == set(experiment.observes(config))
    monkeypatch.setenv("WIDEBNN_DATA", "absent")
    with pytest.raises(NotADirectoryError, match="WIDEBNN_DATA must be a folder of data files"):
        experiments.run(name, "paper", tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_folder_of_other_things_is_left_alone(calls, tmp_path):
    (tmp_path / "letter.txt").write_text("dear reader")
    for attempt in (experiments.run, experiments.summarise):
        with pytest.raises(
            ValueError, match=r"results must be a folder that is new.*holds letter\.txt and none"
        ):
            attempt("suprema", "smoke", tmp_path)
    with pytest.raises(NotADirectoryError, match=r"results must be a folder; letter\.txt is a file"):
        experiments.run("suprema", "smoke", tmp_path / "letter.txt")
    assert not calls and names(tmp_path) == ["letter.txt"]


def test_a_row_of_two_experiments_asks_which():
    with pytest.raises(ValueError, match="one of the experiments of V-F6, resnet or tempering"):
        experiments.find("V-F6")
    assert experiments.find("P-F2").name == experiments.find("over_width").name == "over_width"


def test_a_forecast_is_of_the_same_scale_or_scaled_by_operations(calls, tmp_path, monkeypatch):
    assert experiments.forecast("suprema", "smoke", tmp_path) is None
    experiments.run("suprema", "smoke", tmp_path)
    path = tmp_path / "suprema_smoke.json"
    content = json.loads(path.read_text())
    content["provenance"] |= {"seconds": 30.0, "device": "a slow one", "peak_bytes": {"host": 7}}
    path.write_text(json.dumps(content))
    assert experiments.forecast("suprema", "smoke", tmp_path) == (
        30.0,
        {"host": 7},
        "as it took on a slow one",
    )
    seconds, peak, basis = experiments.forecast("suprema", "laptop", tmp_path)
    assert seconds == pytest.approx(30 * (2 + 4 + 8) / (2 + 4)) and peak == {}
    assert "an estimate" in basis and "30 s at smoke scale on a slow one" in basis
    monkeypatch.setattr(runner, "SHIPPED", tmp_path)  # on record there too
    assert experiments.forecast("suprema", "laptop", "elsewhere") == (seconds, peak, basis)


def test_summaries_are_of_the_largest_scale_unless_told(calls, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "CLAIMS", (dataclasses.replace(claim("V-T2"), summarise=count),))
    for scale, rows in (("smoke", 4), ("laptop", 6)):
        experiments.run("suprema", scale, tmp_path)
        ((of, (finding,)),) = experiments.summarise("V-T2", results=tmp_path)
        assert (of.id, finding.value) == ("V-T2", rows)
    ((_, (finding,)),) = experiments.summarise("suprema", "smoke", tmp_path)
    assert finding.value == 4


def claim(name):
    return next(claim for claim in experiments.CLAIMS if claim.id == name)


def count(results):
    return [Finding("rows", len(results.rows), above=0)]


def test_gathered_results_name_all_that_made_them(tmp_path):
    parts = []
    for seconds, device, peak in ((1.0, "a", {"host": 5}), (2.0, "b", {"host": 3, "device": 9})):
        made = {
            "seconds": seconds,
            "device": device,
            "commit": None,
            "versions": {"jax": "1"},
            "peak_bytes": peak,
        }
        parts.append(experiments.Results([], {}, made))
    found = gather(tmp_path / "r.json", CONFIG, [], parts)
    assert found.provenance == {
        "seconds": 3.0,
        "device": "a; b",
        "commit": None,
        "versions": {"jax": "1"},
        "peak_bytes": {"host": 5, "device": 9},
    }
