"""Misprints of the papers, and a slip of their code: what is right against what is printed (chapter 24).

Each is an identity of `book.experiments.identities`, on the same random problems in float64.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from book.experiments.identities import at_draws, difference, identity, network
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import multivariate_normal
from jaxtyping import Array, Float
from scipy.stats import norm
from widebnn import targets

ERRATUM = "On random problems in float64: below 1e-9, and as printed above 0.01."

misprint = partial(identity, errs=True, page="24-errata")


def _kernel(target: targets.NetworkTarget, position: Any, noise_std: float) -> Float[Array, "n n"]:
    """K̂ + σ²I at a position of the marginal target."""
    psi = target.embedding(position)
    return psi @ psi.T + noise_std**2 * jnp.eye(len(psi))


@misprint(
    "sign",
    "potential against the density of y",
    "H-E5",
    where="Equation (5)",
    claim="The density of the inner parameters has exp(−½ yᵀK⁻¹y), K = K̂ + σ²I; equation (5) has a plus.",
    paper="exp(+½ yᵀK⁻¹y), as in the proofs of Pezzetti et al.",
    rule="The potential against minus the log density of y ~ N(0, K), by the largest difference over prior "
    "draws in units of how much it varies. " + ERRATUM,
)
def _sign(rng_key, *problem) -> tuple[float, float]:
    bnn, x, y = network(rng_key, *problem)
    target = targets.marginal(bnn(), x, y)

    def surprise(position, sign=1.0):
        """Of y up to a constant, by the density itself; what a plus makes of it."""
        kernel = _kernel(target, position, problem[-1])
        log_density = jax.vmap(multivariate_normal.logpdf, (0, None, None))(y.T, jnp.zeros(len(y)), kernel)
        quadratic = jnp.sum(y * jnp.linalg.solve(kernel, y))
        return -jnp.sum(log_density) - (1 - sign) / 2 * quadratic

    u, right, printed = (
        values - values[0]
        for values in at_draws(
            rng_key, target, target.potential, surprise, lambda position: surprise(position, -1.0)
        )
    )
    return difference(u, right), difference(u, printed)


@misprint(
    "determinant",
    "log det Σ against its closed form",
    "H-ES",
    where="Below equation (5)",
    claim="The determinant of the readout's covariance Σ is that of (I + ΨᵀΨ/σ²)⁻¹; the inverse is printed.",
    paper="det Σ = det(I + ΨᵀΨ/σ²), in proportion to det(K̂ + σ²I)",
    rule="log det Σ, of Σ inverted as a matrix, against n log σ² − log det(K̂ + σ²I), by the largest "
    "difference over prior draws in units of how much it varies. " + ERRATUM,
)
def _determinant(rng_key, *problem) -> tuple[float, float]:
    bnn, x, y = network(rng_key, *problem)
    target, variance = targets.marginal(bnn(), x, y), problem[-1] ** 2

    def of_covariance(position):
        psi = target.embedding(position)
        return jnp.linalg.slogdet(jnp.linalg.inv(jnp.eye(psi.shape[1]) + psi.T @ psi / variance))[1]

    def of_kernel(position):
        return len(y) * jnp.log(variance) - jnp.linalg.slogdet(_kernel(target, position, problem[-1]))[1]

    found, right = at_draws(rng_key, target, of_covariance, of_kernel)
    return difference(found, right), difference(found, -right)


@misprint(
    "Jacobian",
    "log Jacobian of T against its closed form",
    "H-EJ",
    where="Appendices B and C",
    claim="The log Jacobian of T is −½ d_out log det(K̂ + σ²I) up to a constant; + d_out log det is printed.",
    paper="+ d_out log det(K̂ + σ²I); in Appendix B the root of det Λ and not its inverse",
    rule="The log determinant of the automatic derivative of T in the readout against the formula, by the "
    "largest difference over prior draws in units of how much it varies. " + ERRATUM,
)
def _jacobian(rng_key, n: int, width: int, d_out: int, noise_std: float) -> tuple[float, float]:
    bnn, x, y = network(rng_key, n, width, d_out, noise_std)
    target, marginal = (targets.repriorised(bnn(), x, y), targets.marginal(bnn(), x, y))

    def of_derivative(phi):
        flat, unflatten = ravel_pytree(phi.readout)

        def mapped(readout):
            return ravel_pytree(target.to_parameters(phi._replace(readout=unflatten(readout))).readout)[0]

        return jnp.linalg.slogdet(jax.jacobian(mapped)(flat))[1]

    def of_kernel(phi):
        return jnp.linalg.slogdet(_kernel(marginal, phi.inner, noise_std))[1]

    found, log_det = (values - values[0] for values in at_draws(rng_key, target, of_derivative, of_kernel))
    return difference(found, -d_out / 2 * log_det), difference(found, d_out * log_det)


@misprint(
    "bracket",
    "acceptance ratio of pCNL with 1 added to U against that without",
    "P-E9",
    where="Equation (9)",
    claim="pCNL accepts by exp(ρ(u, v) − ρ(v, u)); exp(ρ(u, v)) − ρ(v, u) is printed.",
    paper="min{1, exp(ρ(u, v)) − ρ(v, u)}, in the first version equation (7)",
    rule="How much the ratio changes where 1 is added to the potential of a network, in units of the ratio; "
    "a constant of a log density is arbitrary. " + ERRATUM,
)
def _bracket(rng_key, *problem) -> tuple[float, float]:
    bnn, x, y = network(rng_key, *problem)
    target, step = targets.marginal(bnn(), x, y), problem[-1] ** 2 / 10
    start = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), target.draw_prior(rng_key))
    u, unflatten = ravel_pytree(start)
    v = jnp.sqrt(1 - step**2) * u + step * jax.random.normal(rng_key, u.shape)

    @jax.jit
    def ratios(constant):
        def rho(u, v):
            value, g = jax.value_and_grad(lambda z: target.potential(unflatten(z)))(u)
            return value - level + constant + (v - u) @ g / 2 + step / 4 * ((u + v) @ g + g @ g)

        level = target.potential(unflatten(u))
        there, back = rho(u, v), rho(v, u)
        return jnp.exp(there - back), jnp.exp(there) - back

    right, printed = np.abs(np.divide(ratios(1.0), ratios(0.0)) - 1)
    return float(right), float(printed)


@misprint(
    "R-hat",
    "R-hat by ArviZ against the root of the ratio of variances",
    "P-ER",
    where="Appendix B.1",
    claim="What is called R-hat is a ratio of variances, of which R-hat is the root.",
    paper="R-hat = ((N − 1)/N V + B/N)/V",
    rule="The root of the printed ratio against ArviZ's R-hat of whole chains, the relative difference, of "
    "three chains around means of their own. " + ERRATUM,
)
def _rhat(rng_key, n: int, *problem) -> tuple[float, float]:
    import arviz

    noise = np.asarray(jax.random.normal(rng_key, (3, n + 10)), float)
    draws = noise + np.array([-1.0, 0.0, 1.0])[:, None]
    num = draws.shape[1]
    within, of_means = (draws.var(axis=1, ddof=1).mean(), draws.mean(axis=1).var(ddof=1))
    ratio = ((num - 1) / num * within + of_means) / within
    judge = float(arviz.rhat(draws, method="identity"))
    return abs(ratio**0.5 / judge - 1), abs(ratio / judge - 1)


@misprint(
    "per step",
    "effective samples per step of pCN at U = 0 against their closed form",
    "P-ES",
    where="Section 4.2",
    claim="Effective samples over kept draws are per draw; per step they are fewer by the thinning.",
    paper="divided by the number of kept draws, and called per step, as in Hron et al.",
    rule="One over the steps of a chain times the variance of the mean of its kept draws, by the covariance "
    "of all its steps, against the closed form for an autoregression, the relative difference. " + ERRATUM,
)
def _per_step(rng_key, n: int, thin: int, d_out: int, noise_std: float) -> tuple[float, float]:
    num_draws, a = 8, 1 - noise_std / 2
    steps = np.arange(num_draws * thin)
    kept = (steps % thin == 0) / num_draws
    variance = kept @ a ** np.abs(steps[:, None] - steps) @ kept
    lags = np.arange(1, num_draws)
    per_draw = 1 / (1 + 2 * np.sum((1 - lags / num_draws) * a ** (thin * lags)))
    found = 1 / (len(steps) * variance)
    return float(abs(per_draw / thin / found - 1)), float(abs(per_draw / found - 1))


@misprint(
    "prior term",
    "log ratio of pCN's moves at U = 0 against zero",
    "P-EC",
    where="Published code, on one device",
    claim="An acceptance ratio of densities has the prior's and the proposal's; one device omits the first.",
    paper="the prior's term inside the branch for several devices",
    rule="log p(v) + log q(u | v) − log p(u) − log q(v | u) of pCN's proposal q and the prior p, in units of "
    "the prior's part. On random moves in float64: below 1e-9, and without the prior above 0.01.",
)
def _prior_term(rng_key, n: int, width: int, d_out: int, noise_std: float) -> tuple[float, float]:
    u, noise = np.asarray(jax.random.normal(rng_key, (2, width), float))
    step = noise_std / 2
    a = np.sqrt(1 - step**2)
    v = a * u + step * noise
    prior = np.sum(norm.logpdf(v) - norm.logpdf(u))
    proposal = np.sum(norm.logpdf(u, a * v, step) - norm.logpdf(v, a * u, step))
    return float(abs((prior + proposal) / prior)), float(abs(proposal / prior))


@misprint(
    "warm",
    "slope of the ELBO where the variance is that of a warm posterior",
    "V-EW",
    where="Section 2",
    claim="η > 1 makes a warm posterior, wider than at η = 1; η < 1 is called warm in print.",
    paper="η < 1 corresponds to a warm posterior",
    rule="Of one weight and a Gaussian likelihood: the derivative of the ELBO at η = 4 with respect to log s "
    "per unit of η, at s² = 1/(1 + ‖x‖²/(ησ²)), which grows with η. On random problems in float64: below "
    "1e-9, and at the s² that falls with η above 0.01.",
)
def _warm(rng_key, n: int, width: int, d_out: int, noise_std: float) -> tuple[float, float]:
    x = 1 + np.asarray(jax.random.uniform(rng_key, (n,), float))
    precision = x @ x / noise_std**2
    eta = 4.0

    def elbo(log_std):
        """What depends on the deviation of q."""
        return -eta * (jnp.exp(2 * log_std) / 2 - log_std) - precision * jnp.exp(2 * log_std) / 2

    derivative = jax.jit(jax.grad(elbo))
    right, printed = (abs(derivative(-np.log1p(precision / of) / 2)) / eta for of in (eta, 1 / eta))
    return float(right), float(printed)
