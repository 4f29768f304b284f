"""The compiled part of a run: what the chains carry, a step, a draw, and a chunk of draws."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Key, PyTree

from widebnn import streaming
from widebnn.samplers._base import AnySampler
from widebnn.samplers._tuned import StepSize, Tuned
from widebnn.streaming import Stream, Summary

__all__ = ["Carry", "Chains", "Keys", "call"]

STATISTICS = {
    "acceptance_rate": "acceptance_rate",
    "is_accepted": "is_accepted",
    "is_divergent": "diverging",
    "num_integration_steps": "n_steps",
}
"""What is kept of a step's report, by its name there and in ArviZ; averaged over the steps between draws."""

Keys = Key[Array, "purpose chain"]
STEP, COLLECT, STREAM = range(3)
SKETCH = 2**31  # beyond the numbers of the streamed functions, which have keys of their own


class Carry(NamedTuple):
    """All that changes from step to step: a run goes on from it as if it had never stopped."""

    states: PyTree
    step: Int[Array, ""]
    step_size: StepSize | None  # None where nothing is tuned
    streamed: dict[str, Summary]
    stats: dict[str, Summary]  # where nothing is collected, beside which they would be kept


class Chains(NamedTuple):
    """A sampler, and what is kept of its draws."""

    sampler: AnySampler | Tuned
    collect: Mapping[str, Callable[..., Any]]
    streams: Mapping[str, Stream]

    def start(self, initial: PyTree, start_keys: Key[Array, " chain"]) -> Carry:
        """The carry before the first step, to be compiled."""
        step_size, sampler = None, self.sampler
        if isinstance(sampler, Tuned):
            step_size = StepSize.start(sampler.step_size, jnp.result_type(*jax.tree.leaves(initial)))
            sampler = sampler.make(sampler.step_size)
        states = jax.vmap(lambda u, key: sampler.init(u, rng_key=key))(initial, start_keys)
        carry = Carry(states, jnp.asarray(0), step_size, {}, {})
        keys = jnp.stack([start_keys] * 3)  # for the shapes only
        streamed = jax.eval_shape(self._streamed, keys, carry)
        streamed = {name: streaming.start(shape, self.streams[name]) for name, shape in streamed.items()}
        report = {} if self.collect else self.draw_shapes(keys, carry)[1]
        stats = {name: streaming.start(shape, streaming.MOMENTS) for name, shape in report.items()}
        return carry._replace(streamed=streamed, stats=stats)

    def draw_shapes(self, keys: Keys, carry: Carry) -> PyTree[jax.ShapeDtypeStruct]:
        """What each draw adds to a chunk: what is collected, and statistics."""
        report = jax.eval_shape(self._step, keys, carry, jnp.asarray(True))[1]
        return jax.eval_shape(self._collected, keys, carry), report

    def chunk(
        self,
        keys: Keys,
        carry: Carry,
        num_draws: Int[Array, ""],
        num_steps: Int[Array, ""],
        is_burn_in: Bool[Array, ""],
        *,
        draw: PyTree[jax.ShapeDtypeStruct],
        max_draws: int,
    ) -> tuple[Carry, PyTree]:
        """`num_draws` times `num_steps` steps, and the last `max_draws` draws, of which burn-in has none."""
        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), draw)

        def body(i, inside):
            carry, kept = inside
            carry, drawn = self._draw(keys, carry, num_steps, is_burn_in, *nothing)
            return carry, jax.tree.map(lambda k, d: k.at[i % max_draws].set(d), kept, drawn)

        kept = jax.tree.map(lambda leaf: jnp.zeros((max_draws, *leaf.shape), leaf.dtype), draw)
        return jax.lax.fori_loop(0, num_draws, body, (carry, kept))

    def _draw(self, keys, carry, num_steps, is_burn_in, nothing, totals):
        def body(_, inside):
            carry, totals = inside
            carry, report = self._step(keys, carry, is_burn_in)
            return carry, jax.tree.map(jnp.add, totals, report)

        carry, totals = jax.lax.fori_loop(0, num_steps, body, (carry, totals))
        report = jax.tree.map(lambda total: total / num_steps.astype(total.dtype), totals)

        def keep(carry):
            rng_key = jax.random.fold_in(jax.random.fold_in(keys[STREAM, 0], carry.step), SKETCH)
            update = functools.partial(_updated, rng_key=rng_key)
            streamed = update(carry.streamed, self._streamed(keys, carry))
            carry = carry._replace(streamed=streamed, stats=update(carry.stats, report))
            return carry, self._collected(keys, carry)

        carry, value = jax.lax.cond(is_burn_in, lambda carry: (carry, nothing), keep, carry)
        return carry, (value, report)

    def _step(self, keys, carry, is_burn_in):
        chain_keys = jax.vmap(lambda key: jax.random.fold_in(key, carry.step))(keys[STEP])
        step_size, sampler = carry.step_size, self.sampler
        if isinstance(sampler, Tuned):
            log_step_size = jnp.where(is_burn_in, step_size.log, step_size.log_average)
            sampler = sampler.make(jnp.exp(log_step_size))
        states, info = jax.vmap(sampler.step)(chain_keys, carry.states)
        dtype = jnp.result_type(*jax.tree.leaves(states.position))
        # A sampler that reports no acceptance accepts every move.
        report = {"acceptance_rate": jnp.ones(len(chain_keys), dtype)} | {
            name: jnp.asarray(getattr(info, field), dtype)
            for field, name in STATISTICS.items()
            if hasattr(info, field)
        }
        if isinstance(self.sampler, Tuned):
            if not hasattr(info, "acceptance_rate"):
                raise TypeError(
                    f"sampler must report an acceptance_rate to be tuned; it reports {type(info).__name__}"
                )
            new = step_size.update(jnp.mean(report["acceptance_rate"]), carry.step, self.sampler)
            step_size = jax.tree.map(lambda new, old: jnp.where(is_burn_in, new, old), new, step_size)
        return carry._replace(states=states, step=carry.step + 1, step_size=step_size), report

    def _collected(self, keys, carry):
        return _values(self.collect, keys[COLLECT], carry)

    def _streamed(self, keys, carry):
        functions = {name: stream.function for name, stream in self.streams.items()}
        return _values(functions, keys[STREAM], carry)


def call(function, position, rng_key):
    """`function(position)`, with a key if it wants one."""
    if "rng_key" in inspect.signature(function).parameters:
        return function(position, rng_key=rng_key)
    return function(position)


def _values(functions, keys, carry):
    draw_keys = jax.vmap(lambda key: jax.random.fold_in(key, carry.step))(keys)

    def of_chain(position, rng_key):
        return {
            name: jnp.asarray(call(function, position, jax.random.fold_in(rng_key, i)))
            for i, (name, function) in enumerate(functions.items())
        }

    return jax.vmap(of_chain)(carry.states.position, draw_keys)


def _updated(summaries, values, rng_key):
    return {
        name: streaming.update(summary, values[name], jax.random.fold_in(rng_key, i))
        for i, (name, summary) in enumerate(summaries.items())
    }
