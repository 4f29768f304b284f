"""Our samplers as experiments and benchmarks compare them, tuned where they have a step size."""

import math
from typing import NamedTuple

import numpy as np

from widebnn import samplers
from widebnn.driver import Draws
from widebnn.samplers import Sampler, tuned
from widebnn.samplers._function_space_hmc import MAX_STEPS


class Method(NamedTuple):
    """A sampler; and the cost of a step in potentials, of which a gradient takes three."""

    sampler: Sampler | tuned
    cost: int


def _rotating(num_steps: int | None = None) -> tuned:
    return tuned(samplers.function_space_hmc(0.1, num_steps, jitter=0.2), 0.8, math.pi / 2)


METHODS = {
    "pCN": Method(tuned(samplers.pcn(0.1), 0.25), 1),
    "pCNL": Method(tuned(samplers.pcnl(0.1), 0.6), 3),
    "Langevin": Method(tuned(samplers.langevin(0.1, damping=0.01), 0.9), 3),
    "HMC": Method(tuned(samplers.hmc(0.1, num_steps=10), 0.8), 30),
    "function-space HMC": Method(_rotating(num_steps=6), 18),
    "function-space HMC, one radian": Method(_rotating(), 24),
    "elliptical slice": Method(samplers.elliptical_slice(), 4),
    "unit-wise": Method(samplers.unitwise(), 10),
}
"""By name. Of acceptances of 0.4, 0.6 and 0.8 for pCNL and dampings of 0.01, 0.1 and 1 for Langevin, these
made the most effective samples at width 1,024 given 256 images."""


def kicks(draws: Draws) -> float:
    """Of a trajectory of one radian: the gradients of a step."""
    assert draws.step_size is not None
    return float(np.clip(np.round(1 / draws.step_size), 1, MAX_STEPS))
