"""Bugs planted in sequential Monte Carlo: what checks it must see every one."""

import warnings
from unittest import mock

import jax.numpy as jnp
import numpy as np

from widebnn import ChainWarning
from widebnn.driver import _island
from widebnn.driver import _particles as particles
from widebnn.targets import from_potential
from widebnn.targets._linear import Linear

from .exact import evidence
from .exact.planted import caught, passed


def check(where=particles, **wrong):
    """Unbiased evidence, and intervals that hold it, while functions of a module are others."""
    _island.drawn.clear_cache()
    _island.moved.clear_cache()
    try:
        with mock.patch.multiple(where, **wrong):
            target, exact = evidence.linear()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ChainWarning)  # which some of them cause
                run = evidence.islands(target)
    finally:
        _island.drawn.clear_cache()
        _island.moved.clear_cache()
    evidence.assert_unbiased(run, exact)
    evidence.assert_covers(run, exact)


def bisected_the_other_way(potentials, beta, ess):
    """Steps that are as long as they may not be (blackjax#914)."""
    wanted, low, high = ess * len(potentials), beta, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        is_short = _island._effective(potentials, middle - beta) < wanted
        low, high = (middle, high) if is_short else (low, middle)
    return high


def prior_too(target, sampler, beta):
    """exp(−β(½‖u‖² + U))."""

    def potential(u):
        return beta * target.potential(u) + (beta - 1) * jnp.sum(u**2) / 2

    return from_potential(potential, target.template), sampler


def tempered(target, sampler, beta):
    return from_potential(lambda u: beta * target.potential(u), target.template), sampler


def never_resampled(potentials, step, uniform):
    return np.arange(len(potentials), dtype=np.int32)


def one_for_all_particles(rng_key, at, num_particles):
    return jnp.stack([keys(rng_key, at, 1)[0]] * num_particles)


def one_for_all_islands(rng_key, at, num_particles):
    return keys(rng_key, (0, *at[1:]), num_particles)


keys = _island._keys

BUGS = {
    "bisection the other way": lambda: evidence.assert_temperatures(bisected_the_other_way),
    "the prior tempered too": lambda: check(_island, at_temperature=prior_too),
    "reweighted and not resampled": lambda: check(resampled=never_resampled),
    "log_normaliser forgotten": lambda: check(Linear, log_normaliser=lambda self: 0.0),
    "one key for all particles": lambda: check(_island, _keys=one_for_all_particles),
    "one key for all islands": lambda: check(_island, _keys=one_for_all_islands),
}

test_bug_is_caught = caught(("particles", "share|evidence off|too wide|coverage", BUGS))

test_right_one_of_the_same_make_passes = passed(
    tempered=lambda: check(_island, at_temperature=tempered), keys=lambda: check(_island, _keys=keys)
)
