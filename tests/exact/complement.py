"""What new inputs see of the first layer beyond the data: its prior, and nothing else."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special, stats

from .dkwm import assert_distributed

NUM_DRAWS = 50_000


def assert_new_inputs_see_the_prior(rotated, problem, embedding):
    """Pre-activations at `x_new`, undone from `embedding(position, rng_key)`, are N(seen, scale ‖unseen‖²).

    For one hidden layer of erf units, in the parametrisation of `networks.problem`.
    """
    position = rotated.draw_prior(jax.random.key(0))
    layer = jax.device_get(rotated.inner(position)["layers"][0])
    keys = jax.random.split(jax.random.key(1), NUM_DRAWS)
    psi = np.asarray(jax.jit(jax.vmap(lambda key: embedding(position, key)))(keys))
    width = psi.shape[2] - 1
    f = special.erfinv(psi[:, :, :width] * math.sqrt(width))
    x, scale = np.asarray(problem.x_new), math.sqrt(2 / problem.x_new.shape[1])
    seen = x @ rotated.basis
    unseen = np.linalg.norm(x - seen @ rotated.basis.T, axis=1)
    mean = scale * seen @ layer["kernel"] + 0.5 * layer["bias"][None, :]
    for i in range(len(x)):
        for unit in range(width):
            law = stats.norm(mean[i, unit], scale * unseen[i])
            assert_distributed(f"f_{unit}(x_{i})", jnp.asarray(f[:, i, unit]), law.cdf)
