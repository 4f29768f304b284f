"""Potentials against the change of variables done by brute force."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from .networks import log_evidence, log_joint


def log_density_of_map(problem, target, position, log_joint=log_joint):
    """log p(θ, y) at θ = T(φ) plus log |det ∂θ/∂φ| of the full Jacobian by automatic differentiation."""
    flat, unravel = ravel_pytree(position)
    jacobian = jax.jacfwd(lambda z: ravel_pytree(target.to_parameters(unravel(z)))[0])(flat)
    return log_joint(problem, target.to_parameters(position)) + jnp.linalg.slogdet(jacobian)[1]


def log_density_of_inner(problem, target, position):
    """log p(θ^{≤L}, y), the readout integrated out."""
    flat, _ = ravel_pytree(position)
    return log_evidence(problem, target.inner(position)) - flat @ flat / 2


def assert_density(problem, target, log_density, num=4):
    """`target.logdensity` is the brute-force log density up to one constant."""
    positions = jax.vmap(target.draw_prior)(jax.random.split(jax.random.key(0), num))

    @jax.jit
    def both(positions):
        exact = jax.vmap(lambda u: log_density(problem, target, u))(positions)
        return exact, jax.vmap(target.logdensity)(positions)

    exact, found = both(positions)
    assert jnp.ptp(exact) > 0.1, "the positions do not differ"
    error = (found - found[:1]) - (exact - exact[:1])
    assert jnp.allclose(error, 0, atol=1e-9 * (1 + jnp.abs(exact).max())), f"{found} where {exact} is right"
