"""Exact posterior predictions of a tiny network by importance sampling, and chains held against them.

The reference is written without the package: prior draws of the inner parameters, weighted by their dense
evidence; given them the prediction is Gaussian, so that only the inner parameters are sampled.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import widebnn as wb

from .dkwm import FALSE_FAILURE
from .networks import embedding, problem

NUM_CHAINS = 512
DETECTABLE = 0.15
"""Relative error of a standard deviation that is seen every second time; twice of it, nearly always."""


class Moments(NamedTuple):
    """Mean and standard deviation of f(x_new), (m, d_out), with their Monte Carlo errors."""

    mean: np.ndarray
    std: np.ndarray
    mean_error: np.ndarray
    std_error: np.ndarray


class Reference(NamedTuple):
    moments: Moments
    effective_draws: float


def reference(problem, widths, activation, num_draws):
    """Self-normalised importance sampling with the prior as proposal; errors by the delta method."""
    noise = problem.bnn.noise_std**2 * jnp.eye(len(problem.x))
    y = problem.y

    def one(key):
        psi, new = _prior_embeddings(problem, widths, activation, key)
        factor = jnp.linalg.cholesky(psi @ psi.T + noise)
        whitened, cross = (jax.scipy.linalg.solve_triangular(factor, b, lower=True) for b in (y, psi @ new.T))
        log_weight = -jnp.sum(whitened**2) / 2 - y.shape[1] * jnp.sum(jnp.log(jnp.diag(factor)))
        variance = jnp.sum(new**2, axis=1) - jnp.sum(cross**2, axis=0)
        mean = cross.T @ whitened
        return log_weight, mean, mean**2 + variance[:, None]

    return _weighted(one, num_draws)


PROBLEMS = {
    "one layer": {"widths": (3,), "activation": "gelu"},
    "two layers": {"widths": (4, 2), "activation": "erf", "out_features": 2, "n": 4},
    "three layers": {"widths": (5, 4, 2), "activation": "gelu", "n": 3, "noise_std": 0.8},
}


DRAWS = {"one layer": 100_000, "two layers": 500_000, "three layers": 100_000}
"""Of which more than 10,000 are effective."""


@functools.cache
def solved(which):
    """A problem and its exact answers; cached, as the draws take seconds."""
    options = PROBLEMS[which]
    tiny = problem(**options)
    return tiny, reference(tiny, options["widths"], options["activation"], DRAWS[which])


def reference_of_means(problem, likelihood, widths, activation, num_draws):
    """The same for E[y | θ] under a likelihood that is not Gaussian: all of θ from the prior."""

    def one(key):
        inner_key, readout_key = jax.random.split(key)
        psi, new = _prior_embeddings(problem, widths, activation, inner_key)
        w = jax.random.normal(readout_key, (psi.shape[1], problem.y.shape[1]))
        mean = likelihood.mean(new @ w)
        return jnp.sum(likelihood.log_prob(problem, psi @ w)), mean, mean**2

    return _weighted(one, num_draws)


def _prior_embeddings(problem, widths, activation, key):
    """Ψ of the observed and of the new inputs at inner parameters from the prior."""
    sizes = [problem.x.shape[1], *widths]
    keys = jax.random.split(key, 2 * len(widths))
    kernels = [jax.random.normal(k, (a, b)) for k, a, b in zip(keys, sizes[:-1], sizes[1:])]
    biases = [jax.random.normal(k, (b,)) for k, b in zip(keys[len(widths) :], sizes[1:])]
    return [
        embedding(kernels, biases, x, activation, problem.bnn.bias_std) for x in (problem.x, problem.x_new)
    ]


def _weighted(one, num_draws):
    """Moments from draws of (log weight, first moment, second moment)."""
    keys = jax.random.split(jax.random.key(77), num_draws)
    log_weights, first, second = jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=10_000))(keys)
    weights = np.asarray(jax.nn.softmax(log_weights))
    first, second = np.asarray(first), np.asarray(second)
    mean, square = (np.tensordot(weights, f, axes=1) for f in (first, second))
    std = np.sqrt(square - mean**2)

    def error(influence):
        return np.sqrt(np.tensordot(weights**2, influence**2, axes=1))

    std_influence = (second - square - 2 * mean * (first - mean)) / (2 * std)
    moments = Moments(mean, std, error(first - mean), error(std_influence))
    return Reference(moments, 1 / np.sum(weights**2))


def by_chains(draws):
    """Moments of f over independent chains, (chain, draw, m, d_out): errors from their scatter alone."""
    draws = np.asarray(draws, np.float64)
    first, second = draws.mean(axis=1), (draws**2).mean(axis=1)
    mean, square = first.mean(axis=0), second.mean(axis=0)
    std = np.sqrt(square - mean**2)
    std_influence = (second - square - 2 * mean * (first - mean)) / (2 * std)
    root = math.sqrt(len(draws))
    return Moments(mean, std, first.std(axis=0) / root, std_influence.std(axis=0) / root)


def assert_exact(target, sampler, problem, exact, num_samples=40, thin=10, burn_in=300):
    """Posterior means and deviations of `output` at new points, from prior draws to independent chains.

    False failures at the rate `FALSE_FAILURE` for the whole call (normal errors, 512 chains).
    """
    draws = wb.sample(
        jax.random.key(3),
        target,
        sampler,
        num_samples=num_samples,
        thin=thin,
        burn_in=burn_in,
        num_chains=NUM_CHAINS,
        collect={"f": wb.output(problem.x_new), "mean": wb.predictive_mean(problem.x_new)},
        progress=False,
    )
    found = by_chains(draws["f"])
    rao_blackwell = by_chains(draws["mean"])
    rao_blackwell_score = (rao_blackwell.mean - exact.mean) / np.hypot(
        rao_blackwell.mean_error, exact.mean_error
    )
    assert_moments(found, exact, {"Rao–Blackwellised mean": rao_blackwell_score})
    return draws, found


def assert_moments(found, exact, more_scores=None):
    """Means and deviations agree within their errors; false failures at the rate `FALSE_FAILURE`."""
    scores = {
        "mean": (found.mean - exact.mean) / np.hypot(found.mean_error, exact.mean_error),
        "standard deviation": (found.std - exact.std) / np.hypot(found.std_error, exact.std_error),
    } | (more_scores or {})
    limit = stats.norm.isf(FALSE_FAILURE / (2 * len(scores) * exact.mean.size))
    blur = np.max(np.hypot(found.std_error, exact.std_error) / exact.std)
    assert limit * blur < DETECTABLE, f"too few draws: a deviation off by {limit * blur:.0%} could pass"
    for name, score in scores.items():
        assert np.abs(score).max() < limit, f"{name} off by {np.abs(score).max():.1f} standard errors"
