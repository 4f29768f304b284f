"""Estimators behind scikit-learn's interface: what their users expect."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ShuffleSplit, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import widebnn as wb
from widebnn.estimators import FARTHEST, BNNClassifier, BNNRegressor, _largest, _quantile
from widebnn.models import FCN
from widebnn.sampling import Draws
from widebnn.targets import LogNormal

SHORT = {"width": 8, "num_chains": 2, "num_samples": 8, "thin": 1, "burn_in": 20, "random_state": 0}

pytestmark = [
    pytest.mark.usefixtures("float32"),
    pytest.mark.filterwarnings("ignore:the run ended after"),
]


def curve(n=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, size=(n, 1))
    return x, 10 + 5 * np.sin(2 * x[:, 0]) + rng.normal(size=n)


@pytest.fixture(scope="module")
def regressor():
    with jax.enable_x64(False):  # before the tests are
        return BNNRegressor(width=64, num_samples=150, burn_in=200, random_state=0).fit(*curve())


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


@pytest.mark.slow
def test_deviations_grow_where_there_are_no_data(regressor):
    _, std = regressor.predict([[0.0], [6.0]], return_std=True)
    assert std[1] > 1.5 * std[0]


@pytest.mark.slow
def test_moments_of_predictions_agree(regressor):
    x = curve(7, seed=2)[0]
    mean, std = regressor.predict(x, return_std=True)
    same, covariance = regressor.predict(x, return_cov=True)
    np.testing.assert_array_equal(mean, same)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-4)
    draws = regressor.sample_y(x, 2_000, random_state=1)
    assert draws.shape == (7, 2_000)
    score = (draws.mean(axis=1) - mean) / (std / np.sqrt(2_000))
    assert np.abs(score).max() < stats.norm.isf(1e-6 / 14)
    np.testing.assert_allclose(draws.std(axis=1), std, rtol=0.15)
    lower, upper = regressor.predict_interval(x, 0.5)
    assert (lower < mean).all() and (mean < upper).all()


def test_convergence_is_reported(regressor):
    names = {"noise_std", "readout_std", "weight_std", "bias_std"}
    assert regressor.ess_.keys() == regressor.rhat_.keys() == names | {"predictions"}
    assert regressor.scales_.keys() == names
    assert 0.5 < regressor.acceptance_rate_ < 1


def test_draws_that_do_not_predict_are_left_out(regressor):
    """As when σ is held so low that float32 cannot tell K̂ from singular; the fit is not called converged."""
    watched = ("noise_std", "predictions")
    found = {name: np.random.default_rng(0).normal(size=(2, 8, 1)) for name in watched}
    found |= {"positions": np.arange(16.0).reshape(2, 8, 1)}
    found["predictions"][1, 3] = np.nan
    stats = {"acceptance_rate": np.full((2, 8), 0.5)}
    draws = Draws(found, stats, {}, None, 0.1, thin=1, burn_in=0, seconds=1.0)
    kept = copy.deepcopy(regressor)
    kept._scales = {}, {}
    kept._keep(draws, dict.fromkeys(watched))
    assert 11.0 not in kept.positions_ and len(kept.positions_) == 15
    assert kept.ess_["predictions"] == 0 and kept.rhat_["predictions"] == np.inf
    assert kept.ess_["noise_std"] > 0


def test_a_run_that_ends_after_a_few_draws_is_a_fit(regressor):
    """As by the seconds of `until`, or by Ctrl-C."""
    watched = ("noise_std", "predictions")
    found = {name: np.random.default_rng(0).normal(size=(2, 2, 1)) for name in watched}
    found |= {"positions": regressor.positions_[:4].reshape(2, 2, -1)}
    stats = {"acceptance_rate": np.full((2, 2), 0.5)}
    draws = Draws(found, stats, {}, None, 0.1, thin=1, burn_in=0, seconds=1.0, stopped="seconds")
    kept = copy.deepcopy(regressor)
    kept._scales = {}, {}
    with pytest.warns(wb.ChainWarning, match="2 draws of each chain are too few to tell"):
        kept._keep(draws, dict.fromkeys(watched))
    assert kept.stopped_ == "seconds" and len(kept.positions_) == 4
    assert kept.ess_ == dict.fromkeys(watched, 0.0) and kept.rhat_ == dict.fromkeys(watched, np.inf)
    assert np.isfinite(kept.predict([[0.0]])).all()


@pytest.mark.parametrize("far", [1e300, 9.97e36, 1e20, -1e20])
def test_fill_values_are_refused(regressor, far):
    for method in (regressor.predict, regressor.predict_interval, regressor.sample_y):
        with pytest.raises(ValueError, match="X must lie within 1e.12 standard deviations .* fill value"):
            method([[0.0], [far]])


def test_predictions_are_finite_as_far_as_inputs_are_taken(regressor):
    for far in (-0.9 * FARTHEST, 0.9 * FARTHEST):
        mean, std = regressor.predict([[far]], return_std=True)
        assert np.isfinite(mean).all() and np.isfinite(std).all() and std[0] > 1e6


def test_generators_are_seeds(regressor):
    first, second, other = (
        regressor.sample_y([[0.0]], 3, random_state=np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert np.array_equal(first, second) and not np.array_equal(first, other)


@pytest.mark.slow
def test_a_copy_predicts_the_same_and_in_batches(regressor, monkeypatch):
    x = curve(7, seed=2)[0]
    whole = regressor.predict(x)
    np.testing.assert_array_equal(copy.deepcopy(regressor).predict(x), whole)
    monkeypatch.setattr("widebnn.estimators.MAX_ROWS", 4)
    np.testing.assert_allclose(regressor.predict(x), whole, rtol=1e-5)


def test_quantiles_of_a_mixture():
    means, stds = np.array([[-2.0, 0.0], [2.0, 0.0]]), np.array([[1.0, 1.0], [0.5, 1.0]])
    for q in (0.05, 0.3, 0.9):
        found = _quantile(q, means, stds)
        np.testing.assert_allclose(stats.norm.cdf(found, means, stds).mean(axis=0), q, atol=1e-9)


@pytest.mark.slow
def test_several_outputs_and_a_module_of_ones_own():
    x, y = curve()
    both = np.stack([y, -y], axis=1)
    model = BNNRegressor(**SHORT | {"features": lambda d_in: FCN(d_in, 6, rngs=nnx.Rngs(0))}).fit(x, both)
    assert model.scales_.keys() == {"noise_std", "readout_std"}
    mean, covariance = model.predict(x[:3], return_cov=True)
    assert mean.shape == (3, 2) and covariance.shape == (3, 3, 2)
    assert model.sample_y(x[:3], 5).shape == (3, 2, 5)
    assert model.predict_interval(x[:3])[0].shape == (3, 2)
    assert model.log_predictive_density(x[:3], both[:3]).shape == (3,)
    with pytest.raises(ValueError, match="scales must be one of 'noise_std', 'readout_std'; got 'w"):
        clone(model).set_params(scales={"weight_std": 1.0}).fit(x, both)


def two_moons(n=120):
    rng = np.random.default_rng(0)
    angle, label = rng.uniform(0, np.pi, size=n), rng.integers(2, size=n)
    x = np.stack([np.cos(angle) + label, np.where(label, 0.5 - np.sin(angle), np.sin(angle))], axis=1)
    return x + 0.15 * rng.normal(size=x.shape), np.where(label, "lower", "upper")


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["softmax", "gaussian"])
def test_classes(likelihood):
    x, y = two_moons()
    model = BNNClassifier(
        width=32, likelihood=likelihood, num_samples=40, burn_in=100, num_chains=2, random_state=0
    ).fit(x[:80], y[:80])
    p = model.predict_proba(x[80:])
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-6)
    assert list(model.classes_) == ["lower", "upper"]
    assert model.score(x[80:], y[80:]) > 0.85
    assert ("noise_std" in model.scales_) == (likelihood == "gaussian")
    assert np.isfinite(model.predict_proba([[40.0, -40.0]])).all()


@pytest.mark.slow
def test_chance_of_the_largest():
    means = np.array([[0.0, 0.0, 0.0], [0.3, -1.0, 0.8]], np.float32)
    found = np.asarray(_largest(jnp.asarray(means)))
    draws = np.random.default_rng(0).normal(size=(400_000, 1, 3)) + means
    counted = np.stack([(draws.argmax(axis=2) == c).mean(axis=0) for c in range(3)], axis=1)
    np.testing.assert_allclose(found[0], 1 / 3, rtol=1e-5)
    assert np.abs(found - counted).max() < 5 * 0.5 / np.sqrt(400_000)


@pytest.mark.slow
def test_in_a_pipeline_a_short_fit_says_so_and_holds_scales_at_constant_columns_targets_and_equal_rows():
    x = np.repeat(curve(20)[0], 2, axis=0)  # and a column of ones by PolynomialFeatures
    held = {"noise_std": 0.25, "readout_std": 1.0, "weight_std": 1.4, "bias_std": LogNormal(0.3, 0.1)}
    pipeline = make_pipeline(PolynomialFeatures(2), BNNRegressor(**SHORT | {"scales": held, "burn_in": 1}))
    with pytest.warns(wb.ChainWarning, match="ended after 8 of 8 draws .* without an ESS of 400"):
        found = cross_validate(
            pipeline, x, np.full(len(x), 3.0), cv=ShuffleSplit(1), return_estimator=True, error_score="raise"
        )
    assert np.isfinite(found["test_score"]).all()
    model = found["estimator"][0][-1]
    assert {name: model.scales_[name] for name in ("noise_std", "weight_std")} == {
        "noise_std": 0.25,
        "weight_std": 1.4,
    }
    assert "noise_std" not in model.ess_ and 0.1 < model.scales_["bias_std"] < 0.9


@pytest.mark.parametrize("estimator", [BNNRegressor(), BNNClassifier()])
def test_nothing_is_predicted_before_a_fit(estimator):
    for method in ("predict", "predict_proba", "predict_interval", "sample_y", "score"):
        if hasattr(estimator, method):
            with pytest.raises(NotFittedError):
                getattr(estimator, method)(*(([[0.0]], [0.0]) if method == "score" else ([[0.0]],)))


def test_bad_requests(regressor):
    with pytest.raises(RuntimeError, match="return_std and return_cov must not both be True"):
        regressor.predict([[0.0]], return_std=True, return_cov=True)
    with pytest.raises(ValueError, match=r"level must lie in \(0, 1\); got 1.5"):
        regressor.predict_interval([[0.0]], level=1.5)
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
