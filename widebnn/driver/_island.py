"""One temperature of sequential Monte Carlo: weights, resampling, and the programs that move particles."""

import functools
import math
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PyTree

from widebnn._check import Number
from widebnn.driver._devices import CHAIN, Devices
from widebnn.samplers import unitwise
from widebnn.samplers._base import Sampler
from widebnn.targets._base import Target
from widebnn.targets._tempered import Tempered


class Cloud(NamedTuple):
    """The particles of an island, leaves (particle, ...); of several, leaves (island, particle, ...)."""

    positions: PyTree
    potentials: Float[Array | np.ndarray, "..."]
    ancestors: Int[Array | np.ndarray, "..."]  # which draw from the prior each descends from
    acceptance_rates: Float[Array | np.ndarray, "..."]  # mean over the moves since it was resampled


@functools.partial(jax.jit, static_argnames="devices")
def drawn(target: Target, rng_key: Key[Array, ""], at: tuple[Any, ...], devices: Devices) -> Cloud:
    """Independent draws from N(0, I), with the key of this place in the run."""

    def one(key):
        position = target.draw_prior(key)
        return position, target.potential(position)

    keys = devices.hold(_keys(rng_key, at, devices.num_chains), CHAIN)
    positions, potentials = devices.over(one, keys)
    ancestors = jnp.arange(devices.num_chains, dtype=jnp.int32)
    return Cloud(devices.hold(positions, CHAIN), potentials, ancestors, jnp.ones_like(potentials))


@functools.partial(jax.jit, static_argnames="devices")
def moved(
    target: Target,
    sampler: Sampler,
    beta: Number,
    rng_key: Key[Array, ""],
    at: tuple[Any, ...],
    cloud: Cloud,
    chosen: Int[Array | np.ndarray, " particle"],
    num_moves: Any,
    devices: Devices,
) -> Cloud:
    """The chosen particles after so many moves that leave exp(−½‖u‖² − βU) invariant."""
    tempered, sampler = at_temperature(target, sampler, beta)

    def one(inputs):
        key, position = inputs
        init_key, step_key = jax.random.split(key)

        def move(i, carry):
            state, total = carry
            state, info = sampler.step(tempered, jax.random.fold_in(step_key, i), state)
            return state, total + info.acceptance_rate.astype(total.dtype)

        start = sampler.init(tempered, position, init_key)
        state, total = jax.lax.fori_loop(0, num_moves, move, (start, jnp.zeros((), dtype)))
        return state.position, target.potential(state.position), total / jnp.asarray(num_moves, dtype)

    dtype = cloud.potentials.dtype
    positions, ancestors = jax.tree.map(lambda leaf: leaf[chosen], (cloud.positions, cloud.ancestors))
    keys = _keys(rng_key, at, devices.num_chains)
    found = devices.over(one, devices.hold((keys, positions), CHAIN))
    positions, potentials, rates = devices.hold(found, CHAIN)
    return Cloud(positions, potentials, ancestors, rates)


def _keys(rng_key, at, num_particles):
    """One for each particle, from the integers that say where in the run it is."""
    return jax.random.split(functools.reduce(jax.random.fold_in, at, rng_key), num_particles)


def at_temperature(target: Target, sampler: Sampler, beta: Number) -> tuple[Target, Sampler]:
    """The pair that samples exp(−½‖u‖² − βU)."""
    if isinstance(sampler, unitwise):  # which knows more of a target than its potential
        return target, replace(sampler, inverse_temperature=beta)
    return Tempered(target, beta), sampler


def next_temperature(potentials: Float[np.ndarray, " particle"], beta: float, ess: float) -> float:
    """The β′ ≤ 1 at which the weights exp(−(β′ − β)U) leave the share `ess` of effective particles."""
    wanted = ess * np.isfinite(potentials).sum()
    if _effective(potentials, 1 - beta) >= wanted:
        return 1.0
    low, high = beta, 1.0
    while (middle := (low + high) / 2) not in (low, high) and high - low > 1e-6 * (high - beta):
        if _effective(potentials, middle - beta) >= wanted:
            low = middle
        else:
            high = middle
    return high


def log_mean_weight(potentials: Float[np.ndarray, " particle"], step: float) -> float:
    """log of the mean of exp(−step · U)."""
    low = potentials.min()
    return float(np.log(np.exp(-step * (potentials - low)).mean()) - step * low)


def resampled(
    potentials: Float[np.ndarray, " particle"], step: float, uniform: float
) -> Int[np.ndarray, " particle"]:
    """Systematic resampling: particle i is chosen N w_i times, rounded up or down, w ∝ exp(−step · U)."""
    sums = np.cumsum(_weights(potentials, step))
    number = len(potentials)
    points = (uniform + np.arange(number)) / number * sums[-1]
    return np.minimum(np.searchsorted(sums, points, side="right"), number - 1).astype(np.int32)


def memory(before: Cloud, after: Cloud) -> float:
    """The largest correlation, over particles, of what is now with what was.

    Looked at are the potential and each leaf of the positions, whose coordinates are taken together.
    """
    pairs = zip(*(jax.tree.leaves((cloud.positions, cloud.potentials)) for cloud in (before, after)))
    return max(_correlation(*map(np.asarray, pair)) for pair in pairs)


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = (x - x.mean(axis=0) for x in (a, b))
    scale = math.sqrt(float(np.vdot(a, a)) * float(np.vdot(b, b)))
    return float(np.vdot(a, b)) / scale if scale > 0 else 0.0


def _weights(potentials: np.ndarray, step: float) -> np.ndarray:
    return np.exp(-step * (potentials - potentials.min()))


def _effective(potentials: np.ndarray, step: float) -> float:
    weights = _weights(potentials, step)
    return float(weights.sum() ** 2 / (weights**2).sum())
