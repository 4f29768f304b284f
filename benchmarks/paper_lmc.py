"""Langevin steps on all of φ as the papers run them: what a step costs, and the law of its chain.

The chain is the reparametrised one of Hron et al. 2022, §4.1 and §4.2: φ holds the whole of W¹ and the
readout's φ_W, a step is one leapfrog step called from Python, with the gradient of the density of φ in
feature space. No step is corrected; step size and damping are tuned to the most effective samples where the
mean acceptance probability that a correction would have had stays above 98 %.

U sees QᵀW¹ alone, so that `widebnn.samplers.langevin` with `num_flat` other coordinates has the same law for
less.
"""

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

import widebnn as wb
from benchmarks.paper_pcn import log_density

__all__ = ["lmc_steps"]


def lmc_steps(bnn: wb.BNN, x, y, step_size: float, damping: float):
    """A function that makes so many steps from Python, reads each one back and returns the acceptance."""
    template = bnn.template(x)
    density = log_density(bnn, template)

    def potential(x, y, flat):
        return -density(flat, x, y) - jnp.sum(flat**2) / 2

    size = sum(leaf.size for leaf in jax.tree.leaves(template))
    flat = jax.random.normal(jax.random.key(0), (size,))
    target = wb.targets.from_potential(Partial(potential, x, y), flat)
    langevin = wb.samplers.langevin(step_size, damping, metropolis=False)
    step = jax.jit(langevin.step)
    held = {"state": jax.jit(langevin.init)(target, flat, jax.random.key(2)), "key": jax.random.key(1)}

    def run(num_steps: int) -> float:
        rates = 0.0
        for _ in range(num_steps):
            held["key"], step_key = jax.random.split(held["key"])
            held["state"], info = step(target, step_key, held["state"])
            rates += float(info.acceptance_rate)
            float(held["state"].potential)
        return rates / num_steps

    return run
