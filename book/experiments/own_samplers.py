"""Our samplers as experiments and benchmarks compare them, tuned where they have a step size."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from widebnn import samplers
from widebnn.samplers import tuned
from widebnn.samplers._function_space_hmc import MAX_STEPS
from widebnn.sampling import Draws


class Method(NamedTuple):
    """From a target to a sampler; and the cost of a step in potentials, of which a gradient takes three."""

    make: Callable[[Any], samplers.Sampler | samplers.Tuned]
    cost: int


def _function_space_hmc(target: Any, **options) -> samplers.Tuned:
    hmc = partial(samplers.function_space_hmc, target.potential, jitter=0.2, **options)
    return tuned(hmc, 0.8, max_step_size=math.pi / 2)


METHODS = {
    "pCN": Method(lambda t: tuned(samplers.pcn(0.1), 0.25), 1),
    "pCNL": Method(lambda t: tuned(samplers.pcnl(0.1), 0.6), 3),
    "Langevin": Method(lambda t: tuned(samplers.langevin(0.1, damping=0.01), 0.9), 3),
    "HMC": Method(lambda t: tuned(samplers.hmc(0.1, num_steps=10), 0.8), 30),
    "function-space HMC": Method(partial(_function_space_hmc, num_steps=6), 18),
    "function-space HMC, one radian": Method(_function_space_hmc, 24),
    "elliptical slice": Method(lambda t: samplers.elliptical_slice(), 4),
    "unit-wise": Method(samplers.unitwise, 10),
}
"""By name. Of acceptances of 0.4, 0.6 and 0.8 for pCNL and dampings of 0.01, 0.1 and 1 for Langevin, these
made the most effective samples at width 1,024 given 256 images."""


def kicks(draws: Draws) -> float:
    """Of a trajectory of one radian: the gradients of a step."""
    return float(np.clip(np.round(1 / draws.step_size), 1, MAX_STEPS))
