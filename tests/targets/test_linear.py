"""Bayesian linear regression against dense formulas; repriorisation is exact there."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

import widebnn as wb

from ..exact.change_of_variables import assert_same_density

NOISE_STD = 0.7
REGS = (0.05, 0.49, 3.0)


@functools.cache
def answers(n):
    """What the targets of n observations answer at four positions, by one program."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    target = wb.targets.linear(x, y, NOISE_STD)

    def at(key):
        u = target.draw_prior(key)

        def mapped(reg):
            transform = wb.targets.readout_posterior(target.x, target.y, reg).transform
            jacobian = jax.jacobian(transform)(u).reshape(u.size, u.size)
            exact = target.logdensity(transform(u)) + jnp.linalg.slogdet(jacobian)[1]
            return target.repriorised(reg).logdensity(u), exact

        potentials = target.potential(u), target.repriorised().potential(u)
        return u, target.logdensity(u), potentials, [mapped(reg) for reg in REGS]

    program = jax.jit(
        lambda keys: (jax.vmap(at)(keys), target.posterior.mean(), target.posterior.covariance(jnp.eye(3)))
    )
    return x, y, *jax.device_get(program(jax.random.split(jax.random.key(0), 4)))


@pytest.fixture(params=[2, 6])
def found(request):
    return answers(request.param)


def test_posterior_is_the_dense_one(found):
    x, y, (positions, logdensity, _, _), mean, covariance = found
    sigma = np.linalg.inv(np.eye(3) + x.T @ x / NOISE_STD**2)
    mu = sigma @ x.T @ y / NOISE_STD**2
    laws = [multivariate_normal(column, sigma) for column in mu.T]
    assert_same_density(
        logdensity, [sum(law.logpdf(u[:, j]) for j, law in enumerate(laws)) for u in positions]
    )
    assert_allclose(mean, mu, atol=1e-12)
    assert_allclose(covariance, sigma, atol=1e-12)


def test_repriorised_potential_is_constant_and_the_evidence(found):
    """U = −log p(y) up to the likelihood's constant, at any φ."""
    x, y, (_, _, (potential, constant), _), *_ = found
    law = multivariate_normal(np.zeros(len(x)), x @ x.T + NOISE_STD**2 * np.eye(len(x)))
    evidence = sum(law.logpdf(column) for column in y.T)
    assert_allclose(constant, -evidence - y.size * np.log(2 * np.pi * NOISE_STD**2) / 2, rtol=1e-10)
    assert np.ptp(potential) > 1


def test_other_regularisers_by_brute_force(found):
    _, _, (_, _, _, mapped), *_ = found
    for logdensity, exact in mapped:
        assert_same_density(logdensity, exact)


def test_stable_leapfrog_steps_are_those_of_the_formula():
    """Below 2/√(1 + ‖XᵀX‖/σ²) in θ and below 2 in φ no eigenvalue of a step leaves the unit circle."""
    rng = np.random.default_rng(3)
    target = wb.targets.linear(rng.normal(size=(6, 3)), rng.normal(size=(6, 1)), NOISE_STD)

    @functools.partial(jax.jit, static_argnums=0)
    def one_step(make, step_size):
        """The matrix that takes position and momentum to the next ones."""

        def move(flat):
            position, momentum = jnp.split(flat[:, None], 2)
            step = wb.samplers.leapfrog(make().potential, step_size, 1)
            state, momentum, _ = step(wb.samplers.hmc(1.0, 1).init(make(), position), momentum)
            return jnp.concatenate([state.position, momentum])[:, 0]

        return jax.jacfwd(move)(jnp.zeros(6))

    limit = 2 / np.sqrt(1 + np.linalg.norm(target.x, 2) ** 2 / NOISE_STD**2)
    for make, wanted in ((lambda: target, limit), (target.repriorised, 2.0)):
        for factor, is_stable in ((0.999, True), (1.001, False)):
            eigenvalues = np.linalg.eigvals(one_step(make, wanted * factor))
            assert (np.abs(eigenvalues).max() < 1 + 1e-6) == is_stable


def test_a_map_made_of_a_subset_gains_less_than_half():
    """Of the longest stable step, beside that of a map made of all data (Hron et al., Appendix E.2)."""
    x = np.random.default_rng(4).normal(size=(16, 32))
    gains = []
    for num in (8, 14, 16):
        precision, of_part = (np.eye(32) + a.T @ a / 0.1**2 for a in (x, x[:num]))
        root = np.linalg.inv(np.linalg.cholesky(of_part)).T
        top, mapped = (np.linalg.eigvalsh(a)[-1] for a in (precision, root.T @ precision @ root))
        gains.append(np.sqrt(top / mapped))
    half, most, whole = gains
    assert_allclose(whole, np.sqrt(1 + np.linalg.norm(x, 2) ** 2 / 0.1**2))
    assert 1 < half < most < whole / 2
