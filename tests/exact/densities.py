"""Targets from which we can draw exactly, with scalar functions whose distributions are known."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import integrate, stats

import widebnn as wb
from widebnn.targets import Target


class Density(NamedTuple):
    """`draw(rng, n)` gives exact draws, leaves (n, ...); `functions` are name -> (of a position, its CDF)."""

    target: Target
    draw: Callable
    functions: dict[str, tuple[Callable, Callable]]


@functools.cache
def regression():
    """The posterior N(μ, Σ) of a linear regression, correlated and off centre, on a pytree of two leaves.

    `moments` of the second return value are those of one output's three weights.
    """
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
    linear = wb.targets.linear(jnp.asarray(x), jnp.asarray(y), noise_std=0.8)
    covariance = np.linalg.inv(np.eye(3) + x.T @ x / 0.64)
    mean = covariance @ x.T @ y / 0.64
    root = np.linalg.cholesky(covariance)

    def joined(position):
        return jnp.concatenate([position["first"][None, :], position["rest"]])

    target = wb.targets.from_potential(
        lambda position: linear.potential(joined(position)),
        {"first": jnp.zeros(2), "rest": jnp.zeros((2, 2))},
    )

    def draw(rng, n):
        theta = mean + np.einsum("ij,njk->nik", root, rng.normal(size=(n, 3, 2)))
        return {"first": jnp.asarray(theta[:, 0]), "rest": jnp.asarray(theta[:, 1:])}

    def whitened(position):
        return jnp.linalg.solve(jnp.asarray(root), joined(position) - jnp.asarray(mean))

    functions = {
        f"weight {i}, {j}": (lambda u, i=i, j=j: joined(u)[i, j], stats.norm(mean[i, j], std).cdf)
        for i, std in enumerate(np.sqrt(np.diag(covariance)))
        for j in range(2)
    }
    functions["whitened norm"] = (lambda u: jnp.sum(whitened(u) ** 2), stats.chi2(6).cdf)
    return Density(target, draw, functions)


SLOPE, HEIGHT = 3.0, 2.5


@functools.cache
def logistic():
    """Four independent skewed coordinates, p(u) ∝ exp(−½u² − 2.5 log(1 + e^{3u})): no Gaussian anywhere."""
    target = wb.targets.from_potential(
        lambda u: HEIGHT * jnp.sum(jax.nn.softplus(SLOPE * u)), jax.ShapeDtypeStruct((4,), jnp.float64)
    )
    grid = np.linspace(-9, 7, 200_001)
    density = np.exp(-(grid**2) / 2 - HEIGHT * np.logaddexp(0, SLOPE * grid))
    cdf = integrate.cumulative_simpson(density, x=grid, initial=0)
    cdf /= cdf[-1]

    def draw(rng, n):
        return jnp.asarray(np.interp(rng.uniform(size=(n, 4)), cdf, grid))

    def exact(u):
        return np.interp(u, grid, cdf)

    functions = {f"coordinate {i}": (lambda u, i=i: u[i], exact) for i in range(4)}
    functions["largest"] = (lambda u: jnp.max(u), lambda u: exact(u) ** 4)
    return Density(target, draw, functions)
