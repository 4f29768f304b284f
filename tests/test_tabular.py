"""The benchmark on small tables: its scores against quadrature, and its rows."""

import json
import math
from importlib.util import find_spec

import jax
import numpy as np
import pytest
from scipy import integrate, stats

import widebnn as wb
from benchmarks.tabular import ensemble, rows
from benchmarks.tabular.data_sets import CLASSES, DATA_SETS, NUMBERS, Table, split
from benchmarks.tabular.methods import CLASSIFIERS, REGRESSORS, Fitted, Method
from benchmarks.tabular.rows import read, run, shipped
from benchmarks.tabular.scores import LEVELS, Mixture, Quantiles, crps
from widebnn.tables import folder as results_folder

OF_STATSMODELS = "star98", "engel", "grunfeld", "sunspots"


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


def test_scores_of_a_forecast_by_hand():
    """The interval is central."""
    found = Mixture(np.zeros((1, 4)), np.ones((1, 4))).scores(np.array([-1.6, 1.6, -1.7, 1.7]))
    assert found["coverage"] == 0.5 and found["width"] == pytest.approx(2 * stats.norm.isf(0.05))
    forecast = Mixture(np.array([[0.0, 0.0], [2.0, 2.0]]), np.ones((2, 2)))
    assert forecast.scores(np.array([1.0, 4.0]))["rmse"] == pytest.approx(math.sqrt(9 / 2))


def test_quantiles_have_the_crps_of_their_atoms_and_no_nll():
    """E|Y − y| − ½ E|Y − Y′| over ten equal atoms."""
    rng = np.random.default_rng(0)
    atoms, y = rng.normal(size=(len(LEVELS), 3)), np.array([-0.5, 0.1, 9.0])
    found = Quantiles(np.zeros(3), atoms).scores(y)
    apart = np.abs(atoms[:, None] - atoms).mean(axis=(0, 1)) / 2
    assert found["crps"] == pytest.approx((np.abs(atoms - y).mean(axis=0) - apart).mean())
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean(y**2))) and "nll" not in found
    assert found["width"] == pytest.approx(np.ptp(atoms, axis=0).mean())


@pytest.mark.parametrize("name", DATA_SETS)
def test_sets_are_whole(name):
    if name in OF_STATSMODELS and not find_spec("statsmodels"):
        with pytest.raises(ImportError, match=f"{name}.* needs statsmodels"):
            DATA_SETS[name]()
        return
    table = DATA_SETS[name]()
    assert table.x.ndim == 2 and table.y.shape == (len(table.x),)
    assert np.isfinite(table.x).all() and np.isfinite(table.y).all()
    assert (name == "digits" or (table.x.std(axis=0) > 0).all()) and table.y.std() > 0
    assert (name in CLASSES) == (table.y.dtype.kind == "i")


def test_splits_share_no_row_and_leave_none_out():
    table = Table(np.arange(50.0)[:, None], np.arange(50.0))
    train, test = split(table, 3)
    assert (len(train.y), len(test.y)) == (45, 5)
    assert sorted([*train.y, *test.y]) == list(range(50))
    np.testing.assert_array_equal(train.x[:, 0], train.y)
    np.testing.assert_array_equal(split(table, 3).test.y, test.y)
    assert set(split(table, 4).test.y) != set(test.y)
    assert len(split(Table(table.x, table.y.astype(int)), 3).test.y) == 12  # of classes


def noisy_line(n=60):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(n, 2))
    return Table(x, 100 + 10 * x[:, 0] + rng.normal(size=n))


@pytest.mark.slow
@pytest.mark.usefixtures("float32", "mixed_dtypes")
@pytest.mark.parametrize("name", sorted(REGRESSORS.keys() - {"bde", "laplace-torch"}))
def test_methods_predict_a_line_with_noise(name, monkeypatch):
    """The deviation of the targets is 12, that of the noise 1."""
    monkeypatch.setattr(ensemble, "LEARNING_RATE", 1e-2)
    train, test = split(noisy_line(), 0)
    with jax.numpy_rank_promotion("allow"):
        found = REGRESSORS[name].fit(train, 0).predict(test.x).scores(test.y)
    assert found["rmse"] < 5 and found["crps"] < 2.5 and found.get("nll", 0) < 3.5
    assert 0 <= found["coverage"] <= 1


@pytest.mark.slow
@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_methods_tell_classes_apart(name):
    x, y = noisy_line(120)
    train, test = split(Table(x, (y > 100).astype(int)), 0)
    found = CLASSIFIERS[name].fit(train, 0).predict(test.x).scores(test.y)
    assert found["accuracy"] > 0.8 and found["nll"] < 0.6 and 0 <= found["ece"] < 0.4


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
    monkeypatch.setattr(rows, "REGRESSORS", found)
    monkeypatch.setattr(rows, "NUM_SPLITS", 6)
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
    assert all(min(row.fit_seconds or 0, row.predict_seconds or 0) >= 0 for row in rest)
    assert all(row.version.startswith(f"widebnn {wb.__version__}") for row in rest)


def test_rows_are_shipped_in_columns(fits, tmp_path):
    path = tmp_path / "rows.jsonl"
    made = list(run(path, ["engel"], ["BNNRegressor", "NNGP"], [1, 0]))
    mine, other = json.loads(shipped(path))["fits"]
    assert (mine["method"], other["method"]) == ("BNNRegressor", "NNGP")
    assert mine["split"] == [0, 1] and other["rmse"] == [made[3].scores["rmse"], made[1].scores["rmse"]]


def test_shipped_rows_are_whole():
    """But for bde, run earlier on six tables, and for what is of one use or too slow."""
    content = json.loads((results_folder() / "tabular.json").read_text())
    may_lack = {"bde", "noise per input", "GaussianProcessClassifier"}
    for key, sets, methods in (("fits", NUMBERS, REGRESSORS), ("classes", CLASSES, CLASSIFIERS)):
        found = {(fit["data"], fit["method"]): fit for fit in content[key]}
        assert len(found) == len(content[key])
        left_out = {(data, name) for data in sets for name in methods} - found.keys()
        assert {name for _, name in left_out} <= may_lack
        for fit in found.values():
            assert fit["split"] == list(range(5)) and np.isfinite(fit.get("nll", 0)).all()
            names = ("rmse", "crps", "width") if key == "fits" and fit["method"] != "bde" else ()
            assert min([min(fit[name]) for name in names], default=1) > 0
