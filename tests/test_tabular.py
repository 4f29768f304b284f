"""The benchmark on real tables: its scores against quadrature, its rows and tables, and what it refuses."""

import dataclasses
import json
import math
import re
from functools import partial
from importlib.util import find_spec

import jax
import numpy as np
import pytest
from scipy import integrate, stats

import widebnn as wb
from benchmarks.tabular import ensemble, rows
from benchmarks.tabular.__main__ import main
from benchmarks.tabular.data_sets import DATA_SETS, Table, split
from benchmarks.tabular.methods import METHODS, OURS, Fitted, Method
from benchmarks.tabular.rows import Row, read, run
from benchmarks.tabular.scores import Mixture, coverage, crps, scores
from benchmarks.tabular.summary import Estimate, summaries
from benchmarks.tabular.units import Units
from widebnn.tables import folder as results_folder

SHAPES = {
    "diabetes": (442, 10),
    "star98": (303, 12),
    "engel": (235, 1),
    "grunfeld": (220, 3),
    "sunspots": (300, 9),
    "wine": (178, 12),
}


def mixture(num_components, num_inputs=3):
    rng = np.random.default_rng(num_components)
    shape = (num_components, num_inputs)
    return Mixture(rng.normal(2, 3, size=shape), rng.uniform(0.3, 2, size=shape))


def distribution(mixture, i):
    return lambda z: stats.norm.cdf(z, mixture.means[:, i], mixture.stds[:, i]).mean()


def test_crps_is_its_integral():
    """∫ (F(z) − 1{z ≥ y})² dz."""
    forecast, y = mixture(5), np.array([-4.0, 2.0, 9.0])
    for i, found in enumerate(crps(forecast, y)):
        cdf = distribution(forecast, i)
        below, above = (
            integrate.quad(lambda z, cdf=cdf, step=step: (cdf(z) - step) ** 2, *ends, limit=200)[0]
            for step, ends in ((0, (-40, y[i])), (1, (y[i], 40)))
        )
        assert found == pytest.approx(below + above, rel=1e-6)


def test_coverage_is_that_of_central_intervals():
    one = Mixture(np.zeros((1, 4)), np.ones((1, 4)))
    assert coverage(one, np.array([-1.6, 1.6, -1.7, 1.7])) == 0.5
    forecast = Mixture(np.array([[0.0], [10.0]]), np.array([[1.0], [2.0]]))
    lower = stats.norm.ppf(0.1)  # half of the mixture has all of this tail
    assert coverage(forecast, np.array([lower + 0.01])) == 1
    assert coverage(forecast, np.array([lower - 0.01])) == 0


def test_scores_of_a_forecast_by_hand():
    forecast = Mixture(np.array([[0.0, 0.0], [2.0, 2.0]]), np.ones((2, 2)))
    found = scores(forecast, np.array([1.0, 4.0]))
    assert found.rmse == pytest.approx(math.sqrt(9 / 2))
    assert found.nll == pytest.approx(
        -np.log(stats.norm.pdf([[1, 4], [1, 2]]).mean(axis=0)).mean()  # distances from the two components
    )
    assert found.coverage == 0.5


@pytest.mark.parametrize("name", DATA_SETS)
def test_sets_are_whole(name):
    if name not in ("diabetes", "wine") and not find_spec("statsmodels"):
        with pytest.raises(ImportError, match=f"{name}.* needs statsmodels"):
            DATA_SETS[name]()
        return
    table = DATA_SETS[name]()
    assert table.x.shape == SHAPES[name] and table.y.shape == (SHAPES[name][0],)
    assert np.isfinite(table.x).all() and np.isfinite(table.y).all()
    assert (table.x.std(axis=0) > 0).all() and table.y.std() > 0


