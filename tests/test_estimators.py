"""Estimators behind scikit-learn's interface: what their users expect."""

import copy
import dataclasses
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from flax import nnx
from scipy import stats
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import widebnn as wb
from widebnn.driver import Draws
from widebnn.estimators import BNNClassifier, BNNRegressor
from widebnn.estimators._classifier import Indicators
from widebnn.estimators._columns import FARTHEST, scaler_of
from widebnn.estimators._draws import moments, quantile
from widebnn.estimators._engine import NUM_PARTICLES, Answer, error_of_interval, error_of_probabilities
from widebnn.models import FCN
from widebnn.targets import LogNormal

from .exact.programs import PROGRAMS

CHAINS = wb.Until(None, None, seconds=1e6)
SHORT = {"width": 32, "num_chains": 2, "num_samples": 8, "thin": 1, "burn_in": 20, "random_state": 0}
SHORT |= {"until": CHAINS}

pytestmark = [pytest.mark.usefixtures("float32"), pytest.mark.filterwarnings("ignore:the run ended after")]


def curve(n=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, size=(n, 1))
    return x, 10 + 5 * np.sin(2 * x[:, 0]) + rng.normal(size=n)


@pytest.fixture(scope="module")
def regressor():
    """By particles."""
    with jax.enable_x64(False):  # before the tests are
        return BNNRegressor(width=64, random_state=0).fit(*curve())


@pytest.fixture(scope="module")
def by_chains():
    """Of fewer rows than units."""
    with jax.enable_x64(False):
        return BNNRegressor(**SHORT).fit(*curve(12))


@pytest.mark.slow
def test_a_curve_and_its_noise(regressor):
    """The noise is 1, and nine in ten new targets lie in their interval."""
    x, y = curve(400, seed=1)
    noise_std = regressor.scales_["noise_std"] * np.std(curve()[1])
    assert 0.75 < noise_std < 1.35
    assert regressor.score(x, y) > 0.85
    lower, upper = regressor.predict_interval(x)
    assert 0.82 < np.mean((lower < y) & (y < upper)) < 0.97
    # the best that can be had is the entropy of the noise
    assert 1.35 < -regressor.log_predictive_density(x, y).mean() < 1.65
    _, std = regressor.predict([[0.0], [6.0]], return_std=True)
    assert std[1] > 1.5 * std[0]


@pytest.mark.slow
def test_moments_of_predictions_agree(regressor):
    x = curve(7, seed=2)[0]
    mean, std = regressor.predict(x, return_std=True)
    draws = regressor.sample_y(x, 2_000, random_state=1)
    assert draws.shape == (7, 2_000)
    same, covariance = regressor.predict(x, return_cov=True)
    np.testing.assert_array_equal(mean, same)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-4)
    score = (draws.mean(axis=1) - mean) / (std / np.sqrt(2_000))
    assert np.abs(score).max() < stats.norm.isf(1e-6 / 14)
    np.testing.assert_allclose(draws.std(axis=1), std, rtol=0.15)
    lower, upper = regressor.predict_interval(x, 0.5)
    assert (lower < mean).all() and (mean < upper).all()


@pytest.mark.slow
def test_a_fit_tells_of_convergence_and_evidence(regressor):
    """Which lies near that of the limit, where c₁ is small."""
    names = {"noise_std", "readout_std", "weight_std", "bias_std"}
    assert regressor.ess_.keys() == regressor.rhat_.keys() == names | {"predictions"}
    assert regressor.scales_.keys() == names
    assert 0.5 < regressor.acceptance_rate_ < 1 and regressor.stopped_ == "converged"
    assert len(regressor.positions_) == NUM_PARTICLES * regressor.num_chains
    wanted = regressor._limit.log_evidence
    assert abs(regressor.log_evidence_ - wanted) < 3 and 0 < regressor.log_evidence_error_ < 1


@pytest.mark.slow
def test_a_long_way_is_for_chains_which_end_when_the_answer_stands(by_chains, monkeypatch, capsys):
    """No key is used twice, by JAX's own check, which takes some ways of handling a batch for a use."""
    monkeypatch.setattr("widebnn.estimators._engine.SHORT_WAY", 0.0)
    model = BNNRegressor(**SHORT | {"until": None, "num_samples": 400, "progress": True})
    with jax.debug_key_reuse(True):
        model.fit(*curve(12)).predict([[0.0]])
    assert "chains, since the potential has a deviation of" in capsys.readouterr().out
    assert model.stopped_ == "converged" and 16 <= len(model.positions_) < 800
    assert by_chains.stopped_ == "num_samples" and not hasattr(model, "log_evidence_")


