"""Detailed balance, step by step: the log ratio a sampler uses against full densities written out here."""

import contextlib
import sys
from unittest import mock

import jax
import numpy as np
from jax.flatten_util import ravel_pytree


@contextlib.contextmanager
def recorded(module):
    """The arguments (log_ratio, state, proposal) of each call that a sampler's module makes of `accept`."""
    module = sys.modules[module]
    calls, accept = [], module.accept

    def recording(rng_key, log_ratio, state, proposal):
        calls.append((log_ratio, state, proposal))
        return accept(rng_key, log_ratio, state, proposal)

    with mock.patch.object(module, "accept", recording):
        yield calls


def log_target(potential, position):
    """log π(u) = −½‖u‖² − U(u), up to a constant."""
    flat, _ = ravel_pytree(position)
    return -(flat @ flat) / 2 - potential(position)


def log_normal(v, mean, std):
    """log N(v; mean, std² I), up to a constant that v → u and u → v share."""
    return -np.sum(((v - mean) / std) ** 2) / 2


def gradient(potential, position):
    """∇U as a flat vector."""
    return ravel_pytree(jax.grad(potential)(position))[0]


def assert_detailed_balance(sampler, module, potential, positions, proposal_law):
    """log ratio = log π(v) q(v → u) − log π(u) q(u → v) at every position.

    `proposal_law(u, ∇U(u))` gives mean and standard deviation of q(u → ·) on flat vectors, as the theory
    has it.
    """
    for i, u in enumerate(positions):
        with recorded(module) as calls:
            sampler.step(jax.random.key(i), sampler.init(u))
        ((used, _, proposal),) = calls
        v = proposal.position
        flat_u, flat_v = ravel_pytree(u)[0], ravel_pytree(v)[0]
        forward = log_normal(flat_v, *proposal_law(flat_u, gradient(potential, u)))
        backward = log_normal(flat_u, *proposal_law(flat_v, gradient(potential, v)))
        exact = log_target(potential, v) + backward - log_target(potential, u) - forward
        assert abs(used - exact) < 1e-10 * (1 + abs(exact)), f"log ratio {used} where {exact} is right"
