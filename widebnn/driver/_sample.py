"""`sample`: a plan of the run, its chains on their devices, the loop over chunks, and what it found."""

import time
from collections.abc import Mapping

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Key, PyTree
from threadpoolctl import threadpool_limits

from widebnn._arrays import NewInputs, Tabular
from widebnn._compile import make_room, refuse_fork
from widebnn._failures import warn_of_failures
from widebnn.collectors import Collector
from widebnn.driver import _thinning
from widebnn.driver._chains import Carry, Chains, Keys
from widebnn.driver._devices import CHAIN
from widebnn.driver._draws import Draws
from widebnn.driver._end import End, Stopped, on_host, warn_of_disagreement
from widebnn.driver._loop import loop
from widebnn.driver._plan import Plan
from widebnn.driver.checkpoints import Checkpoint, Snapshot, Store, identity
from widebnn.driver.stopping import Until
from widebnn.driver.streaming import value_of
from widebnn.samplers._base import Sampler
from widebnn.samplers._tuned import tuned
from widebnn.targets._base import Target

MAX_CHUNK_DRAWS = 100
MAX_CHUNK_BYTES = 2**26
CHUNK_SECONDS = 0.5
NO_STEPS = np.int32(0), np.int32(1), np.True_  # compiles, and leaves the chains where they are


