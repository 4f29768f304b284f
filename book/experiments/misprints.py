"""Misprints of the papers, and a slip of their code: what is right against what is printed.

Each is an identity of `book.experiments.identities`, on the same random problems in float64.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import multivariate_normal
from scipy.stats import norm

from book.experiments.identities import at_draws, difference, identity, network
from widebnn import targets, vi


def _kernel(target, position, noise_std):
    """K̂ + σ²I at a position of the marginal target."""
    psi = target.embedding(position)
    return psi @ psi.T + noise_std**2 * jnp.eye(len(psi))


@identity("sign", "potential against the density of y", "H-E5")
def _sign(rng_key, *problem):
    bnn, x, y = network(rng_key, *problem)
    target = targets.marginal(bnn(), x, y)

    def surprise(position, sign=1.0):
        """Of y up to a constant, by the density itself; what a plus makes of it."""
        kernel = _kernel(target, position, problem[-1])
        log_density = jax.vmap(multivariate_normal.logpdf, (0, None, None))(y.T, jnp.zeros(len(y)), kernel)
        quadratic = jnp.sum(y * jnp.linalg.solve(kernel, y))
        return -jnp.sum(log_density) - (1 - sign) / 2 * quadratic

    potentials = target.potential, surprise, lambda position: surprise(position, -1.0)
    u, right, printed = (values - values[0] for values in at_draws(rng_key, target, *potentials))
    return difference(u, right), difference(u, printed)


@identity("determinant", "log det Σ against its closed form", "H-ES")
def _determinant(rng_key, *problem):
    bnn, x, y = network(rng_key, *problem)
    target, variance = targets.marginal(bnn(), x, y), problem[-1] ** 2

    def of_covariance(position):
        psi = target.embedding(position)
        return jnp.linalg.slogdet(jnp.linalg.inv(jnp.eye(psi.shape[1]) + psi.T @ psi / variance))[1]

    def of_kernel(position):
        return len(y) * jnp.log(variance) - jnp.linalg.slogdet(_kernel(target, position, problem[-1]))[1]

    found, right = at_draws(rng_key, target, of_covariance, of_kernel)
    return difference(found, right), difference(found, -right)


@identity("Jacobian", "log Jacobian of T against its closed form", "H-EJ")
def _jacobian(rng_key, n, width, d_out, noise_std):
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


@identity("bracket", "acceptance ratio of pCNL with 1 added to U against the ratio without", "P-E9")
def _bracket(rng_key, *problem):
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

    return np.abs(np.divide(ratios(1.0), ratios(0.0)) - 1)


@identity("R-hat", "R-hat by ArviZ against the root of the ratio of variances", "P-ER")
def _rhat(rng_key, n, *problem):
    import arviz

    noise = np.asarray(jax.random.normal(rng_key, (3, n + 10)), float)
    draws = noise + np.array([-1.0, 0.0, 1.0])[:, None]
    num = draws.shape[1]
    within, of_means = (draws.var(axis=1, ddof=1).mean(), draws.mean(axis=1).var(ddof=1))
    ratio = ((num - 1) / num * within + of_means) / within
    judge = float(arviz.rhat(draws, method="identity"))
    return abs(ratio**0.5 / judge - 1), abs(ratio / judge - 1)


@identity("per step", "effective samples per step of pCN at U = 0 against their closed form", "P-ES")
def _per_step(rng_key, n, thin, d_out, noise_std):
    num_draws, a = 8, 1 - noise_std / 2
    steps = np.arange(num_draws * thin)
    kept = (steps % thin == 0) / num_draws
    variance = kept @ a ** np.abs(steps[:, None] - steps) @ kept
    lags = np.arange(1, num_draws)
    per_draw = 1 / (1 + 2 * np.sum((1 - lags / num_draws) * a ** (thin * lags)))
    found = 1 / (len(steps) * variance)
    return abs(per_draw / thin / found - 1), abs(per_draw / found - 1)


@identity("prior term", "log ratio of pCN's moves at U = 0 against zero", "P-EC")
def _prior_term(rng_key, n, width, d_out, noise_std):
    u, noise = np.asarray(jax.random.normal(rng_key, (2, width), float))
    step = noise_std / 2
    a = np.sqrt(1 - step**2)
    v = a * u + step * noise
    prior = np.sum(norm.logpdf(v) - norm.logpdf(u))
    proposal = np.sum(norm.logpdf(u, a * v, step) - norm.logpdf(v, a * u, step))
    return abs((prior + proposal) / prior), abs(proposal / prior)


@identity("derivative in ρ", "derivative of a sampled weight in ρ against its factor", "V-EB")
def _derivative_in_rho(rng_key, n, width, d_out, noise_std):
    z = jax.random.normal(rng_key, (width,), jnp.float64)
    q = vi.mean_field(jnp.zeros(width), noise_std / 2)
    derivative = jax.grad(lambda rho: jnp.sum(q.mean + q._replace(rho=rho).std * z))(q.rho)
    factors = (z / (1 + jnp.exp(sign * q.rho)) for sign in (-1, 1))
    return [jnp.abs(factor - derivative).max() / jnp.abs(derivative).max() for factor in factors]


@identity("warm", "slope of the ELBO where the variance is that of a warm posterior", "V-EW")
def _warm(rng_key, n, width, d_out, noise_std):
    x = 1 + np.asarray(jax.random.uniform(rng_key, (n,), float))
    precision = x @ x / noise_std**2
    eta = 4.0

    def elbo(log_std):
        """What depends on the deviation of q."""
        return -eta * (jnp.exp(2 * log_std) / 2 - log_std) - precision * jnp.exp(2 * log_std) / 2

    derivative = jax.jit(jax.grad(elbo))
    return [abs(derivative(-np.log1p(precision / of) / 2)) / eta for of in (eta, 1 / eta)]


@identity("trace", "derivative of log det(K̂ + σ²I) against the trace of A", "H-ET")
def _trace(rng_key, n, width, d_out, noise_std):
    psi, change = np.asarray(jax.random.normal(rng_key, (2, n + 1, width)), float)

    def log_det(t):
        moved = psi + t * change
        return jnp.linalg.slogdet(moved @ moved.T + noise_std**2 * jnp.eye(n + 1))[1]

    derivative = jax.jit(jax.grad(log_det))(0.0)
    kernel = psi @ psi.T + noise_std**2 * np.eye(n + 1)
    a = np.linalg.solve(kernel, change @ psi.T + psi @ change.T)
    return abs(np.trace(a) / derivative - 1), abs(a.sum() / derivative - 1)


@identity("pairs of means", "mean of ⟨μ_j, μ_k⟩ for equal means against its bound", "V-EN")
def _pairs_of_means(rng_key, n, width, d_out, noise_std):
    mean = np.full((width, d_out), noise_std)
    pairs, twice_kl = np.sum(mean @ mean.T) / width**2, np.sum(mean**2)
    return abs(pairs / (twice_kl / width) - 1), abs(pairs / (twice_kl / width**2) - 1)


@identity("division", "temperature against τp/N", "V-EC")
def _division(rng_key, n, width, d_out, noise_std):
    network = vi.TwoLayer(3, width, d_out, rngs=nnx.Rngs(0))
    num_weights = sum(leaf.size for leaf in jax.tree.leaves(nnx.state(network, nnx.Param)))
    eta = n / width
    return abs(vi.temperature(1.0, n, width) / eta - 1), abs(n / num_weights / eta - 1)