def test_the_error_of_an_interval_is_that_of_its_ends():
    """Chains that are one Gaussian each: their ends differ as their means do, and by 1.645 deviations."""
    means = np.random.default_rng(0).normal(size=(4, 1, 2_000))
    values = np.stack([0.1 * means, np.ones_like(means)], axis=-1)
    np.testing.assert_allclose(error_of_interval(values), 0.1 / 2 / stats.norm.isf(0.05), rtol=0.05)
    answer = Answer()
    one = values[:2].reshape(1, 2, *values.shape[2:])  # of a single island, where a run was interrupted
    assert answer.of_draws(one) == answer.of_draws(values[:2])
    drift = np.tile(values[:1, :, :], (4, 2, 1, 1))  # of all chains together
    drift[:, 1, :, 0] += 0.1
    assert error_of_interval(drift) == 0
    np.testing.assert_allclose(answer.of_draws(drift), 0.05 / stats.norm.isf(0.05), rtol=0.01)
    values[0, 0, 0] = np.nan
    assert answer.of_draws(values) == math.inf and not answer.is_met(answer.look([], {}, everywhere=True))
    p = np.full((4, 5, 3, 2), 0.5)
    assert error_of_probabilities(p) == 0
    # of four chains: a mean that is off by .01 with a deviation of .02/√4 of each class
    p[0] += np.array([0.04, -0.04])
    np.testing.assert_allclose(error_of_probabilities(p), 0.01 * math.sqrt(2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "num_tables", "least"), [("auto", 5, 0.8), pytest.param(16, 6, 0.83, marks=pytest.mark.nightly)]
)
def test_intervals_hold_where_columns_outnumber_rows(width, num_tables, least):
    """One of forty columns matters, one is constant: the most probable scales alone hold .77 and .79."""
    held = []
    for seed in range(num_tables):
        random = np.random.default_rng(seed)
        x = random.normal(size=(225, 40))
        x[:, 5] = 2.0
        y = np.sin(x[:, 0]) + 0.1 * random.normal(size=225)
        model = BNNRegressor(width, random_state=0).fit(x[:25], y[:25])
        low, high = model.predict_interval(x[25:])
        held.append(np.mean((low <= y[25:]) & (y[25:] <= high)))
    assert least < np.mean(held) < 0.97
    assert model.stopped_ == ("limit" if model.width_ == math.inf else "converged")
    mean, covariance = model.predict(x[25:28], return_cov=True)
    draws = model.sample_y(x[25:28], 4_000, random_state=1)
    assert np.abs((draws.mean(axis=1) - mean) / np.sqrt(np.diag(covariance) / 4_000)).max() < 5


@pytest.mark.slow
def test_widths_are_averaged_by_their_evidence(capsys):
    x, y = curve(20)
    model = BNNRegressor(width=[16, math.inf], random_state=0, progress=True).fit(x, y)
    (low, _, weight), (limit, _, other) = model.evidences_[16], model.evidences_[math.inf]
    np.testing.assert_allclose(weight / other, math.exp(low - limit))
    assert "width       16: log evidence" in capsys.readouterr().out and 0.02 < weight < 0.98
    assert model.width_ == (16 if low > limit else math.inf)
    new = curve(5, seed=1)[0]
    alone = BNNRegressor(width=math.inf).fit(x, y)
    assert (alone.stopped_, alone.ess_, alone.rhat_) == ("limit", {}, {})
    parts = dict(zip((16, math.inf), (each for each, _ in model._averaged)))
    np.testing.assert_allclose(parts[math.inf].predict(new), alone.predict(new))
    mean, std = model.predict(new, return_std=True)
    wanted = weight * parts[16].predict(new) + other * alone.predict(new)
    np.testing.assert_allclose(mean, wanted, atol=0.02 * std.min())
    same, covariance = model.predict(new, return_cov=True)
    np.testing.assert_allclose(same, mean, atol=0.02 * std.min())
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=0.02)
    draws = model.sample_y(new, 4_000)
    assert np.abs((draws.mean(axis=1) - mean) / (std / np.sqrt(4_000))).max() < 5
    assert np.isfinite(model.log_predictive_density(new, mean)).all()


@pytest.mark.parametrize(
    ("slope", "width"), [(-100.0, math.inf), (5 * 64 + 210, 64), (5 * 64 + 190, math.inf)]
)
def test_the_slope_of_the_evidence_chooses_the_width(slope, width, monkeypatch, capsys):
    found = wb.nngp.EvidenceSlope(-50.0, slope, 100.0, 16_384)
    monkeypatch.setattr("widebnn.estimators._regressor.evidence_slope", lambda *args, **options: found)
    monkeypatch.setattr(BNNRegressor, "_sample", lambda model, _: None)
    model = BNNRegressor(progress=True).fit(*curve(12))
    assert model.width_ == width and model.evidence_slope_ is found
    assert f"c₁ = {slope:,.0f} ± 100" in capsys.readouterr().out


def test_a_finite_network_has_the_relevances_of_the_limit(monkeypatch):
    """Its columns are in units of them."""
    monkeypatch.setattr(BNNRegressor, "_sample", lambda model, _: None)
    x, y = friedman(80, 10, 0)
    model = BNNRegressor(width=8).fit(x, y)
    assert model.relevances_.gain > 5 and model._factors.std() > 0.1
    np.testing.assert_allclose(np.mean(model._factors**2), 1)
    known = {"weight_std": 1.4, "bias_std": 0.5}
    bnn = model._network.bnn(10, **known)
    parameters, rows = bnn.template(model._x).inner, model._target(bnn).x
    parameters = jax.tree.map(lambda leaf: jnp.ones(leaf.shape, leaf.dtype), parameters)
    free = bnn.at_scales(**{"layers.0.weight_std": jnp.asarray(model._factors * 1.4)})
    found = [one.embedding(parameters, at) for one, at in ((bnn, rows), (free, model._x))]
    np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-4)


WATCHED = ("noise_std", "predictions")


def keep(regressor, num_draws, **collected):
    """A copy, and what has it keep so many made-up draws of two chains."""
    found = {name: np.random.default_rng(0).normal(size=(2, num_draws, 1)) for name in WATCHED}
    found |= {"positions": regressor.positions_[: 2 * num_draws].reshape(2, num_draws, -1)} | collected
    stats = {"acceptance_rate": np.full((2, num_draws), 0.5)}
    draws = Draws(found, stats, {}, None, 0.1, thin=1, burn_in=0, seconds=1.0, stopped="seconds")
    model = copy.deepcopy(regressor)
    model._scales = {}, {}
    return model, partial(model._keep, draws, dict.fromkeys(WATCHED))