def sample(
    rng_key: Key[Array, ""],
    target: Target,
    sampler: Sampler | tuned | None = None,
    *,
    num_samples: int | None = None,
    thin: int = 1,
    burn_in: int = 300,
    num_chains: int = 4,
    predict_at: NewInputs | Tabular | None = None,
    num_positions: int | None = None,
    collect: Mapping[str, Collector] | None = None,
    stream: Mapping[str, Collector] | None = None,
    initial: PyTree[Float[Array | np.ndarray, "..."]] | None = None,
    until: Until | None = None,
    checkpoint: Checkpoint | None = None,
    mesh: Mesh | None = None,
    progress: bool = True,
) -> Draws:
    """Run `num_chains` chains for `burn_in + num_samples · thin` steps, or until they have converged.

    A target and a key are enough::

        draws = wb.sample(jax.random.key(0), posterior, predict_at=x_new)

    Four chains then run until 400 effective samples and an $R̂$ of 1.01 are reached, and 64 positions of each
    chain are kept for `Draws.predict`. Without a sampler the coordinates and the sampler are those of
    `widebnn.automatic.auto`; all other defaults are the same with one.

    The steps are compiled in chunks; between chunks, and only there, what was collected goes to the host and
    the progress bar moves. Memory grows with what is collected and never with the parameters; with
    `collect={}` it does not grow at all. The same key gives the same draws, however the chunks fall and
    wherever the run was interrupted. While it runs, BLAS and LAPACK use one thread in the whole process.

    A second run of the same shapes compiles nothing: data, noise and step size are arguments of its programs.
    Functions are known by identity. A lambda in `collect`, or a network's function, that is defined anew
    compiles anew: define it once, outside of loops. Those of `widebnn.collectors`, such as
    ``wb.predictive_mean(x)``, are one for all targets and inputs.

    Ctrl-C, or the stop button of a notebook, ends the run after the current chunk: a checkpoint is saved, and
    the draws so far are returned, with a warning. A second Ctrl-C does not wait. During burn-in, when there
    are no draws yet, KeyboardInterrupt is raised.

    Parameters
    ----------
    rng_key
        Seed for all randomness.
    target
        Target to sample. Chains start from draws of its prior unless `initial` is given; its potential must
        be finite there.
    sampler
        One of `widebnn.samplers`; its step size is tuned during burn-in where it is in
        `widebnn.samplers.tuned`. Unless given, coordinates and sampler are chosen, and `initial` cannot be
        given, which is in other coordinates.
    num_samples
        Draws kept of each chain; with `until`, the most that are kept. Unless given, 10,000, and `until` is
        then ``widebnn.Until()``. Without `until` all of them are made, however well the chains mix.
    thin
        Steps from one draw to the next.
    burn_in
        Number of first steps, of which nothing is kept, and during which a step size is tuned.
    num_chains
        Number of chains, run side by side by `jax.vmap`, or on a CPU, where products are not tiny, in turn.
    predict_at
        New inputs. The mean of an observation there, or a classifier's probabilities, is streamed as
        "prediction", and alone is looked at by `until` unless that names something.
    num_positions
        How many positions of each chain to keep, evenly spaced over the run: an even number, or 0 for none.
        64 unless given, or as many as 256 MiB hold.
    collect
        A dict of functions of `(target, position, rng_key)` whose values (arrays of one shape) are kept, such
        as those of `widebnn.collectors`. An argument `rng_key` may be left out; it is a fresh key each time.
        The potential alone unless given.
    stream
        A dict of functions like those of `collect`; their values at every draw, which is every `thin`-th
        step, enter a summary in fixed memory (`widebnn.streaming`) and are not kept. None unless given.
    initial
        Positions to start from, leaves (num_chains, ...); prior draws unless given.
    until
        Effective sample size, $R̂$ and time limit at which the run ends before all its draws are made.
    checkpoint
        File where the run is saved as it proceeds, and from which the next call resumes it; a larger
        `num_samples` then extends it.
    mesh
        Devices to run on, such as `jax.make_mesh((4, 2), ("chain", "data"))`: chains are split along the axis
        "chain", observations along the axis "data", and either may be left out. The default device unless
        given.
    progress
        Whether to show a progress bar, in a terminal or a notebook.

    Returns
    -------
    `Draws`: by name, what was collected and streamed; statistics of the sampler; the last position of every
    chain; and what ended the run.

    Raises
    ------
    ValueError
        If the potential is not finite where a chain starts, `mesh` does not divide chains or observations, or
        the checkpoint holds another run, a longer one or a damaged one.
    OSError
        If a checkpoint cannot be written; the one before is kept.
    RuntimeError
        If another process writes checkpoints in the same file, or the process was forked after JAX had run.
    TimeoutError, KeyboardInterrupt
        If the seconds of `until` are spent, or Ctrl-C is pressed, before there is a draw.

    Warns
    -----
    ChainWarning
        If chains accepted next to nothing, values that were collected or streamed are NaN, the run ended
        before it met the criteria of `until`, or it was interrupted. Without such criteria, if an $R̂$ exceeds
        1.1, which stands for five effective samples of half a chain, of two chains or more with a hundred
        draws each: fewer tell too little. Of a function with many entries, 1,000 are looked at.
    """
    refuse_fork()
    plan = Plan(
        rng_key,
        target,
        sampler,
        num_samples=num_samples,
        thin=thin,
        burn_in=burn_in,
        num_chains=num_chains,
        predict_at=predict_at,
        num_positions=num_positions,
        collect=collect,
        stream=stream,
        initial=initial,
        until=until,
        checkpoint=checkpoint,
        mesh=mesh,
        progress=progress,
    )
    make_room()
    devices, chains = plan.devices, plan.chains()
    keys, carry, draw, potentials = chains.start(
        devices.put(rng_key), devices.put(initial, CHAIN), devices=devices
    )
    potentials = jax.device_get(potentials)
    if not np.isfinite(potentials).all():
        raise ValueError(f"the potential must be finite where the chains start; got {potentials}")
    plan.check_values(draw[0])
    end = End(plan.until, plan.num_samples)
    chunks = _Chunks(plan, chains, keys, draw, end)
    snapshot, store = Snapshot(carry, [], 0.0), None
    if checkpoint is not None:
        store = Store(checkpoint, identity(plan.configuration(), chunks.program(carry), chains))
        snapshot = store.restore(carry, draw)
    if (done := int(snapshot.carry.step)) > plan.num_steps:
        raise ValueError(
            f"num_samples must be at least the {plan.num_draws(done)} that the checkpoint holds; "
            f"got {plan.num_samples}"
        )

    def ended(snapshot: Snapshot, steps: int, is_interrupted: bool) -> Stopped | None:
        stopped = end.reached_by(plan.num_draws(steps), snapshot, is_interrupted=is_interrupted)
        if store is not None:
            store.save_if_due(steps, snapshot, is_last=stopped is not None)
        return stopped

    if (stopped := end.reached_by(plan.num_draws(done), snapshot, is_interrupted=False)) is None:
        snapshot = chunks.begin(snapshot, done)
        # Threads of a Cholesky factorisation keep turning after it and take the cores from the products that
        # follow: up to n = 2,048 on two cores, a step is faster where LAPACK has one.
        with threadpool_limits(1, user_api="blas"):
            snapshot, done, stopped = loop(
                chunks,
                ended,
                snapshot,
                done,
                total=plan.num_steps,
                unit="step",
                progress=progress,
            )
    if plan.num_draws(done) < 1:
        raise end.without_draws(stopped, done, plan.burn_in)
    return _told(plan, snapshot, end, stopped, plan.num_draws(done))


