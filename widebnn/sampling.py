"""The driver: many chains of any sampler, keeping functions of the state and never the network."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Key, PyTree, Real
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from widebnn import _thinned
from widebnn._arrays import NewInputs, Tabular
from widebnn._chains import Chains
from widebnn._check import at_least, brief, one_key, one_of
from widebnn._compile import make_room
from widebnn._devices import CHAIN, Devices
from widebnn._end import MIN_DRAWS, End, Stopped, on_host, warn_of_disagreement
from widebnn._failures import warn_of_failures
from widebnn._fingerprint import difference, fingerprint
from widebnn._folder import Folder
from widebnn._interrupts import Interrupts
from widebnn.automatic import auto
from widebnn.checkpoints import Checkpoint, Kept, Store, digest, identity
from widebnn.collectors import Collector, check, observation, potential, prediction, prepared
from widebnn.diagnostics import convergence
from widebnn.samplers._base import Sampler
from widebnn.samplers._tuned import tuned
from widebnn.stopping import Until
from widebnn.streaming import MOMENTS, Stream, Streamed, start
from widebnn.targets._base import Target
from widebnn.weight_draws import Moments

if TYPE_CHECKING:
    from pandas import DataFrame
    from xarray import DataTree

__all__ = ["Draws", "sample"]

FOLDER = Folder("run", version=1)

MAX_CHUNK_DRAWS = 100
MAX_CHUNK_BYTES = 2**26
CHUNK_SECONDS = 0.5
MAX_SAMPLES, NUM_POSITIONS = 10_000, 64
"""Where they are not given."""
MAX_POSITIONS_BYTES = 2**28
MAX_STEPS = 2**31 - 1  # what an int32 counts
NO_STEPS = np.int32(0), np.int32(1), np.True_  # compiles, and leaves the chains where they are
TOLD = ("step_size", "thin", "burn_in", "seconds", "stopped", "reason")
SAVED = ("collected", "stats", "position", "streamed", "positions")
"""What of a run is saved as numbers and words, and what as arrays."""
GROUPS = ("log_likelihood", "posterior_predictive")
"""Names under which what is collected is a group of its own in ArviZ."""


@dataclass(frozen=True, eq=False, repr=False)
class Draws:
    """Result of a run.

    Attributes
    ----------
    collected
        By name, arrays (chain, draw, ...) of the functions that were collected.
    stats
        By name, arrays (chain, draw) of what the sampler reports, such as "acceptance_rate" and
        "is_accepted", each the mean over the steps between draws. Where nothing was collected there is one
        column, the mean over all steps after burn-in.
    streamed
        By name, summaries of the functions that were streamed.
    position
        Last position of every chain, leaves (chain, ...), from which another run can continue.
    step_size
        Step size that tuning found; None where nothing was tuned.
    thin
        Steps from one draw to the next.
    burn_in
        Number of first steps, of which nothing was kept.
    seconds
        Wall time of burn-in and sampling, without compilation; of all calls together where a run was resumed
        from a checkpoint.
    stopped
        What ended the run: "num_samples", all draws were made; "converged", the criteria of `until` were
        met; "seconds", the time limit of `until`; "interrupted", Ctrl-C.
    reason
        The same in a sentence, with the number of draws and, given `until`, the entries that mix worst.
    positions
        Positions evenly spaced over the run, leaves (chain, kept, ...); None where none were asked for.
    target
        The target that was sampled; None in a run that was loaded without it.
    """

    collected: dict[str, np.ndarray]
    stats: dict[str, np.ndarray]
    streamed: dict[str, Streamed]
    position: PyTree
    step_size: float | None
    thin: int
    burn_in: int
    seconds: float
    stopped: Stopped = "num_samples"
    reason: str = ""
    positions: PyTree | None = None
    target: Target | None = None

    _told: ClassVar[tuple[str, ...]] = TOLD

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.collected:
            raise KeyError(f"{name!r} was not collected; there are {sorted(self.collected)}")
        return self.collected[name]

    def __repr__(self) -> str:
        shapes = [f"{name} {x.dtype}{list(x.shape)}" for name, x in self.collected.items()]
        shapes += [f"{name} streamed {list(x.summary.origin.shape)}" for name, x in self.streamed.items()]
        return f"Draws({'; '.join([self.reason, *shapes])})"

    @property
    def acceptance_rate(self) -> float:
        """Mean acceptance rate over all chains and steps after burn-in."""
        return float(self.stats["acceptance_rate"].mean())

    def summary(self) -> "DataFrame":
        """A table of what was collected and streamed: entries, smallest ESS and largest $R̂$ of each.

        Its corner holds the number of chains, acceptance and seconds. Of what was collected they are those of
        `widebnn.diagnostics.convergence`, of what was streamed those of `widebnn.streaming.Streamed`; NaN
        where they cannot be told.
        """
        import pandas

        rows = {}
        for name, values in self.collected.items():
            known = values.shape[1] >= MIN_DRAWS and values.size > 0 and np.isfinite(values).all()
            found = convergence(values) if known else None
            rows[name] = values[0, 0].size, found and found.ess, found and found.rhat
        for name, streamed in self.streamed.items():
            known = streamed.summary.batches is not None and streamed.count > 1
            found = (streamed.effective_sample_size, streamed.rhat) if known else (None, None)
            rows[name] = streamed.mean.size, *found
        told = [
            [size, *(np.nan if of is None else worst(of) for worst, of in zip((np.nanmin, np.nanmax), found))]
            for size, *found in rows.values()
        ]
        num_chains = len(self.stats["acceptance_rate"])
        corner = f"{num_chains} chains, acceptance {self.acceptance_rate:.2f}, {self.seconds:.1f} s"
        columns = pandas.Index(["entries", "ESS", "R̂"], name=corner)
        return pandas.DataFrame(told, index=list(rows), columns=columns).round({"ESS": 0, "R̂": 3})

    def predict(self, x: NewInputs | Tabular, rng_key: Key[Array, ""] | None = None) -> Moments:
        """Mean and standard deviation of observations $y*$ at new inputs, from the positions that were kept.

        Under Gaussian noise the readout is integrated out at each position. The deviation contains the noise,
        whatever the likelihood is: it is infinite under Student's noise of at most two degrees of freedom.
        Of a classifier they are mean and standard deviation of the probabilities over the posterior.

        Parameters
        ----------
        x
            New inputs $(m, ...)$.
        rng_key
            Key for the weights that new inputs alone look at, in `widebnn.targets.rotated` and
            `widebnn.targets.whitened`: each position draws its own.

        Returns
        -------
        Moments
            Mean and standard deviation, each $(m, d_out)$.

        Raises
        ------
        ValueError
            If no positions were kept, or the run was loaded without its target.
        TypeError
            If the target has no such predictions.
        """
        if self.positions is None or self.target is None:
            raise ValueError(
                "predict needs positions and their target: give sample num_positions=64, and load a target"
            )
        key = jax.random.key(0) if rng_key is None else one_key(rng_key=rng_key)
        positions = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), self.positions)
        asked = prepared(observation(x), self.target)
        mean, variance = jax.device_get(_predicted(self.target, positions, key, asked))
        return Moments(mean.mean(axis=0), np.sqrt(mean.var(axis=0) + variance.mean(axis=0)))

    def to_datatree(self, observed: Real[Array | np.ndarray, "n ..."] | None = None) -> "DataTree":
        """An ArviZ `DataTree` with the groups `posterior` and `sample_stats`, and up to three others.

        What was collected as "log_likelihood" or "posterior_predictive" becomes the variable `y` of the group
        of that name, from which `arviz.loo` and ArviZ's posterior-predictive checks work::

            collect={
                "potential": wb.potential,
                "log_likelihood": wb.log_likelihood,
                "posterior_predictive": wb.predictive_draw(x),
            }

        Parameters
        ----------
        observed
            $y$, which becomes the variable `y` of the group `observed_data`; there is no such group unless it
            is given.

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
        tree["posterior"].attrs |= {name: getattr(self, name) for name in self._told[1:]}
        return tree

    def save(self, folder: str | os.PathLike, overwrite: bool = False) -> None:
        """Save the run in a folder, from which `load` restores it bit for bit.

        The folder holds `run.json`, with all numbers, names and a SHA-256 of every file, and one ``.npy`` per
        array: ``collected.0.npy`` is the first array that `names` lists there as collected. The leaves of
        `position` and `streamed` are one array each. The folder is written under a temporary name and renamed
        when it is complete.

        Parameters
        ----------
        folder
            A new or empty folder.
        overwrite
            Whether a run that was saved there may be replaced. Anything else never is.

        Raises
        ------
        FileExistsError
            If the folder holds anything else, or a run and `overwrite` is False.
        OSError
            If it cannot be written; what was there before is left as it was.
        """
        summaries = {name: streamed.summary for name, streamed in self.streamed.items()}
        trees = map(_by_name, (self.position, summaries, self.positions))
        groups = dict(zip(SAVED, (self.collected, self.stats, *trees)))
        record = {name: _plain(getattr(self, name)) for name in self._told} | {
            "names": {group: list(members) for group, members in groups.items()},
            "streams": [[name, s.batches is not None, s.sketch is not None] for name, s in summaries.items()],
        }
        if self.target is not None:
            record["target"] = fingerprint(self.target, _first(self.position))
        arrays = {
            f"{group}.{i}": np.asarray(array)
            for group, members in groups.items()
            for i, array in enumerate(members.values())
        }
        FOLDER.write(Path(folder), record, arrays, overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike, target: Target | None = None) -> "Draws":
        """Load a run that `save` wrote; arrays are memory-mapped and read when they are used.

        Parameters
        ----------
        folder
            Folder that `save` wrote.
        target
            The target that was sampled, made anew from the same data and network. It says how a position is
            built from its arrays, so that chains can continue from it, and is compared with the one of the
            run: its arrays up to rounding, and its potential at the last position. Without it, `position` is
            a dict from the path of each leaf to its array.

        Raises
        ------
        FileNotFoundError
            If the folder or one of its files is missing.
        ValueError
            If the folder holds something else, was written by a newer version or is damaged, or `target` is
            not the target that was sampled.
        """
        record, arrays = FOLDER.read(Path(folder))
        collected, stats, position, summaries, positions = (
            {name: arrays[f"{group}.{i}"] for i, name in enumerate(record["names"].get(group, []))}
            for group in SAVED
        )
        positions = positions or None
        if target is not None:
            wanted = {name: leaf.shape for name, leaf in _by_name(target.template).items()}
            if (found := {name: leaf.shape[1:] for name, leaf in position.items()}) != wanted:
                raise ValueError(
                    f"target must have positions as those in {folder}, of shapes {found}; got {wanted}"
                )
            structure = jax.tree.structure(target.template)
            position = jax.tree.unflatten(structure, position.values())
            positions = positions and jax.tree.unflatten(structure, positions.values())
            saved = record.get("target")  # runs that older versions saved have none
            if saved and (found := difference(saved, fingerprint(target, _first(position)))):
                raise ValueError(f"target must be the one that {folder} is a run of; {found}")
        kinds = {
            name: MOMENTS._replace(batches=batches, quantiles=quantiles)
            for name, batches, quantiles in record["streams"]
        }
        likes = jax.eval_shape(
            lambda: {name: start(jax.ShapeDtypeStruct((), np.float32), kind) for name, kind in kinds.items()}
        )
        built = jax.tree.unflatten(jax.tree.structure(likes), summaries.values())
        streamed = {name: Streamed(built[name]) for name in kinds}
        told = {name: record[name] for name in cls._told}
        return cls(collected, stats, streamed, position, **told, positions=positions, target=target)


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
    stream: Mapping[str, Collector | Stream] | None = None,
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
        Number of chains, run side by side by `jax.vmap`.
    predict_at
        New inputs. The mean of an observation there, or a classifier's probabilities, is streamed as
        "prediction", and alone is looked at by `until` unless that names something.
    num_positions
        How many positions of each chain to keep, evenly spaced over the run: an even number, or 0 for none.
        64 unless given, or as many as 256 MiB hold.
    collect
        By name, functions of `(target, position, rng_key)` whose values (arrays of one shape) are kept, such
        as those of `widebnn.collectors`. An argument `rng_key` may be left out; it is a fresh key each time.
        The potential alone unless given.
    stream
        By name, functions like those of `collect`, or `widebnn.streaming.Stream`s of them; their values at
        every draw, which is every `thin`-th step, enter a summary in fixed memory and are not kept. None
        unless given.
    initial
        Positions to start from, leaves (num_chains, ...); prior draws unless given.
    until
        Effective sample size, $R̂$ and time limit at which the run ends before all its draws are made.
    checkpoint
        Folder where the run is saved as it proceeds, and from which the next call resumes it; a larger
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
    `Draws`: by name, what was collected and streamed; statistics of the sampler; the last position of every
    chain; and what ended the run.

    Raises
    ------
    TypeError
        If `rng_key` is not a key, `sampler` is not a sampler, `target` is not a target, `until` or
        `checkpoint` is of another type, or `collect` or `stream` holds something that is not a function to
        one array.
    ValueError
        If a number is out of range, `until` has nothing to look at, `sampler` is tuned without burn-in or
        does not go with the target, `initial` has the wrong shapes, the potential is not finite
        where a chain starts, `mesh` does not divide chains or observations or spans several processes where
        there is a `checkpoint`, or the checkpoint holds another run, a longer one or a damaged one.
    OSError
        If a checkpoint cannot be written; the one before is kept.
    RuntimeError
        If another process writes checkpoints in the same folder.
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
    if not isinstance(target, Target):
        raise TypeError(
            "target must be one of widebnn.targets, such as from_potential(potential, template); "
            f"got {type(target).__name__}"
        )
    if sampler is None:
        if initial is not None:
            raise ValueError("initial must be None where sampler is: choose both by widebnn.auto(target)")
        target, sampler, reason = auto(target)
        if progress:
            print(reason)
    if num_samples is None:
        num_samples, until = MAX_SAMPLES, Until() if until is None else until
    num_samples, thin = at_least(1, num_samples=num_samples), at_least(1, thin=thin)
    burn_in, num_chains = at_least(0, burn_in=burn_in), at_least(1, num_chains=num_chains)
    if num_positions is None:
        of_position = num_chains * sum(
            leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(target.template)
        )
        num_positions = min(NUM_POSITIONS, MAX_POSITIONS_BYTES // of_position // 2 * 2)
    at_least(0, num_positions=num_positions)
    if num_positions % 2:
        raise ValueError(f"num_positions must be even; got {num_positions}")
    if (total := burn_in + num_samples * thin) > MAX_STEPS:
        raise ValueError(f"burn_in + num_samples * thin must be at most {MAX_STEPS}; got {total}")
    one_key(rng_key=rng_key)
    if not isinstance(sampler, Sampler | tuned):
        raise TypeError(
            "sampler must be one of widebnn.samplers, such as pcn(0.1), or one of BlackJAX by "
            f"samplers.from_blackjax(make); got {brief(sampler)}"
        )
    if isinstance(sampler, tuned) and burn_in == 0:
        raise ValueError("burn_in must be at least 1 where the sampler is tuned; got 0")
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        raise TypeError(f"checkpoint must be a widebnn.Checkpoint; got {brief(checkpoint)}")
    if until is not None and not isinstance(until, Until):
        raise TypeError(f"until must be a widebnn.Until; got {brief(until)}")
    for name, functions in {"collect": collect, "stream": stream}.items():
        if functions is not None and not isinstance(functions, Mapping):
            raise TypeError(f"{name} must be a dict from names to functions; got {brief(functions)}")
        for key, function in (functions or {}).items():
            check(f"{name}[{key!r}]", function.function if isinstance(function, Stream) else function)
    collect = {"potential": potential} if collect is None else dict(collect)
    streams = {name: f if isinstance(f, Stream) else Stream(f) for name, f in (stream or {}).items()}
    if predict_at is not None:
        streams["prediction"] = Stream(prediction(predict_at), quantiles=False)
        until = until and replace(until, names=until.names or ["prediction"])

    make_room()
    devices = Devices(mesh, num_chains, target.num_observations)
    if checkpoint is not None and mesh is not None and mesh.is_multi_process:
        raise ValueError("checkpoint must be None where mesh spans several processes")
    wanted = jax.tree.map(lambda leaf: (num_chains, *leaf.shape), target.template)
    if initial is not None and wanted != (got := jax.tree.map(jnp.shape, initial)):
        raise ValueError(f"initial must have leaves of shapes (num_chains, ...) = {wanted}; got {got}")
    for name in until.names or () if until is not None else ():
        one_of([*collect, *streams], **{"until.names": name})
    if until is not None and until.looks and not collect and not any(f.batches for f in streams.values()):
        raise ValueError("until must have something to look at: collect it, or stream it with batches=True")

    chains = Chains(
        target,
        sampler.prepare(target),
        {name: prepared(function, target) for name, function in collect.items()},
        {name: prepared(stream.function, target) for name, stream in streams.items()},
        {name: stream._replace(function=MOMENTS.function) for name, stream in streams.items()},
        num_positions,
    )
    chains = devices.shard_data(chains)
    keys, carry, draw, potentials = chains.start(
        devices.put(rng_key), devices.put(initial, CHAIN), devices=devices
    )
    potentials = jax.device_get(potentials)
    if not np.isfinite(potentials).all():
        raise ValueError(f"the potential must be finite where the chains start; got {potentials}")
    for name, value in draw[0].items():
        if until is not None and not jnp.isdtype(value.dtype, ("bool", "integral", "real floating")):
            raise TypeError(f"until looks at real numbers; collect[{name!r}] returns {value.dtype}")
    # Nothing in the program knows num_samples: a run that is extended is the same program.
    draw_bytes = sum(leaf.nbytes for leaf in jax.tree.leaves(draw))
    max_draws = max(1, min(MAX_CHUNK_DRAWS, MAX_CHUNK_BYTES // draw_bytes)) if collect else 1
    sizes = {"max_draws": max_draws, "devices": devices}

    kept, before, store = [], 0.0, None
    if checkpoint is not None:
        configuration = {
            "rng_key": f"{jax.random.key_impl(rng_key)} {jax.random.key_data(rng_key)}",
            "num_chains": num_chains,
            "thin": thin,
            "burn_in": burn_in,
            "sampler": {
                jax.tree_util.keystr(path): float(leaf)
                for path, leaf in jax.tree_util.tree_leaves_with_path(sampler)
                if np.ndim(leaf) == 0
            },
            "initial": None if initial is None else digest(initial),
            "position": str(target.template),
            "mesh": None if mesh is None else dict(mesh.shape),
            "collect": {name: f"{value.dtype}{value.shape}" for name, value in draw[0].items()},
            "stream": {
                name: [f"{s.origin.dtype}{s.origin.shape}", s.batches is not None, s.sketch is not None]
                for name, s in carry.streamed.items()
            },
        }
        program = Chains.chunk.lower(chains, keys, carry, draw, *NO_STEPS, **sizes).as_text()
        constants = [np.asarray(leaf) for leaf in jax.tree.leaves(chains)]
        store = Store(checkpoint, identity(configuration, program, constants))
        carry, kept, before = store.restore(carry, draw)
    if (done := int(carry.step)) > total:
        raise ValueError(
            f"num_samples must be at least the {(done - burn_in) // thin} that the checkpoint holds; "
            f"got {num_samples}"
        )

    def num_made(steps):
        return (steps - burn_in) // thin  # below 0 during burn-in

    end = End(until, num_samples, devices)
    state = Kept(carry, kept, before)
    if (stopped := end.reached_by(num_made(done), state, is_interrupted=False)) is None:
        carry, _ = chains.chunk(keys, carry, draw, *NO_STEPS, **sizes)  # compiles
        state = state._replace(carry=carry)

    start = time.perf_counter()
    is_silent = not progress or os.environ.get("TQDM_DISABLE") == "1"  # which tqdm forgets in notebooks
    bar = tqdm(total=total, initial=done, unit="step", disable=is_silent)
    # Threads of a Cholesky factorisation keep turning after it and take the cores from the products that
    # follow: up to n = 2,048 on two cores, a step is faster where LAPACK has one.
    with threadpool_limits(1, user_api="blas"), Interrupts() as interrupts, bar:
        pace = _Pace(bar, done)
        while stopped is None:
            if is_burn_in := pace.steps < burn_in:
                num_draws, num_steps = 1, min(burn_in - pace.steps, pace.steps_per_chunk)
            else:
                most = max_draws if collect else num_samples
                left = end.next_look(num_made(pace.steps)) - num_made(pace.steps)
                num_draws, num_steps = min(left, most, max(1, pace.steps_per_chunk // thin)), thin
            scalars = np.int32(num_draws), np.int32(num_steps), np.bool_(is_burn_in)
            carry, draws = chains.chunk(keys, state.carry, draw, *scalars, **sizes)
            draws = jax.tree.map(lambda leaf: np.array(leaf[:num_draws]), jax.device_get(draws))  # noqa: B023
            if collect and not is_burn_in:
                kept.append(draws)
            pace.update(num_draws * num_steps, draws[1]["acceptance_rate"], is_burn_in)
            pace.steps_per_chunk = devices.agreed(pace.steps_per_chunk)  # clocks differ
            state = Kept(carry, kept, before + time.perf_counter() - start)
            stopped = end.reached_by(num_made(pace.steps), state, is_interrupted=interrupts.heard)
            pace.note = end.note
            if store is not None:
                store.save_if_due(pace.steps, state, is_last=stopped is not None)
    if (num_draws := num_made(pace.steps)) < 1:
        raise end.without_draws(stopped, pace.steps, burn_in)

    streamed, means = on_host(state.carry)
    collected, stats = {}, {name: mean.chain_mean[:, None] for name, mean in means.items()}
    if kept:
        collected, stats = jax.tree.map(lambda *parts: np.moveaxis(np.concatenate(parts), 0, 1), *kept)
    warn_of_failures(
        stats.get("is_accepted", stats["acceptance_rate"]).mean(axis=1),
        num_draws * thin,
        collected | {f"streamed {name}": summary.chain_mean for name, summary in streamed.items()},
    )
    if end.wanted is None and stopped != "interrupted":
        warn_of_disagreement(collected, streamed)
    step_size = state.carry.step_size
    found = None if step_size is None else float(np.exp(np.asarray(step_size.log_average)))
    told = found, thin, burn_in, state.seconds, stopped, end.told(stopped, num_draws)
    positions = None if state.carry.thinned is None else _thinned.on_host(state.carry.thinned)
    return Draws(collected, stats, streamed, state.carry.states.position, *told, positions, target)


@jax.jit
def _predicted(target: Target, positions: PyTree, rng_key: Key[Array, ""], asked: Collector) -> Any:
    """Means (position, m, d_out) and variances, one position after another."""

    def at(position_and_key):
        position, key = position_and_key
        found = asked(target, position, key)
        mean, variance = found if isinstance(found, tuple) else (found, jnp.zeros(len(found), found.dtype))
        return mean, variance.reshape(len(mean), -1)  # one for all outputs, or one for each

    keys = jax.random.split(rng_key, len(jax.tree.leaves(positions)[0]))
    return jax.lax.map(at, (positions, keys))


class _Pace:
    """Moves the bar, and sizes the next chunk so that it moves about twice per second."""

    def __init__(self, bar: tqdm, steps: int):
        self.bar, self.steps, self.steps_per_chunk, self.note = bar, steps, 1, ""
        self.since = time.perf_counter()

    def update(self, num_steps: int, rates: Float[Array | np.ndarray, "..."], is_burn_in: bool) -> None:
        acceptance = float(rates.mean())  # waits for the chunk
        now = time.perf_counter()
        self.steps += num_steps
        self.steps_per_chunk = max(1, round(num_steps * min(10, CHUNK_SECONDS / (now - self.since))))
        self.since = now
        phase = "burn-in" if is_burn_in else "sampling"
        self.bar.set_postfix_str(f"{phase}, acceptance {acceptance:.3f}{self.note}", refresh=False)
        self.bar.update(num_steps)


def _first(position: PyTree) -> PyTree:
    """Of the first chain."""
    return jax.tree.map(lambda leaf: np.asarray(leaf[0]), position)


def _plain(value: Any) -> Any:
    """As JSON has it."""
    return value.tolist() if isinstance(value, np.ndarray) else value


def _by_name(tree: PyTree) -> dict[str, Any]:
    """Leaves by their paths, in their order."""
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree.leaves_with_path(tree)}
