"""Runs: stored once, resumed, on executors; and nothing stored is lost, whatever goes wrong."""

import errno
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from study import grids
from study.grids import CONFIG, LAPTOP, declared, registry, rows_of

from widebnn import data
from widebnn.study import Results, Rows, config_hash, load, place
from widebnn.study.compiling import compiling
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
    assert {"seconds", "device", "commit", "versions", "peak_bytes"} <= first.provenance.keys()
    assert first.provenance["peak_bytes"]["host"] > 1e6
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


def test_parts_run_on_an_executor(tmp_path):
    grid = registry(grids.grid)  # which has a name, by which it goes there
    with ThreadPoolExecutor(2) as executor:
        found = grid.run("grid", "laptop", tmp_path, executor=executor)
    assert found.rows == LAPTOP_ROWS == grid.run("grid", "laptop", tmp_path).rows


def test_results_of_another_configuration_are_kept(grid, tmp_path):
    grid.run("grid", "smoke", tmp_path)
    before = (tmp_path / "grid_smoke.json").read_text()
    other = registry(declared(pytest.fail, scales={"smoke": LAPTOP}))
    with pytest.raises(FileExistsError, match=r"grid_smoke\.json of another configuration, which is kept"):
        other.run("grid", "smoke", tmp_path)
    assert (tmp_path / "grid_smoke.json").read_text() == before


@pytest.mark.parametrize("keep", [0, 1, 100, -30])
def test_damaged_results_are_refused_and_kept(grid, tmp_path, keep):
    grid.run("grid", "smoke", tmp_path)
    path = tmp_path / "grid_smoke.json"
    damaged = path.read_text()[:keep]
    path.write_text(damaged)
    for attempt in (grid.run, grid.summarise):
        with pytest.raises(ValueError, match=r"grid_smoke\.json is no results file of widebnn, or a damaged"):
            attempt("grid", "smoke", tmp_path)
    assert path.read_text() == damaged


def test_results_that_lack_a_part_are_damaged(grid, tmp_path):
    grid.run("grid", "smoke", tmp_path)
    path = tmp_path / "grid_smoke.json"
    content = json.loads(path.read_text())
    del content["rows"]
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="a damaged one"):
        grid.run("grid", "smoke", tmp_path)


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
    assert len(names(tmp_path)) == 2  # the other two parts, and no half of one
    calls.clear()
    assert grid.run("grid", "laptop", tmp_path, resume=True).rows == LAPTOP_ROWS
    assert calls == [4]


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
    for attempt in (grid.run, grid.summarise):
        with pytest.raises(
            ValueError, match=r"results must be a folder that is new.*holds letter\.txt and none"
        ):
            attempt("grid", "smoke", tmp_path)
    with pytest.raises(NotADirectoryError, match=r"results must be a folder; letter\.txt is a file"):
        grid.run("grid", "smoke", tmp_path / "letter.txt")
    assert not calls and names(tmp_path) == ["letter.txt"]


def record(folder, **provenance):
    """What the run at smoke scale is said to have taken."""
    path = folder / "grid_smoke.json"
    content = json.loads(path.read_text())
    content["provenance"] |= {"device": "a slow one", "peak_bytes": {"host": 7}} | provenance
    path.write_text(json.dumps(content))


def test_a_forecast_is_of_the_same_scale_or_scaled_by_operations_and_parts(grid, tmp_path):
    assert grid.forecast("grid", "smoke", tmp_path) is None
    grid.run("grid", "smoke", tmp_path)
    record(tmp_path, seconds=30.0, compile_seconds=24.0)
    found = grid.forecast("grid", "smoke", tmp_path)
    assert found[:3] == (30.0, 24.0, {"host": 7})
    assert found.basis == "as it took on a slow one; 24 s to compile 2 parts, measured there"
    found = grid.forecast("grid", "laptop", tmp_path)
    work, compiles = 6 * (2 + 4 + 8) / (2 + 4), 24 * 3 / 2
    assert found[:2] == pytest.approx((work + compiles, compiles)) and found.peak_bytes == {}
    assert found.basis == (
        "an estimate, from 30 s at smoke scale on a slow one: "
        "14 s by operations, and 36 s to compile 3 parts, measured there"
    )
    shipped = registry(declared(), folder=tmp_path)  # on record there too
    assert shipped.forecast("grid", "laptop", "elsewhere") == found


@pytest.mark.parametrize(("seconds", "compiled"), [(100.0, 30.0), (7.0, 7.0)])
def test_compiling_is_guessed_where_it_is_not_on_record(grid, tmp_path, seconds, compiled):
    """15 s a part, and no more than all."""
    grid.run("grid", "smoke", tmp_path)
    record(tmp_path, seconds=seconds, compile_seconds=None)
    found = grid.forecast("grid", "laptop", tmp_path)
    assert found.compile_seconds == pytest.approx(compiled * 3 / 2)
    assert found.seconds == pytest.approx((seconds - compiled) * 14 / 6 + compiled * 3 / 2)
    assert "to compile 3 parts, a guess, 15 s for a part" in found.basis


def test_what_a_run_takes_to_compile_is_on_record(tmp_path):
    def compiles(config):
        @jax.jit
        def program(x):
            return jnp.sin(x) * config.widths[0]

        yield {"value": float(program(1.0))}

    grid = registry(declared(compiles))
    start = time.perf_counter()
    made = grid.run("grid", "smoke", tmp_path).provenance
    assert 0 <= made["compile_seconds"] <= made["seconds"] <= time.perf_counter() - start + 0.1
    with compiling() as noted:
        list(compiles(CONFIG))
    assert noted and all(0 < seconds < 10 for seconds in noted)
    with compiling() as nothing:
        pass
    list(compiles(CONFIG))
    assert not nothing


def test_summaries_are_of_the_largest_scale_unless_told(grid, tmp_path):
    for scale, rows in (("smoke", 4), ("laptop", 6)):
        grid.run("grid", scale, tmp_path)
        (entry,) = grid.summarise("H-F1", results=tmp_path)
        assert (entry.claim.id, entry.scale, entry.findings[0].value) == ("H-F1", scale, rows)
    (entry,) = grid.summarise("grid", "smoke", tmp_path)
    assert entry.findings[0].value == 4
    assert "by the rule, at smoke scale: reproduced" in str(entry)


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
    for seconds, device, peak in ((1.0, "a", {"host": 5}), (2.0, "b", {"host": 3, "device": 9})):
        made = {
            "seconds": seconds,
            "compile_seconds": seconds / 4,
            "device": device,
            "commit": None,
            "versions": {"jax": "1"},
            "peak_bytes": peak,
        }
        parts.append(Results(Rows(), {}, made))
    found = gather(tmp_path / "r.json", CONFIG, [], parts)
    assert found.provenance == {
        "seconds": 3.0,
        "compile_seconds": 0.8,
        "device": "a; b",
        "commit": None,
        "versions": {"jax": "1"},
        "peak_bytes": {"host": 5, "device": 9},
    }