def test_splits_share_no_row_and_leave_none_out():
    table = Table(np.arange(50.0)[:, None], np.arange(50.0))
    train, test = split(table, 3)
    assert (len(train.y), len(test.y)) == (45, 5)
    assert sorted([*train.y, *test.y]) == list(range(50))
    np.testing.assert_array_equal(train.x[:, 0], train.y)
    np.testing.assert_array_equal(split(table, 3).test.y, test.y)
    assert set(split(table, 4).test.y) != set(test.y)


def test_units_are_undone():
    rng = np.random.default_rng(0)
    table = Table(np.column_stack([rng.normal(5, 3, 40), np.ones(40)]), rng.normal(7, 2, 40))
    units = Units.of(table)
    x, y = units.table(table)
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(x.std(axis=0), [1, 0], atol=1e-12)  # the second column never changes
    back = units.mixture(y[None], np.ones((1, 40)))
    np.testing.assert_allclose(back.means[0], table.y)
    np.testing.assert_allclose(back.stds, table.y.std())


def noisy_line(n=60):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(n, 2))
    return Table(x, 100 + 10 * x[:, 0] + rng.normal(size=n))


@pytest.mark.slow
@pytest.mark.usefixtures("float32", "mixed_dtypes")
@pytest.mark.parametrize("name", [name for name in METHODS if name != "bde"])
def test_methods_predict_a_line_with_noise(name, monkeypatch):
    """The deviation of the targets is 12, that of the noise 1."""
    scales = {"noise_std": 0.1, "readout_std": 1.0, "weight_std": 1.4, "bias_std": 0.3}
    short = {"width": 16, "num_chains": 2, "num_samples": 50, "burn_in": 100, "scales": scales}
    if name != "NNGP":  # which has no chains
        monkeypatch.setattr(wb, "BNNRegressor", partial(wb.BNNRegressor, **short))
    monkeypatch.setattr(ensemble, "LEARNING_RATE", 1e-2)
    train, test = split(noisy_line(), 0)
    with jax.numpy_rank_promotion("allow"):
        found = scores(METHODS[name].fit(train, 0).predict(test.x), test.y)
    assert found.rmse < 4 and found.crps < 2.5 and found.nll < 3.5
    assert 0 <= found.coverage <= 1


@pytest.fixture
def fits(monkeypatch):
    """Two methods that predict constants, and the fits that were made."""
    made = []

    def constant(value):
        def fit(table, seed):
            made.append((value, seed))
            return Fitted(lambda x: Mixture(np.full((1, len(x)), value), np.ones((1, len(x)))), "converged")

        return fit

    found = {"BNNRegressor": Method(constant(100.0), "widebnn"), "NNGP": Method(constant(101.0), "widebnn")}
    monkeypatch.setattr(rows, "METHODS", found)
    monkeypatch.setattr(rows, "DATA_SETS", {"engel": noisy_line, "wine": lambda: noisy_line(40)})
    return made


def test_a_run_goes_on_where_it_ended(fits, tmp_path):
    path = tmp_path / "rows.jsonl"
    names, both = ["engel", "wine"], ["BNNRegressor", "NNGP"]
    first = list(run(path, names[:1], both, [0]))
    assert [row.place for row in first] == [0, 0] and read(path) == first
    rest = list(run(path, names, both, [0, 1, 2]))
    assert len({row.key for row in [*first, *rest]}) == len([*first, *rest]) == 2 * (3 + 3)
    assert len(fits) == 12 and read(path) == [*first, *rest]
    assert list(run(path, names, both, [0, 1, 2])) == [] and len(fits) == 12
    assert all(row.seconds >= 0 and row.version.startswith(f"widebnn {wb.__version__}") for row in rest)


def test_a_row_holds_the_scores_of_its_split(fits, tmp_path):
    (row,) = run(tmp_path / "rows.jsonl", ["engel"], ["BNNRegressor"], [5])
    y = split(noisy_line(), 5).test.y
    known = scores(Mixture(np.full((1, len(y)), 100.0), np.ones((1, len(y)))), y)
    assert (row.rmse, row.nll) == pytest.approx((known.rmse, known.nll), rel=1e-4)


