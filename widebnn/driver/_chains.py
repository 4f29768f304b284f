"""The compiled part of a run: what the chains carry, a step, a draw, and a chunk of draws."""

import functools
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from widebnn import collectors
from widebnn._pytree import STATIC, pytree
from widebnn.driver import _thinning, streaming
from widebnn.driver._devices import CHAIN, Devices
from widebnn.driver._thinning import Thinned
from widebnn.driver.streaming import Sum, Summary
from widebnn.samplers._base import Sampler
from widebnn.samplers._tuned import StepSize, tuned
from widebnn.targets._base import Target

STATISTICS = {
    "acceptance_rate": "acceptance_rate",
    "is_accepted": "is_accepted",
    "is_divergent": "diverging",
    "num_integration_steps": "n_steps",
}
"""What is kept of a step's report, by its name there and in ArviZ; averaged over the steps between draws."""


class Carry(NamedTuple):
    """The complete state of a run's loop, from which it resumes."""

    states: PyTree
    step: Int[Array, ""]
    step_size: StepSize | None  # None where nothing is tuned
    streamed: dict[str, Summary]
    stats: dict[str, Sum]  # where nothing is collected, beside which they would be kept
    thinned: Thinned | None  # where positions are kept


class Keys(NamedTuple):
    """A key of each chain for each purpose; every step folds its own from them."""

    step: Key[Array, " chain"]
    collect: Key[Array, " chain"]
    stream: Key[Array, " chain"]


class Start(NamedTuple):
    """Where a run starts."""

    keys: Keys
    carry: Carry
    draw: PyTree  # zeros in the shapes of what each draw adds: what is collected, and statistics
    potentials: Float[Array, " chain"]