def _told(plan: Plan, snapshot: Snapshot, end: End, stopped: Stopped, num_draws: int) -> Draws:
    """What the run found, with a warning of what went wrong."""
    streamed, sums = on_host(snapshot.carry), jax.device_get(snapshot.carry.stats)
    collected, stats = {}, {name: value_of(of)[:, None] / num_draws for name, of in sums.items()}
    if snapshot.draws:
        parts = jax.tree.map(lambda *parts: np.moveaxis(np.concatenate(parts), 0, 1), *snapshot.draws)
        collected, stats = parts
    warn_of_failures(
        stats.get("is_accepted", stats["acceptance_rate"]).mean(axis=1),
        num_draws * plan.thin,
        collected | {f"streamed {name}": summary.chain_mean for name, summary in streamed.items()},
    )
    if end.wanted is None and stopped != "interrupted":
        warn_of_disagreement(collected, streamed)
    states, _, step_size, *_, thinned = snapshot.carry
    return Draws(
        collected,
        stats,
        streamed,
        states.position,
        None if step_size is None else float(np.exp(np.asarray(step_size.log_average))),
        plan.thin,
        plan.burn_in,
        snapshot.seconds,
        stopped,
        end.told(stopped, num_draws),
        None if thinned is None else _thinning.on_host(thinned),
        plan.target,
    )


class _Chunks:
    """The run chunk by chunk, each of about half a second."""

    def __init__(self, plan: Plan, chains: Chains, keys: Keys, draw: PyTree, end: End):
        self.plan, self.chains, self.keys, self.draw, self.end = plan, chains, keys, draw, end
        # Nothing in the program knows num_samples: a run that is extended is the same program.
        draw_bytes = sum(leaf.nbytes for leaf in jax.tree.leaves(draw))
        most = max(1, min(MAX_CHUNK_DRAWS, MAX_CHUNK_BYTES // draw_bytes)) if plan.collect else 1
        self.sizes = {"max_draws": most, "devices": plan.devices}

    def program(self, carry: Carry) -> str:
        """The text of the program."""
        arguments = self.chains, self.keys, carry, self.draw, *NO_STEPS
        return Chains.chunk.lower(*arguments, **self.sizes).as_text()

    def begin(self, snapshot: Snapshot, steps: int) -> Snapshot:
        """The snapshot from which to go on, with the program compiled and the clock started."""
        carry, _ = self.chains.chunk(self.keys, snapshot.carry, self.draw, *NO_STEPS, **self.sizes)
        self.pace, self.since = _Pace(steps), time.perf_counter() - snapshot.seconds
        return snapshot._replace(carry=carry)

    def __call__(self, snapshot: Snapshot) -> tuple[Snapshot, int, str]:
        plan, pace = self.plan, self.pace
        if is_burn_in := pace.steps < plan.burn_in:
            num_draws, num_steps = 1, min(plan.burn_in - pace.steps, pace.steps_per_chunk)
        else:
            made = plan.num_draws(pace.steps)
            most = self.sizes["max_draws"] if plan.collect else plan.num_samples
            left = self.end.next_look(made) - made
            num_draws, num_steps = min(left, most, max(1, pace.steps_per_chunk // plan.thin)), plan.thin
        scalars = np.int32(num_draws), np.int32(num_steps), np.bool_(is_burn_in)
        carry, draws = self.chains.chunk(self.keys, snapshot.carry, self.draw, *scalars, **self.sizes)
        draws = jax.tree.map(lambda leaf: np.array(leaf[:num_draws]), jax.device_get(draws))
        if plan.collect and not is_burn_in:
            snapshot.draws.append(draws)
        acceptance = pace.update(num_draws * num_steps, draws[1]["acceptance_rate"])
        phase = "burn-in" if is_burn_in else "sampling"
        note = f"{phase}, acceptance {acceptance:.3f}{self.end.note}"
        snapshot = Snapshot(carry, snapshot.draws, time.perf_counter() - self.since)
        return snapshot, num_draws * num_steps, note


class _Pace:
    """Sizes the next chunk so that the bar moves about twice per second."""

    def __init__(self, steps: int):
        self.steps, self.steps_per_chunk, self.since = steps, 1, time.perf_counter()

    def update(self, num_steps: int, rates: Float[Array | np.ndarray, "..."]) -> float:
        """The mean acceptance of a chunk of so many steps."""
        acceptance = float(rates.mean())  # waits for the chunk
        now = time.perf_counter()
        self.steps += num_steps
        self.steps_per_chunk = max(1, round(num_steps * min(10, CHUNK_SECONDS / (now - self.since))))
        self.since = now
        return acceptance
