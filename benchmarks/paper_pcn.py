"""pCN as the papers run it: the peer that our step is timed against.

One flat vector φ holds every weight, the readout among them; all input rows enter the first layer; the
readout is mapped through a Cholesky factor of size d_L + 1 whatever n is; the density is that of φ, with its
prior and Jacobian; one compiled step is called from Python and its statistics are read back (Hron et al.
2022, §3.2 and §4.2; Pezzetti et al. 2025, Algorithm 1, with the density of its eq. 5 put right).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

import widebnn as wb

__all__ = ["log_density", "pcn_steps"]


def log_density(bnn: wb.BNN, template) -> Callable[[Float[Array, " d"], Array, Array], Float[Array, ""]]:
    """log p(φ | D) up to a constant, of a flat φ."""
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), template)
    _, unravel = ravel_pytree(zeros)
    noise_std = bnn.noise_std

    def density(flat, x, y):
        phi = unravel(flat)
        psi = bnn.embedding(phi.inner, x)
        factor = jnp.linalg.cholesky(psi.T @ psi + noise_std**2 * jnp.eye(psi.shape[1]), upper=True)
        projected = solve_triangular(factor, psi.T @ y, trans="T")
        readout = solve_triangular(factor, projected + noise_std * phi.readout)
        log_likelihood = -jnp.sum((y - psi @ readout) ** 2) / (2 * noise_std**2)
        squares = jnp.sum(flat**2) - jnp.sum(phi.readout**2) + jnp.sum(readout**2)
        log_jacobian = -bnn.out_features * jnp.sum(jnp.log(jnp.diag(factor)))
        return log_likelihood - squares / 2 + log_jacobian

    return density


def pcn_steps(bnn: wb.BNN, x, y, step_size: float):
    """A function that makes so many steps from Python, reads each one back and returns the accepted share."""
    template = bnn.template(x)
    density = log_density(bnn, template)
    shrink = jnp.sqrt(1 - step_size**2)

    @jax.jit
    def step(rng_key, flat, value, x, y):
        noise_key, accept_key = jax.random.split(rng_key)
        proposal = shrink * flat + step_size * jax.random.normal(noise_key, flat.shape)
        new_value = density(proposal, x, y)
        log_ratio = new_value - value + (jnp.sum(proposal**2) - jnp.sum(flat**2)) / 2
        is_accepted = jnp.log(jax.random.uniform(accept_key)) < log_ratio
        return (
            jnp.where(is_accepted, proposal, flat),
            jnp.where(is_accepted, new_value, value),
            is_accepted,
            jnp.exp(jnp.minimum(log_ratio, 0)),
        )

    size = sum(leaf.size for leaf in jax.tree.leaves(template))
    state = {"flat": jax.random.normal(jax.random.key(0), (size,)), "key": jax.random.key(1)}
    state["value"] = jax.jit(density)(state["flat"], x, y)

    def run(num_steps: int) -> float:
        accepted = 0
        for _ in range(num_steps):
            state["key"], step_key = jax.random.split(state["key"])
            state["flat"], state["value"], is_accepted, rate = step(
                step_key, state["flat"], state["value"], x, y
            )
            accepted += bool(is_accepted)
            float(rate), float(state["value"])
        return accepted / num_steps

    return run