@pytree
@dataclass(frozen=True, eq=False)
class Chains:
    """A target, its sampler, and what is kept of the draws: the argument of the programs of a run."""

    target: Target
    sampler: Sampler | tuned
    collect: dict[str, Any]  # collectors, prepared for the target
    stream: dict[str, Any]
    num_positions: int = field(default=0, metadata=STATIC)  # places for positions, if any

    @functools.partial(jax.jit, static_argnames="devices")
    def start(self, rng_key: Key[Array, ""], initial: PyTree, devices: Devices) -> Start:
        """Keys, and the carry before the first step; chains start from the prior where `initial` is None."""
        # All at once: XLA compiles every generator anew.
        split = jax.vmap(lambda key: jax.random.split(key, devices.num_chains))
        init_keys, start_keys, *keys = split(jax.random.split(rng_key, 5))
        keys = Keys(*devices.hold(tuple(keys), CHAIN))
        initial = devices.over(self.target.draw_prior, init_keys) if initial is None else initial
        step_size, sampler = None, self.sampler
        if isinstance(sampler, tuned):
            step_size = StepSize.start(sampler.step_size, jnp.result_type(*jax.tree.leaves(initial)))
            sampler = sampler.sampler
        states = devices.over(lambda both: sampler.init(self.target, *both), (initial, start_keys))
        carry = Carry(states, jnp.asarray(0), step_size, {}, {}, None)
        streamed = jax.eval_shape(functools.partial(self._streamed, devices), keys, carry)
        streamed = {name: streaming.start(shape) for name, shape in streamed.items()}
        step = functools.partial(self._step, devices)
        report = jax.eval_shape(step, keys, carry, jnp.asarray(True))[1]
        draw = jax.eval_shape(functools.partial(self._collected, devices), keys, carry), report
        zeros = {} if self.collect else {name: jnp.zeros(x.shape, x.dtype) for name, x in report.items()}
        stats = {name: Sum(zero, zero) for name, zero in zeros.items()}
        thinned = _thinning.start(states.position, self.num_positions) if self.num_positions else None
        carry = carry._replace(streamed=streamed, stats=stats, thinned=thinned)
        # A chunk uses up the memory of the carry, which must not be that of `initial`; and its types stay.
        carry = _placed(devices, jax.tree.map(lambda leaf: jnp.copy(leaf).astype(leaf.dtype), carry))
        draw = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), draw)
        potentials = devices.hold(devices.over(self.target.potential, initial))
        return Start(keys, carry, devices.hold(draw), potentials)

    @functools.partial(jax.jit, static_argnames=("max_draws", "devices"), donate_argnames="carry")
    def chunk(
        self,
        keys: Keys,
        carry: Carry,
        draw: PyTree,
        num_draws: Int[Array, ""],
        num_steps: Int[Array, ""],
        is_burn_in: Bool[Array, ""],
        *,
        max_draws: int,
        devices: Devices,
    ) -> tuple[Carry, PyTree]:
        """`num_draws` times `num_steps` steps, and the last `max_draws` draws, of which burn-in has none."""

        def body(i, inside):
            carry, draws = inside
            carry, drawn = self._draw(devices, keys, carry, num_steps, is_burn_in, *draw)
            return carry, jax.tree.map(lambda x, new: x.at[i % max_draws].set(new), draws, drawn)

        draws = jax.tree.map(lambda leaf: jnp.zeros((max_draws, *leaf.shape), leaf.dtype), draw)
        carry, draws = jax.lax.fori_loop(0, num_draws, body, (carry, draws))
        return _placed(devices, carry), devices.hold(draws)

    def _draw(self, devices, keys, carry, num_steps, is_burn_in, nothing, totals):
        def body(_, inside):
            carry, totals = inside
            carry, report = self._step(devices, keys, carry, is_burn_in)
            return carry, jax.tree.map(jnp.add, totals, report)

        carry, totals = jax.lax.fori_loop(0, num_steps, body, (carry, totals))
        report = jax.tree.map(lambda total: total / num_steps.astype(total.dtype), totals)

        def keep(carry):
            values = self._streamed(devices, keys, carry)
            streamed = {name: streaming.update(of, values[name]) for name, of in carry.streamed.items()}
            stats = {name: streaming.add(of, report[name]) for name, of in carry.stats.items()}
            carry = carry._replace(streamed=streamed, stats=stats)
            if carry.thinned is not None:
                carry = carry._replace(thinned=_thinning.put(carry.thinned, carry.states.position))
            return carry, self._collected(devices, keys, carry)

        carry, value = jax.lax.cond(is_burn_in, lambda carry: (carry, nothing), keep, carry)
        return carry, (value, report)

    def _step(self, devices, keys, carry, is_burn_in):
        chain_keys = jax.vmap(lambda key: jax.random.fold_in(key, carry.step))(keys.step)
        step_size, sampler = carry.step_size, self.sampler
        if isinstance(sampler, tuned):
            log_step_size = jnp.where(is_burn_in, step_size.log, step_size.log_average)
            sampler = sampler.at(jnp.exp(log_step_size))

        def of_chain(both):
            return sampler.step(self.target, *both)

        states, info = devices.over(of_chain, (chain_keys, carry.states))
        dtype = jnp.result_type(*jax.tree.leaves(states.position))
        # A sampler that reports no acceptance accepts every move.
        report = {"acceptance_rate": jnp.ones(len(chain_keys), dtype)} | {
            name: jnp.asarray(getattr(info, field), dtype)
            for field, name in STATISTICS.items()
            if hasattr(info, field)
        }
        if isinstance(self.sampler, tuned):
            if not hasattr(info, "acceptance_rate"):
                raise TypeError(
                    f"sampler must report an acceptance_rate to be tuned; it reports {type(info).__name__}"
                )
            new = step_size.update(jnp.mean(report["acceptance_rate"]), carry.step, self.sampler)
            step_size = jax.tree.map(lambda new, old: jnp.where(is_burn_in, new, old), new, step_size)
        return carry._replace(states=states, step=carry.step + 1, step_size=step_size), report

    def _collected(self, devices, keys, carry):
        return self._values(devices, "collect", self.collect, keys.collect, carry)

    def _streamed(self, devices, keys, carry):
        return self._values(devices, "stream", self.stream, keys.stream, carry)

    def _values(self, devices, argument, functions, keys, carry):
        draw_keys = jax.vmap(lambda key: jax.random.fold_in(key, carry.step))(keys)

        def of_chain(both):
            return collectors.values_of(argument, functions, self.target, *both)

        return devices.over(of_chain, (carry.states.position, draw_keys))


def _placed(devices: Devices, carry: Carry) -> Carry:
    """The carry as it lies on the devices: states by chain, and what the host reads on each."""
    return Carry(devices.hold(carry.states, CHAIN), *map(devices.hold, carry[1:]))
