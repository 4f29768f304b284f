"""The driver: many chains of any sampler, keeping functions of the state and never the network."""

import functools
import inspect
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PyTree
from tqdm.auto import tqdm

from widebnn._check import Number, at_least, positive
from widebnn.samplers.base import Position
from widebnn.targets.base import Target

if TYPE_CHECKING:
    from xarray import DataTree

__all__ = ["Draws", "sample"]

Collector = Callable[..., Float[Array, "..."]]


@runtime_checkable
class AnySampler(Protocol):
    """A `widebnn.samplers.Sampler`, or another library's with the same two functions."""

    @property
    def init(self) -> Callable[..., Any]: ...

    @property
    def step(self) -> Callable[..., Any]: ...


STATISTICS = {
    "acceptance_rate": "acceptance_rate",
    "is_accepted": "is_accepted",
    "is_divergent": "diverging",
    "num_integration_steps": "n_steps",
}
"""What is kept of a step's report, by its name there and in ArviZ; averaged over the steps between draws."""

MAX_CHUNK_DRAWS = 100
CHUNK_SECONDS = 0.5


@dataclass(frozen=True, eq=False)
class Draws:
    """What chains leave behind.

    Attributes
    ----------
    collected
        By name, arrays (chain, draw, ...) of the functions that were collected.
    stats
        By name, arrays (chain, draw) of sample statistics, each the mean over the steps between draws.
    position
        The last position of every chain, leaves (chain, ...): where to go on from.
    step_size
        The step size that tuning arrived at; None where nothing was tuned.
    thin
        Steps from one draw to the next.
    burn_in
        Steps before the first.
    seconds
        Wall time of burn-in and sampling, compilation left out.
    """

    collected: dict[str, np.ndarray]
    stats: dict[str, np.ndarray]
    position: PyTree
    step_size: float | None
    thin: int
    burn_in: int
    seconds: float

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.collected:
            raise KeyError(f"{name!r} was not collected; there are {sorted(self.collected)}")
        return self.collected[name]

    @property
    def acceptance_rate(self) -> float:
        """The mean acceptance rate over all chains and steps after burn-in."""
        return float(self.stats["acceptance_rate"].mean())

    def to_datatree(self) -> "DataTree":
        """An ArviZ `DataTree` with the groups `posterior` and `sample_stats`."""
        import arviz

        stats = dict(self.stats)
        if "diverging" in stats:
            stats["diverging"] = stats["diverging"] > 0
        tree = arviz.from_dict({"posterior": self.collected, "sample_stats": stats})
        tree["posterior"].attrs |= {"thin": self.thin, "burn_in": self.burn_in, "seconds": self.seconds}
        return tree


class _Carry(NamedTuple):
    states: PyTree
    step: Int[Array, ""]
    log_step_size: Float[Array, ""]  # while it is tuned
    average: Float[Array, ""]  # of it, which is what stays


