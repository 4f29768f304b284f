"""Detailed balance, step by step: the log ratio a sampler uses against full densities written out here."""

import functools
from unittest import mock

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree


def recorded(module, sampler):
    """A step that also returns the arguments (log_ratio, state, proposal) of its call of `module.accept`."""

    def step(rng_key, state):
        calls, accept = [], module.accept

        def recording(rng_key, log_ratio, state, proposal):
            calls.append((log_ratio, state, proposal))
            return accept(rng_key, log_ratio, state, proposal)

        with mock.patch.object(module, "accept", recording):
            state, info = sampler.step(rng_key, state)
        (call,) = calls
        return state, info, call

    return step


def log_target(potential, position):
    """log π(u) = −½‖u‖² − U(u), up to a constant."""
    flat, _ = ravel_pytree(position)
    return -(flat @ flat) / 2 - potential(position)


def log_normal(v, mean, std):
    """log N(v; mean, std² I), up to a constant that v → u and u → v share."""
    return -jnp.sum(((v - mean) / std) ** 2) / 2


def gradient(potential, position):
    """∇U as a flat vector."""
    return ravel_pytree(jax.grad(potential)(position))[0]


@functools.cache
def _ratios(module, make, potential):
    """The log ratio that is used and the one that is right: one program for all constants."""

    @jax.jit
    def ratios(rng_key, u, law, constants):
        sampler = make(potential, **constants)
        _, _, (used, _, proposal) = recorded(module, sampler)(rng_key, sampler.init(u))
        v = proposal.position
        flat_u, flat_v = ravel_pytree(u)[0], ravel_pytree(v)[0]
        forward = log_normal(flat_v, *law(flat_u, gradient(potential, u)))
        backward = log_normal(flat_u, *law(flat_v, gradient(potential, v)))
        return used, log_target(potential, v) + backward - log_target(potential, u) - forward

    return ratios


def assert_detailed_balance(module, make, potential, positions, proposal_law, **constants):
    """log ratio of `make(potential, **constants)` = log π(v) q(v → u) − log π(u) q(u → v) at every position.

    `proposal_law(u, ∇U(u))` gives mean and standard deviation of q(u → ·) on flat vectors, as the theory
    has it.
    """
    for i, u in enumerate(positions):
        used, exact = _ratios(module, make, potential)(jax.random.key(i), u, proposal_law, constants)
        assert abs(used - exact) < 1e-10 * (1 + abs(exact)), f"log ratio {used} where {exact} is right"
