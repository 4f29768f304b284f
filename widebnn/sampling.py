"""The driver: many chains of any sampler, keeping functions of the state and never the network."""

import functools
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Key, PyTree, Real
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from widebnn._chains import Chains, call
from widebnn._check import at_least
from widebnn._compile import Program
from widebnn._devices import Devices
from widebnn._failures import warn_of_failures
from widebnn.checkpoint import Checkpoint, Kept, Store, digest, identity
from widebnn.samplers._base import AnySampler, is_sampler
from widebnn.samplers._tuned import Tuned
from widebnn.streaming import Stream, Streamed
from widebnn.targets._base import Target
from widebnn.tree import Position

if TYPE_CHECKING:
    from xarray import DataTree

__all__ = ["Draws", "sample"]

Collector = Callable[..., Float[Array, "..."]]


MAX_CHUNK_DRAWS = 100
MAX_CHUNK_BYTES = 2**26
CHUNK_SECONDS = 0.5
MAX_STEPS = 2**31 - 1  # what an int32 counts
GROUPS = ("log_likelihood", "posterior_predictive")
"""Names under which what is collected is a group of its own in ArviZ."""


@dataclass(frozen=True, eq=False)
class Draws:
    """Result of a run.

    Attributes
    ----------
    collected
        By name, arrays (chain, draw, ...) of the functions that were collected.
    stats
        By name, arrays (chain, draw) of sample statistics, each the mean over the steps between draws. Where
        nothing was collected there is one column, the mean over all steps after burn-in.
    streamed
        By name, summaries of the functions that were streamed.
    position
        Last position of every chain, leaves (chain, ...), from which another run can continue.
    step_size
        Step size that tuning found; None where nothing was tuned.
    thin
        Steps from one draw to the next.
    burn_in
        Steps before the first draw.
    seconds
        Wall time of burn-in and sampling, compilation left out; of all calls together where a run went on
        from a checkpoint.
    """

    collected: dict[str, np.ndarray]
    stats: dict[str, np.ndarray]
    streamed: dict[str, Streamed]
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
        """Mean acceptance rate over all chains and steps after burn-in."""
        return float(self.stats["acceptance_rate"].mean())

    def to_datatree(self, observed: Real[Array | np.ndarray, "n ..."] | None = None) -> "DataTree":
        """An ArviZ `DataTree` with the groups `posterior` and `sample_stats`, and three more by name.

        What was collected as "log_likelihood" or "posterior_predictive" is the variable `y` of the group of
        that name. With it `arviz.loo` and ArviZ's posterior-predictive checks run::

            collect={
                "potential": target.potential,
                "log_likelihood": target.log_likelihood,
                "posterior_predictive": target.predictive_draw(x),
            }

        Parameters
        ----------
        observed
            y, the variable `y` of the group `observed_data`, which is left out unless it is given.

        Raises
        ------
        ValueError
            If nothing was collected, or `observed` has another shape than the predictive draws.
        """
        import arviz

        if not self.collected:
            raise ValueError(
                "to_datatree needs draws; with collect={} there are summaries alone, in `streamed`"
            )

        stats = dict(self.stats)
        if "diverging" in stats:
            stats["diverging"] = stats["diverging"] > 0
        posterior = dict(self.collected)
        groups = {name: {"y": posterior.pop(name)} for name in GROUPS if name in posterior}
        if observed is not None:
            groups["observed_data"] = {"y": (y := np.asarray(observed))}
            predicted = self.collected.get("posterior_predictive")
            if predicted is not None and y.shape != (wanted := predicted.shape[2:]):
                raise ValueError(f"observed must have the shape {wanted} of predictive draws; got {y.shape}")
        tree = arviz.from_dict({"posterior": posterior, "sample_stats": stats} | groups)
        tree["posterior"].attrs |= {"thin": self.thin, "burn_in": self.burn_in, "seconds": self.seconds}
        return tree


