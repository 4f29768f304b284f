"""Experiments: parts make the whole, runs are stored once and resumed, and nothing stored is lost."""

import hashlib
import json
import re
import textwrap
from pathlib import Path

import pytest

import widebnn as wb
from book.experiments.experiment import experiment
from book.experiments.findings import Finding
from widebnn.tables import Rows, read

RESULTS = Path(__file__).parents[2] / "book" / "results"
SETTINGS = {
    "defaults": {"widths": [2, 4, 8], "steps": [30, 20, 10], "num_repeats": 2},
    "smoke": {"widths": [2, 4], "steps": [30, 20]},
    "laptop": {},
}


def rows_of(widths, steps, num_repeats):
    for width, num_steps in zip(widths, steps):
        for repeat in range(num_repeats):
            yield {"width": width, "steps": num_steps, "repeat": repeat, "ess": None}


ALL = list(rows_of((2, 4, 8), (30, 20, 10), 2))


def declared(function=rows_of, **options):
    """An experiment over widths, whose steps go with them."""

    @experiment(SETTINGS, **({"parts": (("widths", "steps"),)} | options))
    def grid(widths, steps, num_repeats):
        """Rows of a grid."""
        return function(widths, steps, num_repeats)

    @grid.claim("H-F1")
    def count(rows):
        yield Finding("rows", len(rows), above=0)

    return grid


@pytest.fixture
def calls():
    """The widths that were computed."""
    return []


@pytest.fixture
def grid(calls):
    def noted(widths, steps, num_repeats):
        calls.extend(widths)
        yield from rows_of(widths, steps, num_repeats)

    return declared(noted)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_parts_make_the_whole_and_go_together():
    one = declared()
    parts = one.parts(one.settings("laptop"))
    assert [part["steps"] for part in parts] == [(30,), (20,), (10,)]
    assert [row for part in parts for row in one(**part)] == ALL
    assert len(declared(parts=()).parts(one.settings("laptop"))) == 1
    assert len(declared(parts=("widths", "steps")).parts(one.settings("smoke"))) == 4
    assert (one.name, one.title) == ("grid", "Rows of a grid")


def test_a_setting_or_scale_that_is_not_there_is_refused(grid, tmp_path, calls):
    with pytest.raises(ValueError, match="setting must be .* 'steps', 'widths'; got 'width'"):
        grid.run("smoke", tmp_path, width=3)
    with pytest.raises(ValueError, match="scale must be one of 'laptop', 'smoke'; got 'paper'"):
        grid.run("paper", tmp_path)
    assert not calls and not names(tmp_path)


def test_a_run_is_stored_once(calls, grid, tmp_path):
    folder, rows = tmp_path / "new", []
    first = grid.run("smoke", folder, on_row=rows.append)
    assert first.rows == ALL[:4] == rows and isinstance(first.rows, Rows)
    assert names(folder) == ["grid_smoke.json"] and not list(folder.glob("*.parts"))
    assert first == read(folder / "grid_smoke.json") == grid.run("smoke", folder)
    assert (first.name, first.scale) == ("grid", "smoke")
    assert first.source.startswith("smoke scale, 2 repeats; 0 s on ")
    assert first.settings == {"widths": [2, 4], "steps": [30, 20], "num_repeats": 2}
    assert first.provenance.keys() == {"seconds", "device", "commit", "versions"}
    assert calls == [2, 4]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError("out of luck")])
def test_an_interrupted_run_goes_on_where_it_was(calls, grid, tmp_path, stop):
    def stopped(widths, steps, num_repeats):
        if widths == (8,):
            raise stop
        yield from rows_of(widths, steps, num_repeats)

    with pytest.raises((KeyboardInterrupt, RuntimeError)):
        declared(stopped).run("laptop", tmp_path)
    stored = names(tmp_path)
    with pytest.raises(FileExistsError, match=r"other settings, which are kept \(num_repeats\)"):
        grid.run("laptop", tmp_path, num_repeats=3)
    assert names(tmp_path) == stored and not calls
    found = grid.run("laptop", tmp_path)
    assert found.rows == ALL and calls == [8] and names(tmp_path) == ["grid_laptop.json"]


def test_results_that_were_edited_are_refused_and_kept(calls, grid, tmp_path):
    grid.run("smoke", tmp_path)
    path = tmp_path / "grid_smoke.json"
    path.write_text(path.read_text().replace('"width": 2', '"width": 3', 1))
    edited = path.read_text()
    calls.clear()
    with pytest.raises(ValueError, match=r"grid_smoke\.json was edited"):
        grid.run("smoke", tmp_path)
    assert not calls and path.read_text() == edited


def test_shipped_results_are_of_the_largest_scale_unless_told():
    assert wb.results("mixing_over_width").scale == "colab"
    assert wb.results("mixing_over_width", "laptop").scale == "laptop"


def test_shipped_rows_are_those_that_were_measured():
    """Whatever becomes of settings and formats: SHA-256 of the rows as they came from their runs."""
    wanted = json.loads(Path(__file__).with_name("measured_rows.json").read_text())
    found = {
        path.name: hashlib.sha256(json.dumps(json.loads(path.read_text())["rows"]).encode()).hexdigest()
        for path in RESULTS.glob("*_*.json")
    }
    assert found == wanted


def test_the_experiment_that_the_page_on_adding_one_shows_runs(tmp_path):
    page = (Path(__file__).parents[2] / "book/experiments/README.md").read_text()
    found: dict = {}
    exec(textwrap.dedent(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]), found)
    walk = found["walk"]
    assert [row["steps"] for row in walk.run("smoke", tmp_path).rows] == [10, 100]
    (finding,) = walk.findings["X-9"](walk.run("laptop", tmp_path))
    assert finding.holds and finding.error
