"""Network targets against densities and predictions written out by brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import widebnn as wb
from widebnn.models import Parameters

from ..exact.change_of_variables import assert_density, log_density_of_inner, log_density_of_map
from ..exact.networks import embedding, gp_prediction, log_evidence, log_joint, problem

PROBLEMS = {
    "one hidden layer": {"widths": (4,), "out_features": 1},
    "two outputs, n below p": {"widths": (6,), "out_features": 2, "n": 3},
    "two hidden layers": {"widths": (3, 4), "out_features": 2, "activation": "erf"},
    "no readout bias": {"widths": (3,), "out_features": 2, "bias_std": 0.0},
}


@pytest.fixture(params=PROBLEMS)
def tiny(request):
    return problem(**PROBLEMS[request.param])


def standard(tiny):
    return wb.targets.standard(tiny.bnn, tiny.x, tiny.y)


def marginal(tiny, space="auto"):
    return wb.targets.marginal(tiny.bnn, tiny.x, tiny.y, space)


def repriorised(tiny, reg=None, space="auto"):
    return wb.targets.repriorised(tiny.bnn, tiny.x, tiny.y, reg, space)


@pytest.mark.slow
def test_embedding_is_the_one_of_the_theory():
    for activation in ("gelu", "erf"):
        tiny = problem(widths=(3, 4), activation=activation)
        inner = tiny.draw_parameters().inner
        layers = [inner["layers"][i] for i in range(2)]
        exact = embedding(
            [layer["kernel"] for layer in layers],
            [layer["bias"] for layer in layers],
            tiny.x,
            activation,
            0.1,
        )
        assert jnp.allclose(tiny.bnn.embedding(inner, tiny.x), exact, atol=1e-12)


def test_standard_is_minus_the_log_likelihood(tiny):
    assert_density(tiny, standard(tiny), log_density_of_map)


@pytest.mark.slow
@pytest.mark.parametrize("space", ["data", "feature"])
@pytest.mark.parametrize("reg", [None, 0.01, 40.0])
def test_repriorised_is_the_change_of_variables(tiny, reg, space):
    assert_density(tiny, repriorised(tiny, reg, space), log_density_of_map)


@pytest.mark.parametrize("space", ["data", "feature"])
def test_marginal_is_the_evidence(tiny, space):
    assert_density(tiny, marginal(tiny, space), log_density_of_inner)


@pytest.mark.parametrize("space", ["data", "feature"])
def test_marginal_potential_is_minus_log_evidence(tiny, space):
    """Not only its differences: U = −log p(y | θ^{≤L}) less the constant of the Gaussian."""
    inner = tiny.draw_parameters().inner
    constant = tiny.y.size * jnp.log(2 * jnp.pi) / 2
    found = marginal(tiny, space).potential(inner)
    assert jnp.allclose(found, -log_evidence(tiny, inner) - constant, rtol=1e-10)


def test_repriorised_potential_is_the_marginal_one(tiny):
    parameters = tiny.draw_parameters()
    found = repriorised(tiny).potential(parameters)
    assert jnp.allclose(found, marginal(tiny).potential(parameters.inner), rtol=1e-12)
    other = Parameters(parameters.inner, 3 * parameters.readout)
    assert repriorised(tiny).potential(other) == found


@pytest.mark.parametrize("space", ["data", "feature"])
@pytest.mark.parametrize("reg", [None, 0.5])
def test_map_and_its_inverse(tiny, reg, space):
    target, parameters = repriorised(tiny, reg, space), tiny.draw_parameters()
    for there, back in [
        (target.to_parameters, target.from_parameters),
        (target.from_parameters, target.to_parameters),
    ]:
        returned = back(there(parameters))
        assert jnp.allclose(ravel_pytree(returned)[0], ravel_pytree(parameters)[0], atol=1e-10)
        moved = there(parameters)
        assert not jnp.allclose(moved.readout, parameters.readout, atol=0.01)
        assert jnp.array_equal(ravel_pytree(moved.inner)[0], ravel_pytree(parameters.inner)[0])


@pytest.mark.parametrize("space", ["data", "feature"])
@pytest.mark.parametrize("reg", [None, 0.5])
def test_log_jacobian_of_the_whole_map(tiny, reg, space):
    target = repriorised(tiny, reg, space)
    flat, unravel = ravel_pytree(tiny.draw_parameters())
    jacobian = jax.jit(jax.jacfwd(lambda z: ravel_pytree(target.to_parameters(unravel(z)))[0]))(flat)
    assert jnp.allclose(target.log_jacobian(unravel(flat)), jnp.linalg.slogdet(jacobian)[1], rtol=1e-9)


@pytest.mark.parametrize("space", ["data", "feature"])
def test_prediction_is_the_gaussian_process_of_the_empirical_kernel(tiny, space):
    parameters = tiny.draw_parameters()
    mean, covariance = gp_prediction(tiny, parameters.inner, tiny.x_new)
    for target, position in [
        (wb.targets.standard(tiny.bnn, tiny.x, tiny.y, space), parameters),
        (repriorised(tiny, 0.5, space), parameters),
        (marginal(tiny, space), parameters.inner),
    ]:
        assert jnp.allclose(target.predictive_mean(tiny.x_new)(position), mean, atol=1e-11)
        assert jnp.allclose(target.predictive_covariance(tiny.x_new)(position), covariance, atol=1e-11)


def test_output_is_the_network_at_its_parameters(tiny):
    parameters = tiny.draw_parameters()
    for target in (standard(tiny), repriorised(tiny, 0.5)):
        expected = tiny.bnn(target.to_parameters(parameters), tiny.x_new)
        assert jnp.allclose(target.output(tiny.x_new)(parameters), expected, atol=1e-12)
    f = tiny.bnn.embedding(parameters.inner, tiny.x_new) @ parameters.readout
    assert jnp.allclose(standard(tiny).output(tiny.x_new)(parameters), f, atol=1e-12)


def assert_moments(draws, mean, variance):
    """Within five standard errors of a mean and of a variance."""
    n = len(draws)
    assert jnp.all(jnp.abs(draws.mean(axis=0) - mean) < 5 * jnp.sqrt(variance / n))
    assert jnp.all(jnp.abs(draws.var(axis=0) / variance - 1) < 5 * np.sqrt(2 / n))


@pytest.mark.slow
@pytest.mark.parametrize("space", ["data", "feature"])
def test_drawn_readouts_have_the_exact_posterior(tiny, space):
    """Moments of `output` and of posterior-predictive draws are the Rao–Blackwellised ones."""
    target, inner = marginal(tiny, space), tiny.draw_parameters().inner
    mean, covariance = gp_prediction(tiny, inner, tiny.x_new)
    variance = jnp.tile(jnp.diag(covariance)[:, None], (1, mean.shape[1]))
    keys = jax.random.split(jax.random.key(0), 50_000)
    outputs = jax.jit(jax.vmap(lambda key: target.output(tiny.x_new)(inner, rng_key=key)))(keys)
    assert_moments(outputs, mean, variance)
    correlation = jnp.mean(jnp.prod(outputs[:, :, 0] - mean[None, :, 0], axis=1))
    scale = jnp.sqrt(jnp.prod(jnp.diag(covariance)) * 2 / len(keys))
    assert abs(correlation - covariance[0, 1]) < 5 * scale
    draws = jax.jit(jax.vmap(lambda key: target.predictive_draw(tiny.x_new)(inner, rng_key=key)))(keys)
    assert_moments(draws, mean, variance + tiny.bnn.noise_std**2)


@pytest.mark.slow
def test_posterior_of_the_readout_by_its_moments(tiny):
    """`marginal.readout` against the joint density: at λ = σ² minus the Hessian's inverse is Σ."""
    target, parameters = marginal(tiny), tiny.draw_parameters()
    shape, inner = parameters.readout.shape, parameters.inner

    def log_density(flat):
        return log_joint(tiny, Parameters(inner, flat.reshape(shape)))

    zero = jnp.zeros(np.prod(shape))
    covariance = -jnp.linalg.inv(jax.hessian(log_density)(zero))
    mean = covariance @ jax.grad(log_density)(zero)
    keys = jax.random.split(jax.random.key(1), 50_000)
    draws = jax.jit(jax.vmap(lambda key: target.readout(inner, key).ravel()))(keys)
    assert_moments(draws, mean, jnp.diag(covariance))
    whitened = (draws - mean[None, :]) @ jnp.linalg.inv(jnp.linalg.cholesky(covariance)).T
    assert jnp.allclose(
        whitened.T @ whitened / len(draws), jnp.eye(len(mean)), atol=5 * np.sqrt(2 / len(draws))
    )


