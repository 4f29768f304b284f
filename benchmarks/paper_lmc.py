"""Langevin steps on all of φ as the papers run them: what a step costs, and the law of its chain.

The chain is the reparametrised one of Hron et al. 2022, §4.1 and §4.2: φ holds the whole of W¹ and the
readout's φ_W, a step is one leapfrog step called from Python, with the gradient of the density of φ in
feature space. No step is corrected; step size and damping are tuned to the most effective samples where the
mean acceptance probability that a correction would have had stays above 98 %.

The law of this chain can be had for less: U sees QᵀW¹ alone, and the D other coordinates are harmonic
oscillators whose energy alone enters the acceptance probability, so that three numbers stand for all of them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import widebnn as wb
from benchmarks.paper_pcn import log_density
from widebnn.samplers._base import Info, Potential, Sampler
from widebnn.samplers._hmc import HMCState, leapfrog
from widebnn.tree import Position, normal_like

__all__ = ["langevin_with_rest", "lmc_steps"]


class Rest(NamedTuple):
    """D free coordinates x and their momenta m = b x/‖x‖ + c e, e ⊥ x."""

    norm: Float[Array, ""]
    b: Float[Array, ""]
    c: Float[Array, ""]


class State(NamedTuple):
    position: Position
    potential: Float[Array, ""]
    gradient: Position
    momentum: Position
    rest: Rest


def langevin_with_rest(potential: Potential, step_size, damping, num_free: int) -> Sampler:
    """Uncorrected `widebnn.samplers.langevin` on u and D = `num_free` > 2 further N(0, 1) coordinates.

    Leapfrog conserves ½‖m‖² + ½(1 − ε²/4)‖x‖² of the free ones, so that their part of ΔH is ε²/8 times the
    change of ‖x‖².
    """
    integrate = leapfrog(potential, step_size, num_steps=1)
    keep, refresh = jnp.sqrt(1 - damping), jnp.sqrt(damping)

    def chi(rng_key, dof):
        return jnp.sqrt(2 * jax.random.gamma(rng_key, dof / 2))

    def init(position, rng_key):
        keys = jax.random.split(rng_key, 4)
        value, gradient = jax.value_and_grad(potential)(position)
        rest = Rest(chi(keys[1], num_free), jax.random.normal(keys[2]), chi(keys[3], num_free - 1))
        return State(position, value, gradient, normal_like(keys[0], position), rest)

    def step(rng_key, state):
        keys = jax.random.split(rng_key, 3)
        m = jax.tree.map(
            lambda m, xi: keep * m + refresh * xi, state.momentum, normal_like(keys[0], state.position)
        )
        r, b, c = state.rest
        along, across = jax.random.normal(keys[1], (2,))
        b = keep * b + refresh * along
        c = jnp.hypot(keep * c + refresh * across, refresh * chi(keys[2], num_free - 2))

        start = HMCState(state.position, state.potential, state.gradient)
        end, end_m, energy_change = integrate(start, m)
        moved = jnp.stack([step_size * b - step_size**2 / 2 * r, step_size * c])
        x = jnp.stack([r + moved[0], moved[1]])
        m_rest = jnp.stack([b, c]) - step_size / 2 * (x + jnp.stack([r, jnp.zeros_like(r)]))
        energy_change += step_size**2 / 8 * (moved[0] * (2 * r + moved[0]) + moved[1] ** 2)

        norm = jnp.hypot(x[0], x[1])
        end_rest = Rest(norm, m_rest @ x / norm, jnp.abs(m_rest[0] * x[1] - m_rest[1] * x[0]) / norm)
        rate = jnp.exp(jnp.minimum(-energy_change, 0))
        return State(*end, momentum=end_m, rest=end_rest), Info(rate, jnp.ones((), bool))

    return Sampler(init, step)


def lmc_steps(bnn: wb.BNN, x, y, step_size: float, damping: float):
    """A function that makes so many steps from Python, reads each one back and returns the acceptance."""
    template = bnn.template(x)
    density = log_density(bnn, template)

    def potential(flat, x, y):
        return -density(flat, x, y) - jnp.sum(flat**2) / 2

    def sampler(x, y):
        return wb.samplers.langevin(lambda flat: potential(flat, x, y), step_size, damping, metropolis=False)

    @jax.jit
    def step(rng_key, state, x, y):
        return sampler(x, y).step(rng_key, state)

    size = sum(leaf.size for leaf in jax.tree.leaves(template))
    flat = jax.random.normal(jax.random.key(0), (size,))
    held = {"state": jax.jit(sampler(x, y).init)(flat, jax.random.key(2)), "key": jax.random.key(1)}

    def run(num_steps: int) -> float:
        rates = 0.0
        for _ in range(num_steps):
            held["key"], step_key = jax.random.split(held["key"])
            held["state"], info = step(step_key, held["state"], x, y)
            rates += float(info.acceptance_rate)
            float(held["state"].potential)
        return rates / num_steps

    return run
