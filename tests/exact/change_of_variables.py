"""Potentials against the change of variables done by brute force."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .networks import log_evidence, log_joint


def log_det_of_map(target, position):
    """log |det ∂θ/∂φ| of the full Jacobian by automatic differentiation."""
    flat, unravel = ravel_pytree(position)
    jacobian = jax.jacfwd(lambda z: ravel_pytree(target.to_parameters(unravel(z)))[0])(flat)
    return jnp.linalg.slogdet(jacobian)[1]


def log_density_of_map(problem, target, position, log_joint=log_joint):
    """log p(θ, y) at θ = T(φ) plus log |det ∂θ/∂φ|."""
    return log_joint(problem, target.to_parameters(position)) + log_det_of_map(target, position)


def log_density_of_readout_map(problem, target, position, log_joint=log_joint):
    """The same for a map that leaves the inner parameters alone: its determinant is that of ∂W/∂φ_W."""

    def readout(w):
        return target.to_parameters(position._replace(readout=w)).readout

    w = position.readout
    jacobian = jax.jacfwd(readout)(w).reshape(w.size, w.size)
    return log_joint(problem, target.to_parameters(position)) + jnp.linalg.slogdet(jacobian)[1]


def log_density_of_inner(problem, target, position):
    """log p(θ^{≤L}, y), the readout integrated out."""
    flat, _ = ravel_pytree(position)
    return log_evidence(problem, target.inner(position)) - flat @ flat / 2


def assert_same_density(found, exact):
    """Log densities at several positions, (num,), are the same up to one constant."""
    found, exact = np.asarray(found), np.asarray(exact)
    assert np.ptp(exact) > 0.1, "the positions do not differ"
    error = (found - found[0]) - (exact - exact[0])
    assert np.allclose(error, 0, atol=1e-9 * (1 + np.abs(exact).max())), f"{found} where {exact} is right"
