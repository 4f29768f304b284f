"""Detailed balance, step by step: the log ratio a sampler uses against full densities written out here."""

import inspect
from unittest import mock

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree


def recorded(target, sampler):
    """A step that also returns the arguments (log_ratio, state, proposal) of its call of `accept`."""
    module = inspect.getmodule(type(sampler))

    def step(rng_key, state):
        calls, accept = [], module.accept

        def recording(rng_key, log_ratio, state, proposal):
            calls.append((log_ratio, state, proposal))
            return accept(rng_key, log_ratio, state, proposal)

        with mock.patch.object(module, "accept", recording):
            state, info = sampler.step(target, rng_key, state)
        (call,) = calls
        return state, info, call

    return step


@jax.jit
def examined(target, sampler, law, rng_key, u):
    """A step from u as `recorded`, the log ratio that is right, and ξ of the proposal v = mean + std · ξ.

    `law`, as the theory has it, gives mean and standard deviation of q(u → ·) on flat vectors.
    """

    def at(position):
        """The flat vector, log π = −½‖u‖² − U(u) up to a constant, and the law of proposals."""
        value, gradient = jax.value_and_grad(target.potential)(position)
        flat = ravel_pytree(position)[0]
        return flat, -(flat @ flat) / 2 - value, law(flat, ravel_pytree(gradient)[0])

    def noise(v, mean, std):
        return (v - mean) / std

    step = recorded(target, sampler)(rng_key, sampler.init(target, u))
    (u, log_u, from_u), (v, log_v, from_v) = map(at, (u, step[2][2].position))
    forward, backward = noise(v, *from_u), noise(u, *from_v)
    exact = log_v - jnp.sum(backward**2) / 2 - log_u + jnp.sum(forward**2) / 2
    return step, exact, forward


def assert_detailed_balance(target, sampler, law, positions):
    """log ratio of the sampler = log π(v) q(v → u) − log π(u) q(u → v) at every position."""
    for i, u in enumerate(positions):
        (_, _, (used, *_)), exact, _ = examined(target, sampler, law, jax.random.key(i), u)
        assert abs(used - exact) < 1e-10 * (1 + abs(exact)), f"log ratio {used} where {exact} is right"
