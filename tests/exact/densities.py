"""Targets from which we can draw exactly, with scalar functions whose distributions are known."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import integrate

import widebnn as wb
from widebnn.targets import Target


class Density(NamedTuple):
    """`draw(rng, n)` gives exact draws, leaves (n, ...); `functions` are name -> (of a position, its CDF)."""

    target: Target
    draw: Callable
    functions: dict[str, tuple[Callable, Callable]]


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
