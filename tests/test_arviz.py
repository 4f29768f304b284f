"""Runs as ArviZ takes them: leave-one-out against closed forms, and posterior-predictive checks."""

import warnings
from functools import partial

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from flax import nnx
from scipy import stats

import widebnn as wb

from .exact.networks import problem

N, NUM_CHAINS = 24, 20


def left_out_exactly(psi, y, noise_std):
    """Σ_j log p(y_ij | y_{−i}) of y = ΨW + σε, W ~ N(0, I): by n regressions on n − 1 rows."""
    logs = []
    for i in range(len(y)):
        rest, others = np.delete(psi, i, axis=0), np.delete(y, i, axis=0)
        precision = np.eye(psi.shape[1]) + rest.T @ rest / noise_std**2
        mean = np.linalg.solve(precision, rest.T @ others) / noise_std**2
        variance = psi[i] @ np.linalg.solve(precision, psi[i]) + noise_std**2
        logs.append(stats.norm.logpdf(y[i], psi[i] @ mean, np.sqrt(variance)).sum())
    return np.array(logs)


def linear_network():
    """No hidden layer: Bayesian linear regression, of which T makes N(0, I).

    On a circle no observation weighs more than another, and importance weights without one have a variance.
    """
    rng = np.random.default_rng(0)
    angle = 2 * np.pi * np.arange(N) / N
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    y = x @ rng.normal(size=(2, 2)) + 0.7 * rng.normal(size=(N, 2))
    bnn = wb.BNN(wb.models.FCN(2, 1, depth=0, rngs=nnx.Rngs(0)), 2, noise_std=0.7, bias_std=0.5)
    return bnn, x, y


@pytest.fixture(scope="module")
def run():
    """Independent draws: at λ = σ² every proposal of the prior of φ is accepted."""
    bnn, x, y = linear_network()
    target = wb.targets.repriorised(bnn, x, y)
    return wb.sample(
        jax.random.key(0),
        target,
        wb.samplers.pcn(step_size=1.0),
        num_samples=500,
        burn_in=0,
        num_chains=NUM_CHAINS,
        collect={
            "potential": wb.potential,
            "readout": lambda target, position: target.readout(position),
            "log_likelihood": wb.log_likelihood,
            "posterior_predictive": wb.predictive_draw(x),
        },
        progress=False,
    )


@pytest.mark.slow
def test_loo_is_the_closed_form(run):
    bnn, x, y = linear_network()
    psi = np.asarray(bnn.embedding({}, jnp.asarray(x, float)), float)
    exact = left_out_exactly(psi, y, 0.7)
    tree = run.to_datatree(y)
    found = arviz.loo(tree, pointwise=True)
    assert found.n_data_points == N
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one chain alone, which tells how far they are apart
        parts = [arviz.loo(tree.isel(chain=[i]), pointwise=True) for i in range(NUM_CHAINS)]
    each = np.array([part.elpd_i.values for part in parts], float)
    error = each.std(axis=0, ddof=1) / np.sqrt(NUM_CHAINS)
    assert np.all(np.abs(found.elpd_i.values - exact) < 5 * error)
    assert error.max() < 0.05 and abs(found.elpd - exact.sum()) < 5 * np.linalg.norm(error)


@pytest.mark.slow
def test_groups(run):
    y = linear_network()[2]
    tree = run.to_datatree(y)
    assert set(tree.children) == {
        "posterior",
        "sample_stats",
        "log_likelihood",
        "posterior_predictive",
        "observed_data",
    }
    assert set(tree["posterior"].data_vars) == {"potential", "readout"}
    assert tree["sample_stats"]["acceptance_rate"].dims == ("chain", "draw")
    assert tree["posterior_predictive"]["y"].shape == (NUM_CHAINS, 500, N, 2)
    assert np.array_equal(tree["observed_data"]["y"], y)
    assert "observed_data" not in run.to_datatree().children
    with pytest.raises(ValueError, match=r"observed must have the shape \(24, 2\).*got \(24,\)"):
        run.to_datatree(y[:, 0])


@pytest.mark.slow
def test_run_is_written_to_a_file_and_read(run, tmp_path):
    tree = run.to_datatree(linear_network()[2])
    tree.to_netcdf(tmp_path / "run.nc")
    with xarray.open_datatree(tmp_path / "run.nc") as read:
        assert read.identical(tree)


def at_a_draw(target, *functions):
    """Functions of one draw from the prior, in one program."""

    @jax.jit
    def values(rng_key):
        position = target.draw_prior(rng_key)
        return [function(position) for function in functions]

    return [np.asarray(value) for value in values(jax.random.key(0))]


@pytest.mark.parametrize(("space", "n"), [("data", 3), ("feature", 9)])
def test_an_observation_given_the_others(space, n):
    """The regression on them."""
    tiny = problem(widths=(4,), out_features=2, n=n)
    target = wb.targets.marginal(tiny.bnn, tiny.x, tiny.y, space)
    psi, found = at_a_draw(target, target.embedding, target.left_out_log_likelihood)
    y, noise_std = np.asarray(tiny.y), tiny.bnn.noise_std
    assert np.allclose(found, left_out_exactly(psi, y, noise_std), atol=1e-10)


@pytest.mark.parametrize("kind", ["repriorised", "rotated"])
def test_pointwise_log_likelihood_adds_up(kind):
    """To the likelihood of the very readout that `readout` draws."""
    tiny = problem(widths=(4,), out_features=2)
    base = "marginal" if kind == "rotated" else kind
    target = getattr(wb.targets, base)(tiny.bnn, tiny.x, tiny.y)
    target = wb.targets.rotated(target) if kind == "rotated" else target
    key = jax.random.key(1)
    psi, readout, found = at_a_draw(
        target, target.embedding, lambda u: target.readout(u, key), lambda u: target.log_likelihood(u, key)
    )
    f = psi @ readout
    wanted = stats.norm.logpdf(np.asarray(tiny.y), f, tiny.bnn.noise_std).sum(axis=1)
    assert found.shape == (5,) and np.allclose(found, wanted, atol=1e-10)


def classifier(map="identity"):
    bnn = wb.BNN(wb.models.FCN(2, 3, rngs=nnx.Rngs(0)), 3, noise_std=0.5)
    x = np.random.default_rng(1).normal(size=(6, 2))
    return wb.targets.categorical(bnn, x, np.array([0, 1, 2, 0, 1, 2]), map), x


@pytest.mark.parametrize("map", ["identity", "laplace"])
def test_log_likelihood_of_classes(map):
    target, x = classifier(map)
    p, found = at_a_draw(target, partial(wb.predictive_probabilities(x), target), target.log_likelihood)
    assert np.allclose(found, np.log(p[np.arange(6), [0, 1, 2, 0, 1, 2]]), atol=1e-5)


def test_classes_are_drawn_by_their_probabilities():
    target, x = classifier()
    position = target.draw_prior(jax.random.key(0))
    draw = jax.vmap(lambda key: wb.predictive_draw(x)(target, position, key))
    draws = np.asarray(jax.jit(draw)(jax.random.split(jax.random.key(1), 5_000)))
    assert draws.dtype.kind == "i"
    p = np.asarray(wb.predictive_probabilities(x)(target, position))
    shares = np.stack([(draws == k).mean(axis=0) for k in range(3)], axis=1)
    assert np.all(np.abs(shares - p) < 5 * np.sqrt(p * (1 - p) / 5_000) + 1e-3)
    with pytest.raises(TypeError, match="rng_key is required: an observation"):
        wb.predictive_draw(x)(target, position)