def test_what_never_changes_says_nothing_of_convergence(regressor):
    """As a probability of 0 in float32."""
    predictions = np.random.default_rng(0).normal(size=(2, 8, 3))
    model, call = keep(regressor, 8, predictions=predictions[:, :, :2])
    call()
    wanted = model.ess_, model.rhat_
    predictions[:, :, 2] = 0
    model, call = keep(regressor, 8, predictions=predictions)
    call()
    assert (model.ess_, model.rhat_) == wanted and model.rhat_["predictions"] < 3


def test_draws_that_do_not_predict_are_left_out(regressor):
    """As when σ is held so low that float32 cannot tell K̂ from singular; the fit is not called converged."""
    predictions = np.random.default_rng(0).normal(size=(2, 8, 1))
    predictions[1, 3] = np.nan
    model, call = keep(regressor, 8, predictions=predictions)
    with pytest.warns(wb.ChainWarning, match="1 of 16 draws do not predict and are left out"):
        call()
    np.testing.assert_array_equal(model.positions_, np.delete(regressor.positions_[:16], 11, axis=0))
    assert model.ess_["predictions"] == 0 and model.rhat_["predictions"] == np.inf
    assert model.ess_["noise_std"] > 0
    predictions[:] = np.nan
    with pytest.warns(wb.ChainWarning), pytest.raises(FloatingPointError, match="no draw predicts"):
        call()


def test_a_run_that_ends_after_a_few_draws_is_a_fit(regressor):
    """As by the seconds of `until`, or by Ctrl-C."""
    model, call = keep(regressor, 2)
    with pytest.warns(wb.ChainWarning, match="2 draws of each chain are too few to tell"):
        call()
    assert model.stopped_ == "seconds" and len(model.positions_) == 4
    assert model.ess_ == dict.fromkeys(WATCHED, 0.0) and model.rhat_ == dict.fromkeys(WATCHED, np.inf)
    assert np.isfinite(model.predict([[0.0]])).all()


def test_fill_values_are_refused(regressor):
    """Where a fit or a prediction meets them; far values that others reach, and rare categories, are none."""
    for far in (1e300, -1e20):
        with pytest.raises(ValueError, match="X must lie within 1e.12 standard deviations .* fill value"):
            regressor.predict([[0.0], [far]])
        with pytest.raises(ValueError, match="X must lie within .* fill value"):
            BNNRegressor().fit([[1.0], [far], [2.0], [far], [3.0]], np.arange(5.0))
        mean, std = regressor.predict([[math.copysign(0.9 * FARTHEST, far)]], return_std=True)
        assert np.isfinite(mean).all() and np.isfinite(std).all() and std[0] > 1e6
    x = np.zeros((40, 3))
    x[3, 0], x[:, 1], x[:, 2] = 1, 1e20 * np.arange(40), np.exp(np.linspace(-9, 9, 40))
    assert np.isfinite(BNNRegressor().fit(x, x[:, 2]).predict(x)).all()
    with pytest.raises(ValueError, match="y must lie within .* fill value"):
        BNNRegressor().fit(x, np.where(np.arange(40) == 7, 1e20, np.arange(40)))


@pytest.mark.slow
def test_a_copy_predicts_the_same_and_in_batches(regressor, monkeypatch):
    x = curve(7, seed=2)[0]
    whole = regressor.predict(x)
    np.testing.assert_array_equal(copy.deepcopy(regressor).predict(x), whole)
    monkeypatch.setattr("widebnn.estimators._base.MAX_ROWS", 4)
    np.testing.assert_allclose(regressor.predict(x), whole, rtol=1e-5)


def test_what_is_kept_of_draws_is_bounded(regressor, monkeypatch):
    model = copy.deepcopy(regressor)
    monkeypatch.setattr("widebnn.estimators._base.MAX_BYTES", 1_000_000)
    model._keep_positions(regressor.positions_)
    leaves = jax.tree.leaves(model._kept)
    assert 16 <= len(model.positions_) < len(regressor.positions_)
    assert sum(leaf.nbytes for leaf in leaves) <= 1_000_000
    assert len(model._kept) == len(model.positions_) / 16


