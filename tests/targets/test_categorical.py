"""Three maps of one posterior with softmax likelihood: densities, inverses, curvature, exact moments."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.flatten_util import ravel_pytree
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import widebnn as wb
from widebnn.targets._categorical import Laplace

from ..exact.change_of_variables import assert_density, log_density_of_map
from ..exact.importance import NUM_CHAINS, assert_moments, by_chains, reference_categorical
from ..exact.networks import labels, log_joint_categorical, problem

pytestmark = pytest.mark.usefixtures("x64")

MAPS = {
    "identity": {"map": "identity"},
    "gaussian": {"map": "gaussian"},
    "gaussian, other λ": {"map": "gaussian", "reg": 3.0},
    "laplace": {"map": "laplace"},
    "laplace, one step": {"map": "laplace", "num_newton": 1},
}
PROBLEMS = {
    "n below p": {"widths": (5,), "out_features": 3, "n": 4},
    "n above p": {"widths": (3, 2), "out_features": 2, "n": 6, "activation": "erf", "bias_std": 0.0},
}
density = functools.partial(log_density_of_map, log_joint=log_joint_categorical)


@pytest.fixture(params=PROBLEMS)
def tiny(request, x64):
    return problem(**PROBLEMS[request.param])


def categorical(tiny, which="laplace"):
    return wb.targets.categorical(tiny.bnn, tiny.x, labels(tiny), **MAPS[which])


@pytest.mark.parametrize("which", MAPS)
def test_potential_is_the_change_of_variables(tiny, which):
    assert_density(tiny, categorical(tiny, which), density)


@pytest.mark.parametrize("which", MAPS)
def test_map_and_its_inverse(tiny, which):
    target, parameters = categorical(tiny, which), tiny.draw_parameters()
    moved = target.to_parameters(parameters)
    for returned in (
        target.from_parameters(moved),
        target.to_parameters(target.from_parameters(parameters)),
    ):
        assert jnp.allclose(ravel_pytree(returned)[0], ravel_pytree(parameters)[0], atol=1e-10)
    assert jnp.allclose(moved.readout, parameters.readout, atol=0.01) == (which == "identity")


def readout_energy(tiny, psi):
    """−log p(labels, W | Ψ) of one vector W, up to a constant."""

    def energy(w):
        f = psi @ w.reshape(psi.shape[1], -1)
        log_p = f - jax.scipy.special.logsumexp(f, axis=1, keepdims=True)
        return w @ w / 2 - jnp.sum(log_p[jnp.arange(len(f)), labels(tiny)])

    return energy


def test_newton_steps_are_newton_steps(tiny):
    """Mean and covariance after each number of steps, by automatic differentiation of the energy."""
    psi = tiny.bnn.embedding(tiny.draw_parameters().inner, tiny.x)
    onehot = jax.nn.one_hot(labels(tiny), tiny.bnn.out_features)
    energy = readout_energy(tiny, psi)
    gradient, hessian = jax.jit(jax.grad(energy)), jax.jit(jax.hessian(energy))
    w = jnp.zeros(psi.shape[1] * onehot.shape[1])
    for num_steps in (1, 2, 3):
        curvature = hessian(w)
        w = w - jnp.linalg.solve(curvature, gradient(w))
        laplace = Laplace(psi, onehot, num_steps)
        assert jnp.allclose(laplace.posterior.mean().ravel(), w, atol=1e-11)
        covariance = laplace.posterior.covariance(jnp.eye(len(w)))
        assert jnp.allclose(covariance @ curvature, jnp.eye(len(w)), atol=1e-10)
        assert jnp.allclose(laplace.log_jacobian(), -jnp.linalg.slogdet(curvature)[1] / 2, atol=1e-10)


def test_newton_finds_the_mode(tiny):
    psi = tiny.bnn.embedding(tiny.draw_parameters().inner, tiny.x)
    onehot = jax.nn.one_hot(labels(tiny), tiny.bnn.out_features)
    gradients = [
        jnp.abs(jax.grad(readout_energy(tiny, psi))(Laplace(psi, onehot, k).posterior.mean().ravel())).max()
        for k in (1, 2, 3, 6)
    ]
    assert gradients[0] > 1e-6  # not there at once: the convergence below is Newton's
    assert gradients[2] < gradients[1] < gradients[0]
    assert gradients[3] < 1e-11


def test_one_newton_step_is_the_gaussian_map_of_other_targets_and_reg(tiny):
    """At W = 0 the curvature is (I − 11ᵀ/k)/k: centred, regression on k (t − 1/k) with λ = k."""
    k = tiny.bnn.out_features
    psi = tiny.bnn.embedding(tiny.draw_parameters().inner, tiny.x)
    onehot = jax.nn.one_hot(labels(tiny), k)
    gaussian = wb.targets.readout_posterior(psi, k * (onehot - 1 / k), float(k))
    found = Laplace(psi, onehot, 1).posterior
    assert jnp.allclose(found.mean().reshape(gaussian.mean().shape), gaussian.mean(), atol=1e-11)
    centre = jnp.eye(k) - 1 / k
    exact = jnp.kron(gaussian.covariance(jnp.eye(psi.shape[1])), centre) + jnp.kron(
        jnp.eye(psi.shape[1]), jnp.full((k, k), 1 / k)
    )
    assert jnp.allclose(found.covariance(jnp.eye(psi.shape[1] * k)), exact, atol=1e-11)


def test_sure_predictions_do_not_break_the_newton_step():
    """Float32, a true class with probability 1e-13: mean and log-Jacobian stay those of float64."""
    with jax.enable_x64(False):
        psi, onehot = jnp.ones((2, 1), jnp.float32), jnp.eye(2, dtype=jnp.float32)
        from widebnn.targets._categorical import _newton_step

        f = jnp.asarray([[-30.0, 0.0], [1.0, 0.0]], jnp.float32)
        single = _newton_step(psi, onehot, f)
        mean, log_jacobian = np.asarray(single.mean()), float(single.log_jacobian())
    double = _newton_step(jnp.ones((2, 1)), jnp.eye(2), jnp.asarray(f, jnp.float64))
    assert np.allclose(mean, double.mean(), rtol=1e-5)
    assert np.isclose(log_jacobian, double.log_jacobian(), rtol=1e-5)


def test_labels_as_integers_and_as_one_hot_rows_are_the_same(tiny):
    phi = tiny.draw_parameters()
    onehot = np.eye(tiny.bnn.out_features)[np.asarray(labels(tiny))]
    for which, given in [(which, given) for which in MAPS for given in (onehot, onehot.astype(int))]:
        target = wb.targets.categorical(tiny.bnn, tiny.x, given, **MAPS[which])
        assert target.potential(phi) == categorical(tiny, which).potential(phi)


def test_output_and_probabilities_are_the_networks(tiny):
    phi = tiny.draw_parameters()
    for which in MAPS:
        target = categorical(tiny, which)
        f = tiny.bnn(target.to_parameters(phi), tiny.x_new)
        assert jnp.allclose(target.output(tiny.x_new)(phi), f, atol=1e-12)
        p = jnp.exp(f) / jnp.exp(f).sum(axis=1, keepdims=True)
        assert jnp.allclose(target.predictive_probabilities(tiny.x_new)(phi), p, atol=1e-12)


@functools.cache
def solved():
    with jax.enable_x64(True):
        tiny = problem(widths=(2,), out_features=3, n=4)
        exact = reference_categorical(tiny, (2,), "gelu", num_draws=200_000)
    return tiny, exact


def test_reference_rests_on_many_draws():
    assert solved()[1].effective_draws > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("which", ["identity", "gaussian, other λ", "laplace"])
def test_probabilities_have_exact_moments(which):
    tiny, exact = solved()
    target = categorical(tiny, which)
    draws = wb.sample(
        jax.random.key(3),
        wb.samplers.pcn(target.potential, 0.6),
        target,
        num_samples=60,
        thin=5,
        burn_in=150,
        num_chains=NUM_CHAINS,
        collect={"p": target.predictive_probabilities(tiny.x_new)},
    )
    assert_moments(by_chains(draws["p"]), exact.moments)
    assert 0.1 < draws.acceptance_rate < 0.98


@pytest.mark.slow
def test_chains_mix_under_the_default_map():
    """Under the paper's map at λ = σ² they are stuck, although nothing but coordinates differs."""
    wine = load_wine()
    rows = np.random.default_rng(0).permutation(len(wine.target))[:30]
    x, y = scale(wine.data)[rows], wine.target[rows]
    bnn = wb.BNN(wb.models.FCN(13, 16, rngs=nnx.Rngs(0)), 3, noise_std=0.1)

    def least_effective(**options):
        target = wb.targets.categorical(bnn, x, y, **options)
        draws = wb.sample(
            jax.random.key(0),
            wb.samplers.tuned(functools.partial(wb.samplers.pcn, target.potential), 0.4),
            target,
            num_samples=150,
            thin=10,
            burn_in=500,
            num_chains=4,
            collect={"p": target.predictive_probabilities(x[:5])},
        )
        return wb.diagnostics.convergence(draws["p"]).ess.min()

    assert least_effective() > 4 * least_effective(map="gaussian")