def row(method, split, rmse, said="", place=1, seconds=1.0):
    return Row("engel", method, split, rmse, 0.0, 0.0, 0.9, seconds, place, said, "x 1", "cpu", 1.0)


def test_differences_are_paired():
    ours = [row("BNNRegressor", i, rmse, "converged, ESS 201") for i, rmse in enumerate((1.0, 2.0, 4.0))]
    theirs = [row("NNGP", 0, 1.5, seconds=9.0, place=0), row("NNGP", 2, 3.5), row("NNGP", 5, 8.0)]
    ours = [dataclasses.replace(row, cpu_seconds=0.5, place=row.split) for row in ours]
    mine, other = summaries([*theirs, *ours])
    assert (mine.method, mine.num_converged, other.num_converged) == ("BNNRegressor", 3, 0)
    error = np.std([1, 2, 4], ddof=1) * math.sqrt(1 / 3 + 1 / 9)  # splits overlap
    assert mine.scores["rmse"] == pytest.approx((7 / 3, error))
    assert (other.num_splits, other.num_common) == (3, 2)
    assert other.differences["rmse"] == pytest.approx((0.0, math.sqrt(0.5 * (1 / 2 + 1 / 9))))
    assert (other.median_seconds, other.first_seconds) == (1.0, 9.0)
    assert mine.cpu_seconds == 0.5 and math.isnan(other.cpu_seconds)


def test_one_split_has_no_error():
    assert math.isnan(summaries([row("BNNRegressor", 0, 1.0, place=0)])[0].scores["rmse"].error)
    assert str(Estimate(1.23456, math.nan)) == "1.23"
    assert str(Estimate(1.23456, 0.0123)) == "1.235 ± 0.012"
    assert str(Estimate(0.09, 1e-17)) == "0.090 ± 0.000"  # rounding alone


def test_the_table_is_printed_and_stored(fits, tmp_path, capsys):
    path, stored = tmp_path / "rows.jsonl", tmp_path / "tabular.json"
    made = list(run(path, ["engel"], ["BNNRegressor", "NNGP"], [1, 0]))
    assert main(["table", "--rows", str(path), "--write", str(stored)]) == 0
    printed = capsys.readouterr().out
    assert "| engel | BNNRegressor | 2 |" in printed and "less ours" in printed
    mine, other = json.loads(stored.read_text())["fits"]
    assert (mine["method"], other["method"]) == ("BNNRegressor", "NNGP")
    assert mine["split"] == [0, 1] and other["rmse"] == [made[3].rmse, made[1].rmse]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--methods", "forest"], "method must be one of .*'bde'.*; got 'forest'"),
        (["run", "--splits", "20"], "split must be below 20; got 20"),
        (["table", "--rows", "nowhere.jsonl"], "rows must name a file with rows of a run.*'nowhere.jsonl'"),
    ],
)
def test_what_is_refused(arguments, message, tmp_path, capsys):
    paths = [] if "--rows" in arguments else ["--rows", str(tmp_path / "rows.jsonl")]
    assert main([*arguments, *paths]) == 1
    assert not (tmp_path / "rows.jsonl").exists()
    assert re.search(message, capsys.readouterr().err)


def test_shipped_rows_are_whole():
    content = json.loads((results_folder() / "tabular.json").read_text())
    fits = [
        Row(**{name: value[i] if isinstance(value, list) else value for name, value in part.items()})
        for part in content["fits"]
        for i in range(len(part["split"]))
    ]
    assert len({row.key for row in fits}) == len(fits)
    assert {(row.data, row.method) for row in fits} == {(d, m) for d in DATA_SETS for m in METHODS}
    for row in fits:
        assert min(row.rmse, row.crps, row.seconds) > 0 and math.isfinite(row.nll) and 0 <= row.coverage <= 1
        assert row.method != OURS or row.said
