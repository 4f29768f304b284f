"""Network targets against densities and predictions written out by brute force."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from numpy.testing import assert_allclose

import widebnn as wb
from widebnn.tree import normal_like

from ..exact.change_of_variables import assert_same_density, log_det_of_map
from ..exact.networks import embedding, gp_prediction, log_evidence, log_joint, problem

PROBLEMS = {
    "two outputs, n = p": {"out_features": 2},
    "deep, n below p, no readout bias": {"widths": (3, 4), "activation": "erf", "n": 3, "bias_std": 0.0},
}
REGS = (0.01, 0.5, 40.0)
SPACES = ("data", "feature")


def targets_of(tiny, reg):
    """The parametrisations whose positions hold a readout."""
    at = (tiny.bnn, tiny.x, tiny.y)
    found = {"standard": wb.targets.standard(*at)}
    for space in SPACES:
        found[f"repriorised in {space} space"] = wb.targets.repriorised(*at, space=space)
        found[f"repriorised at λ in {space} space"] = wb.targets.repriorised(*at, reg, space)
    return found


def in_both_spaces(tiny):
    return {space: wb.targets.marginal(tiny.bnn, tiny.x, tiny.y, space) for space in SPACES}


NAMES = ["standard", *(f"repriorised{at} in {space} space" for space in SPACES for at in ("", " at λ"))]


def at_parameters(tiny, key, reg):
    """What each target answers at one position, and what is right."""
    position = normal_like(key, tiny.bnn.template(tiny.x))

    def flat(parameters):
        return ravel_pytree(parameters)[0]

    def of_target(target):
        theta = target.to_parameters(position)
        log_det = log_det_of_map(target, position)
        return {
            "potential": target.potential(position),
            "logdensity": target.logdensity(position),
            "exact": log_joint(tiny, theta) + log_det,
            "log_det": log_det,
            "moved": flat(theta),
            "there and back": flat(target.from_parameters(theta)),
            "back and there": flat(target.to_parameters(target.from_parameters(position))),
            "log_jacobian": target.log_jacobian(position) if hasattr(target, "log_jacobian") else 0.0,
            "output": wb.output(tiny.x_new)(target, position),
            "exact output": tiny.bnn.embedding(theta.inner, tiny.x_new) @ theta.readout,
        }

    marginals = in_both_spaces(tiny)
    targets = targets_of(tiny, reg)
    predicting = [(target, position.inner) for target in marginals.values()]
    predicting += [(target, position) for target in targets.values()]
    return {
        "position": flat(position),
        "inner": flat(position.inner),
        "targets": {name: of_target(target) for name, target in targets.items()},
        "marginal": {space: target.potential(position.inner) for space, target in marginals.items()},
        "log evidence": log_evidence(tiny, position.inner),
        "predictions": [
            (wb.predictive_mean(tiny.x_new)(target, u), wb.predictive_covariance(tiny.x_new)(target, u))
            for target, u in predicting
        ],
        "gaussian process": gp_prediction(tiny, position.inner, tiny.x_new),
    }


@functools.cache
def solved(which):
    """The answers at four positions, for each λ, by one program."""
    tiny = problem(**PROBLEMS[which])
    program = jax.jit(jax.vmap(functools.partial(at_parameters, tiny), in_axes=(0, None)))
    keys = jax.random.split(jax.random.key(0), 4)
    return tiny, [jax.device_get(program(keys, reg)) for reg in REGS]


@pytest.fixture(params=PROBLEMS)
def answers(request):
    return solved(request.param)[1]


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["gelu", "erf"])
def test_embedding_is_the_one_of_the_theory(activation):
    tiny = problem(widths=(3, 4), activation=activation)

    @jax.jit
    def both(inner):
        kernels, biases = ([inner["layers"][i][name] for i in range(2)] for name in ("kernel", "bias"))
        return tiny.bnn.embedding(inner, tiny.x), embedding(kernels, biases, tiny.x, activation, 0.1)

    assert_allclose(*both(tiny.draw_parameters().inner), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_potential_is_the_change_of_variables(answers, name):
    for answer in answers:
        assert_same_density(answer["targets"][name]["logdensity"], answer["targets"][name]["exact"])


@pytest.mark.parametrize("which", PROBLEMS)
def test_marginal_potential_is_minus_log_evidence(which):
    """Not only its differences: U = −log p(y | θ^{≤L}) less the constant of the Gaussian."""
    tiny, (answer, *_) = solved(which)
    constant = tiny.y.size * np.log(2 * np.pi) / 2
    for found in answer["marginal"].values():
        assert np.ptp(found) > 0.1
        assert_allclose(found, -answer["log evidence"] - constant, rtol=1e-10)


def test_repriorised_potential_is_the_marginal_one(answers):
    for space, marginal in answers[0]["marginal"].items():
        found = answers[0]["targets"][f"repriorised in {space} space"]["potential"]
        assert_allclose(found, marginal, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES[1:])
def test_map_and_its_inverse(answers, name):
    for answer in answers[:2]:  # at λ = 40 the map hardly moves anything
        position, inner, found = answer["position"], answer["inner"], answer["targets"][name]
        for returned in (found["there and back"], found["back and there"]):
            assert_allclose(returned, position, atol=1e-10)
        assert_allclose(found["moved"][:, : inner.shape[1]], inner, atol=0)
        assert np.abs(found["moved"] - position).max() > 0.01


@pytest.mark.parametrize("name", NAMES)
def test_log_jacobian_of_the_whole_map(answers, name):
    for answer in answers:
        found = answer["targets"][name]
        assert_allclose(found["log_jacobian"], found["log_det"], rtol=1e-9, atol=1e-12)


def test_prediction_is_the_gaussian_process_of_the_empirical_kernel(answers):
    for answer in answers:
        for found in answer["predictions"]:
            for mine, exact in zip(found, answer["gaussian process"], strict=True):
                assert_allclose(mine, exact, atol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_output_is_the_network_at_its_parameters(answers, name):
    for answer in answers:
        found = answer["targets"][name]
        assert_allclose(found["output"], found["exact output"], atol=1e-12)


def assert_moments(draws, mean, variance):
    """Within five standard errors of a mean and of a variance."""
    n = len(draws)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * np.sqrt(variance / n))
    assert np.all(np.abs(draws.var(axis=0) / variance - 1) < 5 * np.sqrt(2 / n))


@functools.cache
def drawn():
    """50,000 outputs and observations at one position in both spaces, and what their law is."""
    tiny = problem(**PROBLEMS["two outputs, n = p"])
    inner = tiny.draw_parameters().inner

    def draws(target, key):
        return [f(tiny.x_new)(target, inner, key) for f in (wb.output, wb.predictive_draw)]

    @jax.jit
    def everything(keys):
        found = {
            space: jax.vmap(functools.partial(draws, target))(keys)
            for space, target in in_both_spaces(tiny).items()
        }
        return found, gp_prediction(tiny, inner, tiny.x_new)

    return tiny, *jax.device_get(everything(jax.random.split(jax.random.key(0), 50_000)))


@pytest.mark.slow
@pytest.mark.parametrize("space", SPACES)
def test_drawn_readouts_have_the_exact_posterior(space):
    """Moments of `output` and of posterior-predictive draws are the Rao–Blackwellised ones."""
    tiny, found, (mean, covariance) = drawn()
    outputs, observations = found[space]
    variance = np.tile(np.diag(covariance)[:, None], (1, mean.shape[1]))
    assert_moments(outputs, mean, variance)
    correlation = np.mean(np.prod(outputs[:, :, 0] - mean[None, :, 0], axis=1))
    scale = np.sqrt(np.prod(np.diag(covariance)) * 2 / len(outputs))
    assert abs(correlation - covariance[0, 1]) < 5 * scale
    assert_moments(observations, mean, variance + tiny.bnn.noise_std**2)


@pytest.mark.slow
def test_gradient_is_finite_where_eigenvalues_meet():
    """Equal rows of data make eigenvalues of K̂ coincide; the Cholesky forms differentiate through them."""
    tiny = problem()
    alike = in_both_spaces(tiny._replace(x=jnp.tile(tiny.x[:1], (5, 1))))
    gradients = jax.jit(lambda u: {space: jax.grad(target.potential)(u) for space, target in alike.items()})
    for leaf in jax.tree.leaves(gradients(tiny.draw_parameters().inner)):
        assert np.isfinite(leaf).all()


def test_logdensity_and_prior_draws():
    target = wb.targets.from_potential(lambda u: jnp.sum(u["a"] ** 4), {"a": jnp.zeros(3)})
    u = {"a": jnp.asarray([1.0, 2.0, 0.0])}
    assert target.logdensity(u) == -2.5 - 17
    draws = jax.jit(jax.vmap(target.draw_prior))(jax.random.split(jax.random.key(0), 100_000))["a"]
    assert_moments(np.asarray(draws), np.zeros(3), np.ones(3))
