"""Exact evidence, and runs of sequential Monte Carlo held against it."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import widebnn as wb
from widebnn import targets

from .dkwm import FALSE_FAILURE
from .importance import _prior_embeddings

NUM_ISLANDS = 400
PARTICLES = 16
TEMPERATURES = 0.03, 0.1, 0.3, 0.6, 1.0
DETECTABLE = 0.25
"""Relative bias of Ẑ that is seen in all but one run of a million."""
LEVEL = 0.95


def linear(n=6, noise_std=0.8):
    """Bayesian linear regression, and its log evidence by the dense density."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    law = stats.multivariate_normal(np.zeros(n), x @ x.T + noise_std**2 * np.eye(n))
    return targets.linear(x, y, noise_std), sum(law.logpdf(column) for column in y.T)


def islands(target, temperatures=TEMPERATURES, num_particles=PARTICLES, **options):
    """Many short independent runs."""
    return wb.smc(
        jax.random.key(5),
        target,
        wb.samplers.tuned(wb.samplers.function_space_hmc(0.4, num_steps=2), 0.8, 1.5),
        num_particles=num_particles,
        num_islands=NUM_ISLANDS,
        temperatures=temperatures,
        progress=False,
        **options,
    )


def assert_unbiased(run, exact):
    """E Ẑ = Z on its natural scale, and enough islands to see a bias of `DETECTABLE`."""
    ratios = np.exp(run.log_evidences - exact)
    error = ratios.std(ddof=1) / math.sqrt(len(ratios))
    limit = stats.norm.isf(FALSE_FAILURE / 2)
    assert limit * error < DETECTABLE, f"too wide: a bias of {limit * error:.0%} could pass"
    score = (ratios.mean() - 1) / error
    assert abs(score) < limit, f"evidence off by {score:.1f} standard errors"


def coverage(run, exact, per_run=4):
    """Share of runs of four islands whose interval holds log Z."""
    groups = np.split(run.log_evidences, len(run.log_evidences) // per_run)
    intervals = [replace(run, log_evidences=group).log_evidence_interval(LEVEL) for group in groups]
    return np.mean([low < exact < high for low, high in intervals]), len(groups)


def assert_covers(run, exact, per_run=4):
    """No fewer intervals hold log Z than luck explains, once in a million."""
    share, number = coverage(run, exact, per_run)
    least = stats.binom.ppf(FALSE_FAILURE, number, LEVEL) / number
    assert share >= least, f"coverage {share:.0%} of {number} intervals, less than {least:.0%}"


def of_network(problem, widths, activation, num_draws=200_000):
    """log Z of a tiny network by prior draws of what lies below the readout, and its standard error."""
    noise = problem.bnn.noise_std**2 * jnp.eye(len(problem.x))

    def one(key):
        psi, _ = _prior_embeddings(problem, widths, activation, key)
        covariance = psi @ psi.T + noise
        factor = jnp.linalg.cholesky(covariance)
        whitened = jax.scipy.linalg.solve_triangular(factor, problem.y, lower=True)
        n, d_out = problem.y.shape
        log_det = jnp.sum(jnp.log(jnp.diag(factor)))
        return -jnp.sum(whitened**2) / 2 - d_out * (log_det + n * math.log(2 * math.pi) / 2)

    keys = jax.random.split(jax.random.key(77), num_draws)
    values = np.asarray(jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=10_000))(keys))
    weights = np.exp(values - values.max())
    return values.max() + np.log(weights.mean()), weights.std() / weights.mean() / math.sqrt(num_draws)


def assert_evidence(run, exact, exact_error=0.0):
    """log Ẑ of a run of many islands is log Z, within their errors."""
    error = math.hypot(run.log_evidence_error, exact_error)
    assert error < 0.05, f"too wide: {error}"
    score = (run.log_evidence - exact) / error
    assert abs(score) < stats.norm.isf(FALSE_FAILURE / 2), f"evidence off by {score:.1f} standard errors"


def assert_temperatures(next_temperature):
    """The weights of the next temperature leave the share that was asked for, and the last one is 1."""
    potentials = np.random.default_rng(0).normal(size=1_000) * 20
    beta = next_temperature(potentials, 0.0, 0.7)
    weights = np.exp(-beta * (potentials - potentials.min()))
    share = weights.sum() ** 2 / (weights**2).sum() / 1_000
    assert abs(share - 0.7) < 1e-3, f"share of effective particles is {share:.3f} where 0.7 was asked for"
    assert next_temperature(potentials, 1 - 1e-4, 0.7) == 1.0
    impossible = next_temperature(np.append(potentials, np.full(900, np.inf)), 0.0, 0.7)
    assert abs(impossible / beta - 1) < 1e-3, "share is not one of the particles that are possible"