@pytest.mark.slow
def test_what_is_kept_predicts_as_the_posterior_does(regressor, by_chains):
    """Also where there are fewer rows than units, and Σ is kept as I less what the data explain."""
    x = curve(5, seed=2)[0]
    for model in (regressor, by_chains):
        mean, variance = model._over_draws(moments, model._inputs(x))
        position = jax.tree.map(lambda leaf: leaf[3], model._kept[0][0])
        wanted = wb.predictive_moments(model._inputs(x))(model._posterior, position)
        np.testing.assert_allclose(mean[3], wanted[0], rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(variance[3], wanted[1], rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("width", [32, math.inf])
def test_a_second_fit_of_a_shape_compiles_nothing(width, by_chains):
    options = SHORT | {"width": width} if width < math.inf else {"width": width}
    for seed in (0, 1):
        before = len(PROGRAMS)
        x, y = curve(12, seed)  # the shapes of the fit above
        if width < math.inf:
            options["num_samples"] = 8 + seed  # other numbers of draws too
        model = BNNRegressor(**options | {"random_state": seed}).fit(x, 3 * y)
        model.predict_interval(x[: 11 + seed])
    assert len(PROGRAMS) == before


def noiseless(n, seed):
    """Tables without noise."""
    x = np.random.default_rng(seed).normal(size=(n, 5))
    half = np.concatenate([x[: n - n // 2], x[: n // 2]])
    return {
        "constant column": (x * [1, 1, 1, 1, 0], x[:, 0]),
        "linear": (x, x @ np.arange(5.0)),
        "quadratic": (x, x[:, 0] ** 2),
        "sine": (x[:, :1], np.sin(3 * x[:, 0])),
        "constant": (x, np.ones(n)),
        "equal rows": (half, half[:, 0]),
        "friedman": make_friedman1(n, n_features=5, noise=0, random_state=seed),
    }


NIGHTLY = [(n, depth, 7) for n in (12, 100, 300, 1_000) for depth in (1, 3)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "depth", "number"), [(40, 2, 2)] + [pytest.param(*of, marks=pytest.mark.nightly) for of in NIGHTLY]
)
def test_tables_without_noise_end_in_an_answer(n, depth, number):
    """Every draw predicts."""
    for seed in range(number):
        for x, y in list(noiseless(n, seed).values())[:number]:
            model = BNNRegressor(**SHORT | {"depth": depth, "burn_in": 12, "random_state": seed}).fit(x, y)
            mean, std = model.predict(x[:4], return_std=True)
            assert np.isfinite(mean).all() and (std > 0).all() and len(model.positions_) == 16


@pytest.mark.slow
def test_infinite_width_is_the_process_at_its_scales():
    x, y = curve()
    model = BNNRegressor(width=math.inf, depth=2, random_state=0).fit(x, y)
    new = curve(300, seed=1)[0]
    with jax.enable_x64(True):
        scales = model.scales_
        below = {name: scales[name] for name in ("weight_std", "bias_std")}
        features = FCN(1, 3, 2, activation="gelu", rngs=nnx.Rngs(0), **below)
        readout = {"weight_std": scales["readout_std"], "bias_std": 0.1 * scales["readout_std"]}
        bnn = wb.BNN(features, 1, scales["noise_std"], **readout)
        units = model._y[:, 0], model._x
        process = wb.nngp.gaussian_process(wb.nngp.nngp_kernel(bnn), units[1], units[0], scales["noise_std"])
        wanted, covariance = process.mean(model._inputs(new)), process.covariance(model._inputs(new))
    unit = y.std()
    found = unit**2 * (np.asarray(covariance) + scales["noise_std"] ** 2 * np.eye(len(new)))
    mean, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(mean, y.mean() + unit * np.asarray(wanted)[:, 0], rtol=1e-5)
    np.testing.assert_allclose(std, np.sqrt(np.diag(found)), rtol=1e-4)
    lower, upper = model.predict_interval(new, 0.9)
    np.testing.assert_allclose((upper - lower) / 2, stats.norm.isf(0.05) * std, rtol=1e-6)
    draws = model.sample_y(new[:5], 4_000, random_state=1)
    error = np.linalg.norm(np.cov(draws) - found[:5, :5]) / np.linalg.norm(found[:5, :5])
    assert draws.shape == (5, 4_000) and error < 0.1


def uneven(n, seed):
    """Rows whose noise grows eightfold from one end of the first column to the other, and its deviations."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, size=(n, 2))
    std = 0.4 * np.exp(0.6 * x[:, 0])
    return x, 3 * np.sin(2 * x[:, 1]) + x[:, 0] + std * rng.normal(size=n), std


@pytest.mark.slow
@pytest.mark.parametrize("width", [pytest.param(32, marks=pytest.mark.nightly), math.inf])
def test_noise_that_varies_from_row_to_row(width):
    """Intervals of quiet and of loud rows hold nine in ten, with an error of .02 from 150 rows in each half.

    An error of 1/√300 in log σ changes a coverage of .9 by a third of it.
    """
    options = SHORT | {"num_samples": 40, "burn_in": 60} if width == 32 else {}
    x, y, std = uneven(300, 0)
    new, y_new, std_new = uneven(2_000, 1)
    is_quiet = new[:, 0] < 0

    def coverages(mean, deviation):
        is_inside = np.abs(y_new - mean) < stats.norm.isf(0.05) * deviation
        return np.array([is_inside[is_quiet].mean(), is_inside[~is_quiet].mean()])

    model = BNNRegressor(**options | {"width": width, "noise": "per input"}).fit(x, y)
    mean, deviation = model.predict(new, return_std=True)
    lower, upper = model.predict_interval(new)
    is_inside = (lower < y_new) & (y_new < upper)
    found = [is_inside[is_quiet].mean(), is_inside[~is_quiet].mean()]
    np.testing.assert_allclose(found, 0.9, atol=0.08)
    assert coverages(mean, np.sqrt(np.mean(deviation**2)))[0] > 0.97  # with one σ
    error = 4 / np.sqrt(2 * 300)
    slopes = model.noise_coefficients_ / x.std(axis=0)
    np.testing.assert_allclose(slopes, [0.6, 0], atol=error)
    at = new[:5]
    np.testing.assert_allclose(
        np.sqrt(np.diag(model.predict(at, return_cov=True)[1])), deviation[:5], rtol=1e-4
    )
    np.testing.assert_allclose(model.sample_y(at, 2_000).std(axis=1), deviation[:5], rtol=0.1)

    model = BNNRegressor(**options | {"width": width}).fit(x, y, noise_std=std)
    mean, of_f = model.predict(new, return_std=True)
    np.testing.assert_allclose(coverages(mean, np.hypot(of_f, std_new)), 0.9, atol=0.05)
    np.testing.assert_allclose(model.sample_y(at, 2_000).std(axis=1), of_f[:5], rtol=0.1)
    assert (of_f < 0.5 * std_new).mean() > 0.9


def test_few_rows_stand_for_many(monkeypatch):
    """What they predict is the process of all rows; of the log evidence half a nat is lost at most."""
    monkeypatch.setattr("widebnn.targets._limit.BLOCK_ROWS", 250)
    x, y, _ = uneven(600, 0)
    process = BNNRegressor(width=math.inf, noise="per input").fit(x, y)._process
    u, few = process.members[0]
    assert len(few.x) < 200
    everything = process.evidence.given_all(u)
    assert 0 <= few.loss - everything.loss < 0.6
    new = uneven(100, 1)[0]
    (mean, of_f), (wanted, of_f_wanted) = (
        given.given(process.evidence.between(u, given.x, new)[0], jointly=True) for given in (few, everything)
    )
    prior = process.evidence.within(u, new)[0]
    std = np.sqrt(np.diag(prior - of_f_wanted))
    np.testing.assert_allclose(mean[:, 0] / std, wanted[:, 0] / std, atol=0.1)
    np.testing.assert_allclose(of_f / np.outer(std, std), of_f_wanted / np.outer(std, std), atol=0.1)

    # where few do not suffice, all are taken, up to a number of rows, and beyond it as many as there may be
    monkeypatch.setattr("widebnn.targets._limit.MAX_INDUCING", 10)
    assert process.evidence.given_rows(u).inner is None
    monkeypatch.setattr("widebnn.targets._limit.MAX_EXACT", 599)
    ten = process.evidence.given_rows(u)
    assert len(ten.x) == 10 and ten.loss > few.loss


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [pytest.param("student_t", marks=pytest.mark.nightly), "poisson"])
def test_outliers_and_counts(likelihood):
    """The density has mass 1, a mean and a deviation that are those of `predict`, and .9 in the interval."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(80, 1))
    curve_at = np.sin(2 * x[:, 0])
    if likelihood == "poisson":
        y, grid = rng.poisson(np.exp(1 + curve_at)), np.arange(60.0)
    else:
        y, grid = 5 + 2 * curve_at + 0.2 * rng.normal(size=80), np.linspace(-45, 55, 4_001)
        y[:6] += 30  # which would raise a mean by 2.2
    options = SHORT | {"num_samples": 20, "burn_in": 60}
    model = BNNRegressor(**options | {"likelihood": likelihood}).fit(x, y)
    new = np.array([[0.8]])
    mean, std = model.predict(new, return_std=True)
    assert abs(mean[0] - (np.exp(1 + np.sin(1.6)) if likelihood == "poisson" else 5 + 2 * np.sin(1.6))) < 1.5
    p = np.exp(model.log_predictive_density(np.tile(new, (len(grid), 1)), grid)) * (grid[1] - grid[0])
    np.testing.assert_allclose(p.sum(), 1, atol=1e-4)
    np.testing.assert_allclose(p @ grid, mean, rtol=1e-3)
    np.testing.assert_allclose(np.sqrt(p @ (grid - mean) ** 2), std, rtol=0.02)
    lower, upper = model.predict_interval(new)
    outside = p[grid < lower].sum(), p[grid > upper].sum()
    assert max(outside) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 400)
    assert p[grid <= lower].sum() > 0.05 - 4 * np.sqrt(0.05 * 0.95 / 400)
    draws = model.sample_y(new, 4_000)
    np.testing.assert_allclose(draws.mean(), mean, atol=4 * std[0] / np.sqrt(4_000))


REFUSED = [
    ({"width": "wide"}, {}, "width must be \"auto\", a number or numbers; got 'wide'"),
    ({"width": []}, {}, "width must hold one width or more"),
    ({"width": [8, 8]}, {}, "each of them once"),
    ({"width": [8, 16], "until": CHAINS}, {}, "width must not be a list where features or until"),
    ({"likelihood": "student_t", "width": [8, 16]}, {}, "width must be finite, and no list"),
    ({"likelihood": "student_t", "width": math.inf}, {}, "width must be finite, and no list, where"),
    ({"features": FCN, "width": math.inf}, {}, "width must be finite where features is given"),
    ({"likelihood": "student_t", "noise": "per input"}, {}, "likelihood must be 'gaussian' where noise"),
    ({"noise": "per input", "scales": {"noise_std": 0.1}}, {}, "scales must not hold noise_std"),
    ({"likelihood": "poisson"}, {"y": np.arange(8) - 1}, "y must hold counts, 0, 1, 2, …, .* got -1"),
    ({"likelihood": "poisson"}, {"y": np.zeros(8)}, "y must hold a count above 0"),
    ({"noise": "per input"}, {"noise_std": np.ones(8)}, "noise_std must not .* where noise='per input'"),
    ({"scales": {"noise_std": 0.1}}, {"noise_std": np.ones(8)}, "noise_std must not be given to fit"),
    ({}, {"noise_std": np.ones(7)}, r"noise_std must have shape \(8,\), or that of y; got \(7,\)"),
    ({}, {"noise_std": np.zeros(8)}, "noise_std must be above 0; got 0"),
    ({"scales": {"weight_std": np.ones(2)}}, {}, r"scales\['weight_std'\] must be a number or .* \(2,\)"),
    ({"scales": {"weight_std": [-1.0]}}, {}, r"scales\['weight_std'\] must be a finite number above 0"),
    ({"scales": {"bias_std": LogNormal([1.0], 0.5)}}, {}, r"scales\['bias_std'\] must have one median"),
]


@pytest.mark.parametrize(("options", "data", "message"), REFUSED)
def test_what_contradicts_itself_is_refused(options, data, message):
    x, y = curve(8)
    with pytest.raises(ValueError, match=message):
        BNNRegressor(**options).fit(x, **{"y": y} | data)


def test_each_output_has_its_own_noise_and_one_that_never_changes_is_predicted_as_it_is(monkeypatch):
    random = np.random.default_rng(0)

    def table(n):
        x = random.normal(size=(n, 2))
        y = x + [0.05, 2] * random.normal(size=(n, 2))
        return x, np.column_stack([y, np.full(n, 3.0)])

    (x, y), (new, wanted) = table(100), table(400)
    model = BNNRegressor(width=math.inf).fit(x, y)
    lower, upper = model.predict_interval(new)
    covered = np.mean((lower < wanted) & (wanted < upper), axis=0)
    assert np.abs(covered[:2] - 0.9).max() < 0.08
    assert (model.predict(new)[:, 2] == 3).all()
    alone = [BNNRegressor(width=math.inf).fit(x, column) for column in y.T]
    np.testing.assert_allclose(model.scales_["noise_std"], [each.scales_["noise_std"] for each in alone])
    densities = [each.log_predictive_density(new, column) for each, column in zip(alone, wanted.T)]
    np.testing.assert_allclose(model.log_predictive_density(new, wanted), np.sum(densities, axis=0))
    assert model.predict_interval(new[:5], [0.5, 0.9])[0].shape == (2, 5, 3)
    assert model.predict(new[:5], return_cov=True)[1].shape == (5, 5, 3)
    assert model.sample_y(new[:5], 2).shape == (5, 3, 2)
    monkeypatch.setattr(BNNRegressor, "_sample", lambda model, _: setattr(model, "scales_", {}))
    monkeypatch.setattr(BNNRegressor, "seconds_", 0.0, raising=False)
    assert BNNRegressor(width=8).fit(x, y[:, 1:]).width_ == [8, math.inf]


def friedman(n, num_columns, seed):
    """Columns of which five count."""
    return make_friedman1(n, n_features=num_columns, noise=1, random_state=seed)


def test_columns_have_scales_where_the_data_say_so():
    """The mode is one: its gradient is that of differences; and noise alone gives no column a scale."""
    (x, y), (new, wanted) = friedman(80, 10, 0), friedman(300, 10, 1)
    model = BNNRegressor(width=math.inf, num_samples=20).fit(x, y)  # options of chains do not count
    relevances, process = model.relevances_, model._process
    assert relevances.gain > 5 and relevances.names[:2] == ["x0", "x1"]
    assert relevances.mean[:5].min() > relevances.mean[5:].max() and (relevances.std > 0).all()
    one = BNNRegressor(width=math.inf, scales={"weight_std": LogNormal(2**0.5, 0.7)}).fit(x, y)
    assert math.isnan(one.relevances_.gain) and (one.relevances_.mean == 1).all()
    error, error_of_one = (np.sqrt(np.mean((m.predict(new) - wanted) ** 2)) for m in (model, one))
    assert error < 0.85 * error_of_one
    lower, upper = model.predict_interval(new)
    assert 0.8 < np.mean((lower < wanted) & (wanted < upper)) < 0.97

    slope = one.evidence_slope_
    assert slope.slope > 3 * slope.error > 0 and slope is one.evidence_slope_
    given = one._process.evidence(one._process.mode)[0] + len(y) / 2 * math.log(2 * math.pi)
    np.testing.assert_allclose(slope.log_evidence, -given, rtol=1e-3)

    with jax.enable_x64(True):
        u = process.mode + 0.3
        for h in 1e-5 * np.eye(len(u))[::3]:
            slope = (process.evidence(u + h)[0] - process.evidence(u - h)[0]) / 2e-5
            np.testing.assert_allclose(slope, process.evidence(u)[1] @ h / 1e-5, rtol=1e-5, atol=1e-5)
        slope = process.evidence(process.mode)[1] + process.mode
    assert np.linalg.norm(slope) < 0.1

    noise = np.random.default_rng(0)
    for num_columns in (30, 600):  # more than there are rows, where the curvature is a diagonal
        x = noise.normal(size=(460, num_columns))
        y = noise.normal(size=460)
        model.fit(x[:60], y[:60])
        assert model.relevances_.gain < 5 and (model.relevances_.std == 0).all()
        lower, upper = model.predict_interval(x[60:])
        assert 0.8 < np.mean((lower < y[60:]) & (y[60:] < upper)) < 0.98


def test_scales_of_columns_are_those_that_are_given():
    """The process of that kernel; of a prior, equal medians are the default, and others favour a column."""
    (x, y), each = friedman(30, 5, 0), np.array([2.0, 1.0, 0.5, 0.3, 0.1])
    others = {"noise_std": 0.3, "readout_std": 1.0, "bias_std": 0.5}
    model = BNNRegressor(width=math.inf, scales=others | {"weight_std": each}).fit(x, y)
    np.testing.assert_allclose(model.scales_["weight_std"], np.sqrt(np.mean(each**2)))
    np.testing.assert_allclose(model.relevances_.mean, each / np.sqrt(np.mean(each**2)))
    units, targets = (x - x.mean(axis=0)) / x.std(axis=0), (y - y.mean()) / y.std()
    with jax.enable_x64(True):
        features = FCN(5, 3, activation="gelu", weight_std=each, bias_std=0.5, rngs=nnx.Rngs(0))
        kernel = wb.nngp.nngp_kernel(wb.BNN(features, 1, 0.3, bias_std=0.1))
        wanted = wb.nngp.gaussian_process(kernel, units, targets, 0.3).mean(units)
    np.testing.assert_allclose(model.predict(x), y.mean() + y.std() * np.asarray(wanted)[:, 0], rtol=1e-6)

    default = BNNRegressor(width=math.inf).fit(x, y)
    equal = {"weight_std": LogNormal(np.full(5, 2**0.5), 0.7)}
    np.testing.assert_allclose(BNNRegressor(math.inf, scales=equal).fit(x, y).predict(x), default.predict(x))
    favoured = {"weight_std": LogNormal([*np.full(4, 0.01), 1.0], 0.7)}
    for width in (math.inf, 8):
        model = BNNRegressor(**SHORT | {"width": width, "scales": favoured}).fit(x, y)
        assert model.relevances_.mean.argmax() == 4 and np.isfinite(model.predict(x)).all()


def test_a_column_of_two_values_is_in_units_of_their_distance():
    x = np.array([[0.0, 1.0, 5.0], [0.0, 2.0, 5.0], [1.0, 3.0, 5.0], [0.0, 4.0, 5.0]])
    units = scaler_of(X=x).transform(x)
    np.testing.assert_allclose(np.ptp(units[:, 0]), 1)
    np.testing.assert_allclose(units[:, 1].std(), 1)
    np.testing.assert_array_equal(units[:, 2], 0)


def test_categories_and_sparse_matrices_are_taken():
    random = np.random.default_rng(0)
    kind = pd.Categorical(random.choice(["red", "green"], 40), ["red", "green", "blue"])
    table = pd.DataFrame({"a": random.normal(size=40), "kind": kind})
    y = table.a + 2.0 * (kind == "red")
    model = BNNRegressor(width=math.inf).fit(table, y)
    assert model.n_features_in_ == 2 and model.relevances_.names == ["a", "kind"]
    indicators = np.column_stack([table.a] + [kind == name for name in kind.categories]).astype(float)
    one_scale = BNNRegressor(width=math.inf, scales={"weight_std": LogNormal(2**0.5, 0.7)})
    wanted = one_scale.fit(indicators, y).predict(indicators)
    np.testing.assert_allclose(one_scale.fit(table, y).predict(table[::-1]), wanted[::-1])
    sparse = scipy.sparse.csr_array(indicators)
    np.testing.assert_array_equal(one_scale.fit(sparse, y).predict(sparse), wanted)
    with pytest.raises(ValueError, match="at most 100,000,000 entries where it is sparse"):
        one_scale.fit(scipy.sparse.csr_array((10_001, 10_000)), np.zeros(10_001))
    with pytest.raises(ValueError, match="imputer"):
        one_scale.fit([[np.nan], [1.0]], [0.0, 1.0])
    assert np.isfinite(model.predict(table.assign(kind="blue"))).all()  # of the dtype, though in no row
    with pytest.raises(ValueError, match="categories of the fit in column 'kind': 'red', .*; got 'pink'"):
        model.predict(table.assign(kind="pink"))
    with pytest.raises(ValueError, match="categories of the fit in column 'kind'.*; got nan"):
        model.predict(table.assign(kind=table.kind.where(table.a > 0)))
    with pytest.raises(TypeError, match="X must be a pandas data frame, as it was in fit"):
        model.predict(indicators[:, :2])
    with pytest.raises(ValueError, match="The feature names should match"):
        model.predict(table[["kind", "a"]])


def test_quantiles_of_a_mixture():
    means, stds = np.array([[-2.0, 0.0], [2.0, 0.0]]), np.array([[1.0, 1.0], [0.5, 1.0]])
    for q in (0.05, 0.3, 0.9):
        found = quantile(q, means, stds)
        np.testing.assert_allclose(stats.norm.cdf(found, means, stds).mean(axis=0), q, atol=1e-9)


@pytest.mark.slow
def test_a_module_of_ones_own():
    x, y = curve(12)
    options = SHORT | {"features": lambda d_in: FCN(d_in, 6, rngs=nnx.Rngs(0))}
    model = BNNRegressor(**options).fit(x, y)
    assert model.scales_.keys() == {"noise_std", "readout_std"}
    assert np.isfinite(model.log_predictive_density(x[:3], y[:3])).all()
    with pytest.raises(ValueError, match="scales must be one of 'noise_std', 'readout_std'; got 'w"):
        model.set_params(scales={"weight_std": 1.0}).fit(x, y)


def two_moons(n=120):
    rng = np.random.default_rng(0)
    angle, label = rng.uniform(0, np.pi, size=n), rng.integers(2, size=n)
    x = np.stack([np.cos(angle) + label, np.where(label, 0.5 - np.sin(angle), np.sin(angle))], axis=1)
    return x + 0.15 * rng.normal(size=x.shape), np.where(label, "lower", "upper")


@pytest.mark.slow
@pytest.mark.parametrize(("width", "likelihood"), [(32, "gaussian"), (32, "softmax"), ("auto", "gaussian")])
def test_classes(width, likelihood):
    x, y = two_moons()
    options = {"num_samples": 40, "burn_in": 100, "num_chains": 2, "random_state": 0}
    model = BNNClassifier(width, likelihood=likelihood, **options).fit(x[:80], y[:80])
    p = model.predict_proba(x[80:])
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-6)
    assert list(model.classes_) == ["lower", "upper"]
    assert (model.stopped_ == "limit") == (model.width_ == math.inf) == (width == "auto")
    assert model.score(x[80:], y[80:]) > 0.85
    assert ("noise_std" in model.scales_) == hasattr(model, "sharpness_") == (likelihood != "softmax")
    assert np.isfinite(model.predict_proba([[40.0, -40.0]])).all()


def wave(x):
    return np.sin(2 * x[:, 0]) + x[:, 1]


@pytest.fixture(scope="module")
def few_columns():
    """A classifier of a table whose label only two of twelve columns tell of."""
    x = np.random.default_rng(0).normal(size=(120, 12))
    y = np.where(wave(x) > 0, "above", "below")
    return BNNClassifier().fit(x, y), x, y


@pytest.mark.slow
@pytest.mark.parametrize("rows", ["all", "inducing"])
def test_a_label_that_is_left_out_is_predicted_as_if_it_had_not_been_there(few_columns, rows, monkeypatch):
    model, x, _ = few_columns
    process, indicators = model._process, model._indicators
    if rows == "inducing":  # here all but a few, which the kernel of these predicts nearly as the whole
        monkeypatch.setattr("widebnn.targets._limit.MAX_FACTORISED", 50)
        monkeypatch.setattr("widebnn.targets._limit.MAX_EXACT", 50)
        process = dataclasses.replace(process)
    left_out = Indicators.left_out(indicators, *process.fitted(slice(None)))
    tol = {"all": 1e-8, "inducing": 0.1}[rows]
    for row in (0, 7):
        others = np.delete(np.arange(len(x)), row)
        evidence = copy.copy(process.evidence)
        evidence.x, evidence.y, evidence.units = (
            each[others] for each in (evidence.x, evidence.y, evidence.units)
        )
        for (u, _), means, variances in zip(process.members, *left_out):
            mean, variance = process._moments(u, evidence.given_all(u), model._x[[row]])
            np.testing.assert_allclose(means[row], mean[0], rtol=tol, atol=tol)
            np.testing.assert_allclose(variances[row], variance[0], rtol=tol)


def test_labels_find_how_sharp_probabilities_are():
    random = np.random.default_rng(0)
    number = 4_000
    told = Indicators(random.normal(size=(1, number, 3)), random.uniform(0.5, 2, size=(1, number)))
    for sharpness in (0.3, 1.0, 3.0):
        p = told.probabilities(sharpness)
        y = (p.cumsum(axis=1) < random.uniform(size=(number, 1))).sum(axis=1)
        found = told.sharpness(y)
        slope = (told.log_probabilities(1.01 * found, y) - told.log_probabilities(0.99 * found, y)) / 0.02
        assert abs(math.log(found / sharpness)) < 5 / math.sqrt(np.sum(slope**2))
    apart = Indicators(np.tile([1.0, -1.0], (1, 20, 1)), np.ones((1, 20)))
    assert 1 < apart.sharpness(np.zeros(20, int)) < 10  # all are right, which must not say: for sure


@pytest.mark.slow
def test_columns_have_scales_of_their_own_where_labels_that_are_left_out_say_so(few_columns):
    model, *_ = few_columns
    factors = model._process.scales()[1]
    assert factors[:2].min() > 2 * factors[2:].max()
    new = np.random.default_rng(1).normal(size=(400, 12))
    assert model.score(new, np.where(wave(new) > 0, "above", "below")) > 0.9
    given = BNNClassifier(scales={"weight_std": 1.4}).fit(*few_columns[1:])
    assert not given._process.setting.tau and given.scales_["weight_std"] == 1.4


@pytest.mark.slow
def test_labels_that_nothing_tells_of_have_the_shares_of_their_classes():
    """Of a rare class too, of which normal observations would say a ninth of it."""
    x, y = np.random.default_rng(0).normal(size=(40, 4)), np.arange(40) < 2
    model = BNNClassifier().fit(x, y)
    p = model.predict_proba(np.random.default_rng(1).normal(size=(200, 4)))[:, 1]
    assert not model._process.setting.tau
    assert 0.03 < p.mean() < 0.08 and p.std() < 0.1


@pytest.mark.slow
def test_a_short_fit_says_so_and_holds_scales_at_constant_columns_targets_and_equal_rows():
    x = np.repeat(curve(6)[0], 2, axis=0)  # and a column of ones by PolynomialFeatures
    held = {"noise_std": 0.25, "readout_std": 1.0, "weight_std": 1.4, "bias_std": LogNormal(0.3, 0.1)}
    options = SHORT | {"scales": held, "burn_in": 1, "until": wb.Until()}
    pipeline = make_pipeline(PolynomialFeatures(2), BNNRegressor(**options))
    with pytest.warns(wb.ChainWarning, match="ended after 8 of 8 draws .* without an ESS of 400"):
        model = pipeline.fit(x, np.full(12, 3.0))[-1]
    assert np.isfinite(pipeline.predict(x)).all()
    assert model.scales_["noise_std"] == 0.25 and model.scales_["weight_std"] == 1.4
    assert "noise_std" not in model.ess_ and 0.1 < model.scales_["bias_std"] < 0.9


def test_bad_requests(regressor):
    for estimator in (BNNRegressor(), BNNClassifier()):
        with pytest.raises(NotFittedError):
            estimator.predict([[0.0]])
    for wrong, error in ((1.5, ValueError), (None, TypeError), ("0.9", TypeError), ([], ValueError)):
        with pytest.raises(error, match="level must"):
            regressor.predict_interval([[0.0]], level=wrong)
    with pytest.raises(RuntimeError, match="return_std and return_cov must not both be True"):
        regressor.predict([[0.0]], return_std=True, return_cov=True)
    several = regressor.predict_interval([[0.0]], level=[0.5, 0.9])
    assert several[0].shape == (2, 1)
    np.testing.assert_array_equal(several[1][1], regressor.predict_interval([[0.0]], 0.9)[1])
    with pytest.raises(ValueError, match=r"y must have shape \(1,\); got \(2,\)"):
        regressor.log_predictive_density([[0.0]], [1.0, 2.0])
    for wrong, error in ((np.nan, ValueError), (None, TypeError), (np.datetime64("NaT", "s"), TypeError)):
        with pytest.raises(error, match="y must (be finite|hold real numbers)"):
            regressor.log_predictive_density([[0.0]], [wrong])
    with pytest.raises(ValueError, match="n_samples must be at least 1; got 0"):
        regressor.sample_y([[0.0]], 0)
    with pytest.raises(TypeError, match="X must hold real numbers; got dates"):
        regressor.predict(np.array([["NaT"]], "M8[ns]"))
    with pytest.raises(ValueError, match="2 features"):
        regressor.predict([[0.0, 1.0]])
