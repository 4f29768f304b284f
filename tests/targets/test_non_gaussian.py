"""Maps of posteriors whose likelihood is not Gaussian: densities, inverses, curvature, exact moments."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.flatten_util import ravel_pytree
from scipy import stats
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import widebnn as wb
from widebnn.targets._affine_maps import Laplace, regression_step
from widebnn.targets._likelihoods import Bernoulli, Softmax, StudentT

from ..exact.change_of_variables import assert_density, log_density_of_map
from ..exact.importance import NUM_CHAINS, assert_moments, by_chains, reference_of_means
from ..exact.likelihoods import DEGREES, LIKELIHOODS
from ..exact.networks import labels, problem

MAPS = {
    "identity": {"map": "identity"},
    "gaussian": {"map": "gaussian"},
    "gaussian, other λ": {"map": "gaussian", "reg": 3.0},
    "laplace": {"map": "laplace"},
    "laplace, one step": {"map": "laplace", "num_steps": 1},
}
PROBLEMS = {
    "n below p": {"widths": (5,), "out_features": 3, "n": 4},
    "n above p": {"widths": (3, 2), "out_features": 2, "n": 6, "activation": "erf", "bias_std": 0.0},
}


@pytest.fixture(params=PROBLEMS)
def tiny(request):
    return problem(**PROBLEMS[request.param])


@pytest.fixture(params=LIKELIHOODS)
def which(request):
    return request.param


def target_of(tiny, which="softmax", map="laplace"):
    return LIKELIHOODS[which].target(tiny, **MAPS[map])


@pytest.mark.slow
@pytest.mark.parametrize("map", MAPS)
def test_potential_is_the_change_of_variables(tiny, which, map):
    density = functools.partial(log_density_of_map, log_joint=LIKELIHOODS[which].log_joint)
    assert_density(tiny, target_of(tiny, which, map), density)


@pytest.mark.slow
@pytest.mark.parametrize("map", MAPS)
def test_map_and_its_inverse(tiny, which, map):
    target, parameters = target_of(tiny, which, map), tiny.draw_parameters()
    moved = target.to_parameters(parameters)
    for returned in (
        target.from_parameters(moved),
        target.to_parameters(target.from_parameters(parameters)),
    ):
        assert jnp.allclose(ravel_pytree(returned)[0], ravel_pytree(parameters)[0], atol=1e-10)
    assert jnp.allclose(moved.readout, parameters.readout, atol=0.01) == (map == "identity")


def readout_energy(tiny, psi, which="softmax"):
    """−log p(y, W | Ψ) of one vector W, up to a constant."""

    def energy(w):
        f = psi @ w.reshape(psi.shape[1], -1)
        return w @ w / 2 - jnp.sum(LIKELIHOODS[which].log_prob(tiny, f))

    return energy


@pytest.mark.slow
@pytest.mark.parametrize("which", ["softmax", "bernoulli"])
def test_newton_steps_are_newton_steps(tiny, which):
    """Mean and covariance after each number of steps, by automatic differentiation of the energy."""
    psi = tiny.bnn.embedding(tiny.draw_parameters().inner, tiny.x)
    likelihood = target_of(tiny, which).likelihood
    energy = readout_energy(tiny, psi, which)
    gradient, hessian = jax.jit(jax.grad(energy)), jax.jit(jax.hessian(energy))
    w = jnp.zeros(psi.shape[1] * tiny.bnn.out_features)
    for num_steps in (1, 2, 3):
        curvature = hessian(w)
        w = w - jnp.linalg.solve(curvature, gradient(w))
        laplace = Laplace(psi, likelihood, num_steps)
        assert jnp.allclose(laplace.posterior.mean().ravel(), w, atol=1e-11)
        covariance = laplace.posterior.covariance(jnp.eye(len(w)))
        assert jnp.allclose(covariance @ curvature, jnp.eye(len(w)), atol=1e-10)
        assert jnp.allclose(laplace.log_jacobian(), -jnp.linalg.slogdet(curvature)[1] / 2, atol=1e-10)


@pytest.mark.slow
def test_newton_finds_the_mode(tiny):
    psi = tiny.bnn.embedding(tiny.draw_parameters().inner, tiny.x)
    likelihood = target_of(tiny).likelihood
    gradient = jax.jit(jax.grad(readout_energy(tiny, psi)))
    gradients = [
        jnp.abs(gradient(Laplace(psi, likelihood, k).posterior.mean().ravel())).max() for k in (1, 2, 3, 6)
    ]
    assert gradients[0] > 1e-6  # not there at once: the convergence below is Newton's
    assert gradients[2] < gradients[1] < gradients[0]
    assert gradients[3] < 1e-11


@pytest.mark.slow
def test_steps_of_em_lower_the_energy_down_to_the_mode(tiny):
    psi = tiny.bnn.embedding(tiny.draw_parameters().inner, tiny.x)
    likelihood = target_of(tiny, "student").likelihood
    value_and_gradient = jax.jit(jax.value_and_grad(readout_energy(tiny, psi, "student")))
    found = [value_and_gradient(Laplace(psi, likelihood, k).posterior.mean().ravel()) for k in (1, 2, 3, 60)]
    energies = [float(energy) for energy, _ in found]
    assert energies[0] > energies[1] > energies[2] > energies[3]
    assert jnp.abs(found[-1][1]).max() < 1e-5


def test_student_of_many_degrees_is_regression(tiny):
    """Potential and map; the affine map is then that of `repriorised`."""
    phi = tiny.draw_parameters()
    target = wb.targets.student_t(tiny.bnn, tiny.x, tiny.y, degrees=1e9, num_steps=1)
    regression = wb.targets.standard(tiny.bnn, tiny.x, tiny.y)
    theta = target.to_parameters(phi)
    assert jnp.allclose(
        jnp.sum(target.log_likelihood(phi)), jnp.sum(regression.log_likelihood(theta)), rtol=1e-6
    )
    psi = tiny.bnn.embedding(phi.inner, tiny.x)
    exact = wb.targets.readout_posterior(psi, tiny.y, tiny.bnn.noise_std**2).mean()
    assert jnp.allclose(target.to_parameters(phi._replace(readout=jnp.zeros_like(exact))).readout, exact)


def test_one_newton_step_is_the_gaussian_map_of_other_targets_and_reg(tiny):
    """At W = 0 the curvature is (I − 11ᵀ/k)/k: centred, regression on k (t − 1/k) with λ = k."""
    k = tiny.bnn.out_features
    psi = tiny.bnn.embedding(tiny.draw_parameters().inner, tiny.x)
    onehot = jax.nn.one_hot(labels(tiny), k)
    gaussian = wb.targets.readout_posterior(psi, k * (onehot - 1 / k), float(k))
    found = Laplace(psi, Softmax(onehot), 1).posterior
    assert jnp.allclose(found.mean().reshape(gaussian.mean().shape), gaussian.mean(), atol=1e-11)
    centre = jnp.eye(k) - 1 / k
    exact = jnp.kron(gaussian.covariance(jnp.eye(psi.shape[1])), centre) + jnp.kron(
        jnp.eye(psi.shape[1]), jnp.full((k, k), 1 / k)
    )
    assert jnp.allclose(found.covariance(jnp.eye(psi.shape[1] * k)), exact, atol=1e-11)


@pytest.mark.slow
def test_sure_predictions_do_not_break_the_newton_step():
    """Float32, a true class with probability 1e-13: mean and log-Jacobian stay those of float64."""
    with jax.enable_x64(False):
        psi, onehot = jnp.ones((2, 1), jnp.float32), jnp.eye(2, dtype=jnp.float32)
        f = jnp.asarray([[-30.0, 0.0], [1.0, 0.0]], jnp.float32)
        single = regression_step(psi, Softmax(onehot), f)
        mean, log_jacobian = np.asarray(single.mean()), float(single.log_jacobian())
    double = regression_step(jnp.ones((2, 1)), Softmax(jnp.eye(2)), jnp.asarray(f, jnp.float64))
    assert np.allclose(mean, double.mean(), rtol=1e-5)
    assert np.isclose(log_jacobian, double.log_jacobian(), rtol=1e-5)


@pytest.mark.slow
def test_labels_as_integers_and_as_one_hot_rows_are_the_same(tiny):
    phi = tiny.draw_parameters()
    onehot = np.eye(tiny.bnn.out_features)[np.asarray(labels(tiny))]
    for map, given in [(map, given) for map in MAPS for given in (onehot, onehot.astype(int))]:
        target = wb.targets.categorical(tiny.bnn, tiny.x, given, **MAPS[map])
        assert target.potential(phi) == target_of(tiny, map=map).potential(phi)


@pytest.mark.slow
def test_output_and_mean_are_the_networks(tiny, which):
    phi, likelihood = tiny.draw_parameters(), LIKELIHOODS[which]
    for map in MAPS:
        target = target_of(tiny, which, map)
        theta = target.to_parameters(phi)
        f = tiny.bnn(theta, tiny.x_new)
        assert jnp.allclose(target.output(tiny.x_new)(phi), f, atol=1e-12)
        assert jnp.allclose(target.predictive_mean(tiny.x_new)(phi), likelihood.mean(f), atol=1e-12)
        exact = likelihood.log_prob(tiny, tiny.bnn(theta, tiny.x))
        assert jnp.allclose(target.log_likelihood(phi), exact, atol=1e-10)
    assert hasattr(target, "predictive_probabilities") == (which != "student")


DRAWN = {
    "bernoulli": (Bernoulli(jnp.zeros((1, 1))), lambda f: stats.bernoulli(1 / (1 + np.exp(-f)))),
    "student": (StudentT(jnp.zeros((1, 1)), DEGREES, 0.4), lambda f: stats.t(DEGREES, f, 0.4)),
}


@pytest.mark.parametrize("which", DRAWN)
def test_observations_are_drawn_from_the_likelihood(which):
    """At two outputs, by the Kolmogorov–Smirnov or the binomial test at a level of 10⁻⁶."""
    likelihood, law = DRAWN[which]
    f = jnp.repeat(jnp.array([[-1.5, 0.7]]), 20_000, axis=0)
    y = np.asarray(likelihood.draw(jax.random.key(0), f))
    assert y.shape == f.shape
    for column, at in zip(y.T, (-1.5, 0.7)):
        if which == "bernoulli":
            assert set(column) == {0, 1}
            assert stats.binomtest(int(column.sum()), len(column), law(at).mean()).pvalue > 1e-6
        else:
            assert stats.kstest(column, law(at).cdf).pvalue > 1e-6


PROBLEM_OF = {"softmax": 3, "bernoulli": 2, "student": 1}
"""Outputs of the problem that chains are held against."""


@functools.cache
def solved(which):
    tiny = problem(widths=(2,), out_features=PROBLEM_OF[which], n=4)
    return tiny, reference_of_means(tiny, LIKELIHOODS[which], (2,), "gelu", num_draws=200_000)


@pytest.mark.slow
def test_reference_rests_on_many_draws(which):
    assert solved(which)[1].effective_draws > 10_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "map"),
    [
        ("softmax", "identity"),
        ("softmax", "gaussian, other λ"),
        ("softmax", "laplace"),
        ("bernoulli", "laplace"),
        ("student", "laplace"),
    ],
)
def test_predictions_have_exact_moments(which, map):
    tiny, exact = solved(which)
    target = target_of(tiny, which, map)
    draws = wb.sample(
        jax.random.key(3),
        wb.samplers.pcn(target.potential, 0.6),
        target,
        num_samples=60,
        thin=5,
        burn_in=150,
        num_chains=NUM_CHAINS,
        collect={"mean": target.predictive_mean(tiny.x_new)},
    )
    assert_moments(by_chains(draws["mean"]), exact.moments)
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