def sample(
    rng_key: Key[Array, ""],
    sampler: AnySampler | Callable[[Array], AnySampler],
    target: Target,
    *,
    num_samples: int,
    thin: int = 1,
    burn_in: int = 0,
    num_chains: int = 1,
    collect: Mapping[str, Collector] | None = None,
    initial: Position | None = None,
    target_acceptance: Number | None = None,
    step_size: Number = 0.1,
    max_step_size: Number = 1.0,
    progress: bool = True,
) -> Draws:
    """Run `num_chains` chains for `burn_in + num_samples · thin` steps.

    The steps are compiled in chunks; between chunks, and only there, what was collected goes to the host and
    the progress bar moves. Memory grows with what is collected and never with the parameters. The same key
    gives the same draws, however the chunks fall.

    Parameters
    ----------
    rng_key
        Key of everything random here.
    sampler
        `(init, step)`, of this package or of BlackJAX; or, for tuning, a function from a step size to one,
        such as `functools.partial(widebnn.samplers.pcn, target.potential)`.
    target
        What is sampled: its prior draws start the chains, its potential must be finite there.
    num_samples, thin
        Draws kept of each chain, and steps from one to the next.
    burn_in
        Steps before, of which nothing is kept.
    num_chains
        Chains, run side by side by `jax.vmap`.
    collect
        By name, functions of a position whose values (arrays of one shape) are kept; those with an argument
        `rng_key` get a fresh one each time. The potential alone unless given.
    initial
        Positions to start from, leaves (num_chains, ...); prior draws unless given.
    target_acceptance
        a* in (0, 1): tune the step size to this mean acceptance rate during burn-in by
        log ε ← log ε + t^{-0.6} (a − a*)/(a*(1 − a*)), at most 1 a step, with a averaged over the chains
        (Robbins & Monro 1951; Andrieu & Thoms 2008, §4.2); the average of log ε with weights t^{-0.75}, as
        in Hoffman & Gelman 2014, §3.2, stays fixed from then on.
    step_size, max_step_size
        Where tuning starts and what it may not exceed (1 for pCN and pCNL).
    progress
        Whether to show a progress bar, in a terminal or a notebook.

    Returns
    -------
    Draws

    Raises
    ------
    TypeError
        If `sampler` is no sampler or does not go with `target_acceptance`, or `collect` holds something that
        is not a function to an array.
    ValueError
        If a number is out of range, `initial` has the wrong shapes, or the potential is not finite where a
        chain starts.
    """
    at_least(1, num_samples=num_samples)
    at_least(1, thin=thin)
    at_least(0, burn_in=burn_in)
    at_least(1, num_chains=num_chains)
    if not isinstance(rng_key, jax.Array) or not jnp.issubdtype(rng_key.dtype, jax.dtypes.prng_key):
        raise TypeError(f"rng_key must be a key such as jax.random.key(0); got {rng_key!r}")
    is_tuned = target_acceptance is not None
    if is_tuned and (burn_in == 0 or not 0 < target_acceptance < 1):
        raise ValueError(
            "target_acceptance must lie in (0, 1) and needs burn_in > 0; "
            f"got target_acceptance={target_acceptance}, burn_in={burn_in}"
        )
    is_sampler = hasattr(sampler, "init") and hasattr(sampler, "step")
    if is_tuned == is_sampler or not (is_sampler or callable(sampler)):
        wanted = "a function from a step size to a sampler" if is_tuned else "a sampler (init, step)"
        raise TypeError(
            f"sampler must be {wanted} with target_acceptance={target_acceptance}; got {sampler!r}"
        )
    positive(max_step_size=max_step_size)
    if positive(step_size=step_size) > max_step_size:
        raise ValueError(f"step_size must not exceed max_step_size={max_step_size}; got {step_size}")
    collect = {"potential": target.potential} if collect is None else dict(collect)

    init_key, start_key, step_key, collect_key = jax.random.split(rng_key, 4)
    if initial is None:
        initial = jax.vmap(target.draw_prior)(jax.random.split(init_key, num_chains))
    _check_start(target, initial, num_chains)
    _check_collectors(target, collect)

    make: Callable[[Array], Any] = sampler if callable(sampler) else lambda step_size: sampler
    dtype = jnp.result_type(*jax.tree.leaves(initial))
    goal = 0.5 if target_acceptance is None else target_acceptance
    first_step = jnp.asarray(step_size, dtype)
    states = jax.jit(jax.vmap(lambda u, key: make(first_step).init(u, rng_key=key)))(
        initial, jax.random.split(start_key, num_chains)
    )
    carry = _Carry(states, jnp.asarray(0), jnp.log(first_step), jnp.log(first_step))
    keys = jax.random.split(step_key, num_chains), jax.random.split(collect_key, num_chains)

    def one_step(keys, carry, is_tuning):
        chain_keys = jax.vmap(lambda key: jax.random.fold_in(key, carry.step))(keys)
        log_step_size = jnp.where(is_tuning, carry.log_step_size, carry.average)
        states, info = jax.vmap(make(jnp.exp(log_step_size)).step)(chain_keys, carry.states)
        report = {
            name: jnp.asarray(getattr(info, field), dtype)
            for field, name in STATISTICS.items()
            if hasattr(info, field)
        }
        gain = (carry.step + 1.0) ** -0.6 / (goal * (1 - goal))
        change = jnp.clip(gain * (jnp.mean(report["acceptance_rate"]) - goal), -1, 1)
        moved = jnp.minimum(carry.log_step_size + change, jnp.log(max_step_size)).astype(dtype)
        weight = jnp.where(is_tuning, (carry.step + 1.0) ** -0.75, 0).astype(dtype)
        average = weight * moved + (1 - weight) * carry.average
        return _Carry(states, carry.step + 1, moved, average), report

    def collected_values(keys, carry):
        draw_keys = jax.vmap(lambda key: jax.random.fold_in(key, carry.step))(keys)
        return jax.vmap(lambda u, key: _collected(collect, u, key))(carry.states.position, draw_keys)

    def one_draw(keys, carry, num_steps, is_burn_in):
        def body(_, inside):
            carry, total = inside
            carry, report = one_step(keys[0], carry, is_burn_in & is_tuned)
            return carry, jax.tree.map(jnp.add, total, report)

        totals = _zeros(lambda c: one_step(keys[0], c, is_burn_in)[1], carry)
        carry, totals = jax.lax.fori_loop(0, num_steps, body, (carry, totals))
        nothing = _zeros(lambda c: collected_values(keys[1], c), carry)
        value = jax.lax.cond(is_burn_in, lambda c: nothing, lambda c: collected_values(keys[1], c), carry)
        return carry, (value, jax.tree.map(lambda total: total / num_steps, totals))

    def chunk(keys, carry, num_draws, num_steps, is_burn_in):
        def body(i, inside):
            carry, kept = inside
            carry, draw = one_draw(keys, carry, num_steps, is_burn_in)
            return carry, jax.tree.map(lambda k, d: k.at[i].set(d), kept, draw)

        draws = _zeros(lambda c: one_draw(keys, c, num_steps, is_burn_in)[1], carry, rows=chunk_draws)
        return jax.lax.fori_loop(0, num_draws, body, (carry, draws))

    chunk_draws = min(num_samples, MAX_CHUNK_DRAWS)
    run = _compiled(chunk, keys, carry, jnp.asarray(1), jnp.asarray(1), jnp.asarray(True))

    start = time.perf_counter()
    is_silent = not progress or os.environ.get("TQDM_DISABLE") == "1"  # which tqdm forgets in notebooks
    with tqdm(total=burn_in + num_samples * thin, unit="step", disable=is_silent) as bar:
        pace = _Pace(bar)
        while (left := burn_in - pace.steps) > 0:
            num_steps = min(left, pace.steps_per_chunk)
            carry, (_, report) = run(keys, carry, 1, num_steps, True)
            pace.update(num_steps, report["acceptance_rate"][0], "burn-in")
        kept = []
        while (left := num_samples - (pace.steps - burn_in) // thin) > 0:
            num_draws = min(left, chunk_draws, max(1, pace.steps_per_chunk // thin))
            carry, draws = run(keys, carry, num_draws, thin, False)
            kept.append(jax.tree.map(lambda leaf: np.asarray(leaf[:num_draws]), draws))  # noqa: B023
            pace.update(num_draws * thin, kept[-1][1]["acceptance_rate"], "sampling")
    seconds = time.perf_counter() - start

    collected, stats = jax.tree.map(lambda *parts: np.moveaxis(np.concatenate(parts), 0, 1), *kept)
    return Draws(
        collected=collected,
        stats=stats,
        position=carry.states.position,
        step_size=float(jnp.exp(carry.average)) if is_tuned else None,
        thin=thin,
        burn_in=burn_in,
        seconds=seconds,
    )


class _Pace:
    """Moves the bar, and sizes the next chunk so that it moves about twice a second."""

    def __init__(self, bar: tqdm):
        self.bar, self.steps, self.steps_per_chunk = bar, 0, 1
        self.since = time.perf_counter()

    def update(self, num_steps: int, rates: Float[Array | np.ndarray, "..."], phase: str) -> None:
        acceptance = float(rates.mean())  # waits for the chunk
        now = time.perf_counter()
        self.steps += num_steps
        self.steps_per_chunk = max(1, round(num_steps * min(10, CHUNK_SECONDS / (now - self.since))))
        self.since = now
        self.bar.set_postfix_str(f"{phase}, acceptance {acceptance:.3f}", refresh=False)
        self.bar.update(num_steps)


def _compiled(function, *args):
    """`function` compiled, with the arrays it closes over passed as arguments.

    A jitted function takes such arrays as constants of the program: compilation then folds and copies the
    data, and a data set of some size makes it slow.
    """
    closed, out = jax.make_jaxpr(function, return_shape=True)(*args)
    treedef = jax.tree.structure(out)

    def with_constants(constants, *args):
        return treedef.unflatten(jax.core.eval_jaxpr(closed.jaxpr, constants, *jax.tree.leaves(args)))

    program = jax.jit(with_constants).lower(closed.consts, *args).compile()
    avals = [leaf.dtype for leaf in jax.tree.leaves(args)]

    def run(*args):
        leaves, treedef = jax.tree.flatten(args)
        cast = [jnp.asarray(leaf, dtype) for leaf, dtype in zip(leaves, avals, strict=True)]
        return program(closed.consts, *treedef.unflatten(cast))

    return run


def _zeros(function, carry, rows: int | None = None):
    """Zeros in the shapes of `function(carry)`, `rows` of them where given."""
    shapes = jax.eval_shape(function, carry)
    leading = () if rows is None else (rows,)
    return jax.tree.map(lambda leaf: jnp.zeros((*leading, *leaf.shape), leaf.dtype), shapes)


def _call(function, position, rng_key):
    if "rng_key" in inspect.signature(function).parameters:
        return function(position, rng_key=rng_key)
    return function(position)


def _collected(collect, position, rng_key):
    return {
        name: jnp.asarray(_call(function, position, jax.random.fold_in(rng_key, i)))
        for i, (name, function) in enumerate(collect.items())
    }


def _check_collectors(target, collect):
    for name, function in collect.items():
        if not callable(function):
            raise TypeError(f"collect[{name!r}] must be a function of a position; got {function!r}")
        value = jax.eval_shape(functools.partial(_call, function), target.template, jax.random.key(0))
        if not isinstance(value, jax.ShapeDtypeStruct):
            raise TypeError(f"collect[{name!r}] must return one array; it returned {value!r}")


def _check_start(target, initial, num_chains):
    wanted = jax.tree.map(lambda leaf: (num_chains, *leaf.shape), target.template)
    got = jax.tree.map(jnp.shape, initial)
    if wanted != got:
        raise ValueError(f"initial must have leaves of shapes (num_chains, ...) = {wanted}; got {got}")
    values = jax.jit(jax.vmap(target.potential))(initial)
    if not jnp.isfinite(values).all():
        raise ValueError(f"the potential must be finite where the chains start; got {values}")