def test_auto_factorises_the_smaller_matrix():
    few, many = problem(widths=(6,), n=3), problem(widths=(2,), n=6)
    assert isinstance(marginal(few).readout_posterior(few.draw_parameters().inner), wb.targets.DataSpace)
    assert isinstance(marginal(many).readout_posterior(many.draw_parameters().inner), wb.targets.FeatureSpace)


@pytest.mark.slow
def test_gradient_is_finite_where_eigenvalues_meet():
    """Equal rows of data make eigenvalues of K̂ coincide; the Cholesky forms differentiate through them."""
    tiny = problem(n=4)
    x = jnp.tile(tiny.x[:1], (4, 1))
    for space in ("data", "feature"):
        target = wb.targets.marginal(tiny.bnn, x, tiny.y, space)
        gradient = jax.grad(target.potential)(tiny.draw_parameters().inner)
        assert jnp.isfinite(ravel_pytree(gradient)[0]).all()


def test_logdensity_and_prior_draws():
    target = wb.targets.from_potential(lambda u: jnp.sum(u["a"] ** 4), {"a": jnp.zeros(3)})
    u = {"a": jnp.asarray([1.0, 2.0, 0.0])}
    assert target.logdensity(u) == -2.5 - 17
    draws = jax.vmap(target.draw_prior)(jax.random.split(jax.random.key(0), 100_000))["a"]
    assert_moments(draws, jnp.zeros(3), jnp.ones(3))