def sample(
    rng_key: Key[Array, ""],
    sampler: AnySampler | Tuned,
    target: Target,
    *,
    num_samples: int,
    thin: int = 1,
    burn_in: int = 0,
    num_chains: int = 1,
    collect: Mapping[str, Collector] | None = None,
    stream: Mapping[str, Collector | Stream] | None = None,
    initial: Position | None = None,
    checkpoint: Checkpoint | None = None,
    mesh: Mesh | None = None,
    progress: bool = True,
) -> Draws:
    """Run `num_chains` chains for `burn_in + num_samples · thin` steps.

    The steps are compiled in chunks; between chunks, and only there, what was collected goes to the host and
    the progress bar moves. Memory grows with what is collected and never with the parameters; with
    `collect={}` it does not grow at all. The same key gives the same draws, however the chunks fall and
    wherever the run was interrupted. While it runs, LAPACK has one thread, in the whole process.

    Parameters
    ----------
    rng_key
        Seed for all randomness.
    sampler
        `(init, step)`, of this package or of BlackJAX; or what `widebnn.samplers.tuned` returns, to tune its
        step size during burn-in.
    target
        Target to sample: its prior draws start the chains, its potential must be finite there.
    num_samples, thin
        Draws kept of each chain, and steps from one to the next.
    burn_in
        Number of first steps, of which nothing is kept.
    num_chains
        Number of chains, run side by side by `jax.vmap`.
    collect
        By name, functions of a position whose values (arrays of one shape) are kept; those with an argument
        `rng_key` get a fresh one each time. The potential alone unless given.
    stream
        By name, functions as those of `collect`, or `widebnn.streaming.Stream`s of them; their values at
        every draw, which is every `thin`-th step, enter a summary in fixed memory and are not kept. None
        unless given.
    initial
        Positions to start from, leaves (num_chains, ...); prior draws unless given.
    checkpoint
        Folder where the run is saved while it goes, and from which it resumes on the next call; a larger
        `num_samples` then extends it.
    mesh
        Devices to run on, such as `jax.make_mesh((4, 2), ("chain", "data"))`: chains are split along the axis
        "chain", observations along the axis "data", and either may be left out. The default device unless
        given. It may span the processes of `jax.distributed`, each of which makes the same call and gets
        all draws; the last positions stay on the devices, and there can be no checkpoint.
    progress
        Whether to show a progress bar, in a terminal or a notebook.

    Returns
    -------
    Draws

    Raises
    ------
    TypeError
        If `sampler` is no sampler, or `collect` or `stream` holds something that is not a function to an
        array.
    ValueError
        If a number is out of range, `sampler` is tuned without burn-in or was built on the potential of
        another target, `initial` has the wrong shapes, the potential is not finite where a chain starts,
        `mesh` does not divide chains or observations or spans several processes where there is a
        `checkpoint`, or that holds another run, a longer one or a damaged one.
    OSError
        If a checkpoint cannot be written; the one before is kept.
    RuntimeError
        If another process writes checkpoints in the same folder.

    Warns
    -----
    ChainWarning
        If chains accepted next to nothing, or values that were collected or streamed are NaN.
    """
    at_least(1, num_samples=num_samples)
    at_least(1, thin=thin)
    at_least(0, burn_in=burn_in)
    at_least(1, num_chains=num_chains)
    if (num_steps := burn_in + num_samples * thin) > MAX_STEPS:
        raise ValueError(f"burn_in + num_samples * thin must be at most {MAX_STEPS}; got {num_steps}")
    if not isinstance(rng_key, jax.Array) or not jnp.issubdtype(rng_key.dtype, jax.dtypes.prng_key):
        raise TypeError(f"rng_key must be a key such as jax.random.key(0); got {rng_key!r}")
    if not isinstance(sampler, Tuned) and not is_sampler(sampler):
        raise TypeError(
            "sampler must be a sampler (init, step), or samplers.tuned(make, target_acceptance) with make a "
            f"function from a step size to one; got {sampler!r}"
        )
    if isinstance(sampler, Tuned) and burn_in == 0:
        raise ValueError("burn_in must be at least 1 where the sampler is tuned; got 0")
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        raise TypeError(f"checkpoint must be a widebnn.Checkpoint; got {checkpoint!r}")
    collect = {"potential": target.potential} if collect is None else dict(collect)
    streams = {name: f if isinstance(f, Stream) else Stream(f) for name, f in (stream or {}).items()}

    init_key, start_key, *run_keys = jax.random.split(rng_key, 5)
    given = initial
    if initial is None:
        initial = jax.vmap(target.draw_prior)(jax.random.split(init_key, num_chains))
    devices = Devices(mesh, num_chains, target.num_observations)
    if checkpoint is not None and mesh is not None and mesh.is_multi_process:
        raise ValueError("checkpoint must be None where mesh spans several processes")
    _check_start(target, sampler, initial, num_chains, devices)
    _check_functions("collect", target, collect)
    _check_functions("stream", target, {name: f.function for name, f in streams.items()})

    initial = devices.shard_chains(initial)
    chains = Chains(sampler, collect, streams, devices)
    start_keys = devices.shard_chains(jax.random.split(start_key, num_chains))
    carry = chains.start(initial, start_keys)
    keys = jnp.stack([jax.random.split(key, num_chains) for key in run_keys])
    keys = devices.shard_chains(keys, axis=1)
    # Nothing in the program knows num_samples: a run that is extended is the same program.
    draw = chains.draw_shapes(keys, carry)
    draw_bytes = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(draw))
    max_draws = max(1, min(MAX_CHUNK_DRAWS, MAX_CHUNK_BYTES // draw_bytes)) if collect else 1
    chunk = functools.partial(chains.chunk, max_draws=max_draws)
    scalars = jnp.asarray(1), jnp.asarray(1), jnp.asarray(True)
    out = carry, devices.replicate(jnp.asarray(0))  # replicate what the host reads
    run = Program(chunk, keys, carry, *scalars, donate=1, devices=devices, out=out)

    kept, before, store = [], 0.0, None
    if checkpoint is not None:
        configuration = {
            "rng_key": f"{jax.random.key_impl(rng_key)} {jax.random.key_data(rng_key)}",
            "num_chains": num_chains,
            "thin": thin,
            "burn_in": burn_in,
            "initial": None if given is None else digest(given),
            "position": str(target.template),
            "mesh": None if mesh is None else dict(mesh.shape),
            "collect": {name: str(shape) for name, shape in draw[0].items()},
            "stream": {
                name: [str(summary.origin.aval), summary.batches is not None, summary.sketch is not None]
                for name, summary in carry.streamed.items()
            },
        }
        if isinstance(sampler, Tuned):
            settings = ("target_acceptance", "step_size", "max_step_size")
            configuration |= {name: float(getattr(sampler, name)) for name in settings}
        store = Store(checkpoint, identity(configuration, run.text, run.constants))
        carry, kept, before = store.restore(carry, draw)
    total = burn_in + num_samples * thin
    if (done := int(carry.step)) > total:
        raise ValueError(
            f"num_samples must be at least the {(done - burn_in) // thin} that the checkpoint holds; "
            f"got {num_samples}"
        )
    if done < total:
        run.compile()

    start = time.perf_counter()
    is_silent = not progress or os.environ.get("TQDM_DISABLE") == "1"  # which tqdm forgets in notebooks
    bar = tqdm(total=total, initial=done, unit="step", disable=is_silent)
    # Threads of a Cholesky factorisation keep turning after it and take the cores from the products that
    # follow: up to n = 2,048 on two cores, a step is faster where LAPACK has one.
    with threadpool_limits(1, user_api="blas"), bar:
        pace = _Pace(bar, done)
        while pace.steps < total:
            if is_burn_in := pace.steps < burn_in:
                num_draws, num_steps = 1, min(burn_in - pace.steps, pace.steps_per_chunk)
            else:
                most = max_draws if collect else num_samples
                left = num_samples - (pace.steps - burn_in) // thin
                num_draws, num_steps = min(left, most, max(1, pace.steps_per_chunk // thin)), thin
            carry, draws = run(keys, carry, num_draws, num_steps, is_burn_in)
            draws = jax.tree.map(lambda leaf: np.asarray(leaf[:num_draws]), draws)  # noqa: B023
            if collect and not is_burn_in:
                kept.append(draws)
            pace.update(num_draws * num_steps, draws[1]["acceptance_rate"], is_burn_in)
            pace.steps_per_chunk = devices.agreed(pace.steps_per_chunk)  # clocks differ
            if store is not None:
                seconds = before + time.perf_counter() - start
                store.save_if_due(pace.steps, Kept(carry, kept, seconds), is_last=pace.steps == total)
    seconds = before + time.perf_counter() - start

    streamed, means = ({k: Streamed(v) for k, v in part.items()} for part in jax.device_get(carry[-2:]))
    collected, stats = {}, {name: mean.chain_mean[:, None] for name, mean in means.items()}
    if kept:
        collected, stats = jax.tree.map(lambda *parts: np.moveaxis(np.concatenate(parts), 0, 1), *kept)
    warn_of_failures(
        stats.get("is_accepted", stats["acceptance_rate"]).mean(axis=1),
        num_samples * thin,
        collected | {f"streamed {name}": summary.chain_mean for name, summary in streamed.items()},
    )
    return Draws(
        collected=collected,
        stats=stats,
        streamed=streamed,
        position=carry.states.position,
        step_size=None if carry.step_size is None else float(jnp.exp(carry.step_size.log_average)),
        thin=thin,
        burn_in=burn_in,
        seconds=seconds,
    )


class _Pace:
    """Moves the bar, and sizes the next chunk so that it moves about twice a second."""

    def __init__(self, bar: tqdm, steps: int):
        self.bar, self.steps, self.steps_per_chunk = bar, steps, 1
        self.since = time.perf_counter()

    def update(self, num_steps: int, rates: Float[Array | np.ndarray, "..."], is_burn_in: bool) -> None:
        acceptance = float(rates.mean())  # waits for the chunk
        now = time.perf_counter()
        self.steps += num_steps
        self.steps_per_chunk = max(1, round(num_steps * min(10, CHUNK_SECONDS / (now - self.since))))
        self.since = now
        phase = "burn-in" if is_burn_in else "sampling"
        self.bar.set_postfix_str(f"{phase}, acceptance {acceptance:.3f}", refresh=False)
        self.bar.update(num_steps)


def _check_functions(argument, target, functions):
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(f"{argument}[{name!r}] must be a function of a position; got {function!r}")
        value = jax.eval_shape(functools.partial(call, function), target.template, jax.random.key(0))
        if not isinstance(value, jax.ShapeDtypeStruct):
            raise TypeError(f"{argument}[{name!r}] must return one array; it returned {value!r}")


def _check_start(target, sampler, initial, num_chains, devices):
    wanted = jax.tree.map(lambda leaf: (num_chains, *leaf.shape), target.template)
    got = jax.tree.map(jnp.shape, initial)
    if wanted != got:
        raise ValueError(f"initial must have leaves of shapes (num_chains, ...) = {wanted}; got {got}")
    initial = devices.shard_chains(initial)

    def at_start(potential):
        return Program(jax.vmap(potential), initial, devices=devices)(initial)

    values = at_start(target.potential)
    if not jnp.isfinite(values).all():
        raise ValueError(f"the potential must be finite where the chains start; got {values}")
    # A sampler of another density on the same shapes would run, and its draws be taken for the target's.
    sampler = sampler.make(sampler.step_size) if isinstance(sampler, Tuned) else sampler
    for potential in getattr(sampler, "potentials", ()):
        if potential == target.potential:
            continue
        if not jnp.allclose(found := at_start(potential), values, rtol=1e-3, atol=1e-3):
            raise ValueError(
                f"sampler must be built on the potential of target: it samples {_owner(potential)}, with "
                f"U = {found[0]:.4g} where the first chain starts, and target is {_owner(target.potential)}, "
                f"with U = {values[0]:.4g}"
            )


def _owner(potential: Callable) -> str:
    """The class of target that a potential belongs to, or the name of a function that stands alone."""
    if (target := getattr(potential, "__self__", None)) is not None:
        return type(target).__name__
    return getattr(potential, "__qualname__", repr(potential))
