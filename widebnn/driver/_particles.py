"""Sequential Monte Carlo: particles that go from the prior to the posterior, and the evidence besides.

Draws from N(0, I), which is the prior of every target, are reweighted, resampled and moved along
exp(−½‖u‖² − βU(u)) while β goes from 0 to 1. Wide networks have little way to go: U flattens with width
(Hron et al. 2022, Theorem 2.1), and fewer temperatures suffice.

Neal, "Annealed importance sampling", Statistics and Computing 11 (2001); Del Moral, Doucet & Jasra,
"Sequential Monte Carlo samplers", JRSS B 68 (2006).
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Key
from threadpoolctl import threadpool_limits

from widebnn._arrays import NewInputs, Tabular
from widebnn._check import Number, at_least, proper_fraction
from widebnn._compile import make_room, refuse_fork
from widebnn._failures import warn
from widebnn.automatic import auto
from widebnn.collectors import Collector, prediction, prepared, values_of
from widebnn.diagnostics import convergence
from widebnn.driver._devices import Devices, free_bytes
from widebnn.driver._draws import Draws
from widebnn.driver._island import (
    Cloud,
    at_temperature,
    drawn,
    log_mean_weight,
    memory,
    moved,
    next_temperature,
    resampled,
)
from widebnn.driver._loop import loop
from widebnn.driver._plan import check_run
from widebnn.driver.checkpoints import Checkpoint, Snapshot, Store, identity
from widebnn.driver.stopping import MIN_DRAWS
from widebnn.samplers._base import Sampler
from widebnn.samplers._tuned import tuned
from widebnn.targets._base import Target

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Particles", "smc"]

MEMORY = 0.2
"""Correlation with what they were, up to which particles count as moved, beside its error 1/√N."""
MAX_MOVES = 32
"""Moves at one temperature."""
PILOT = 0
"""The island that finds temperatures, step sizes and numbers of moves, and of which nothing else is kept."""
COPIES = 8
"""Positions that a particle takes while it moves: its own, gradient, momentum, proposal and theirs."""
MAX_RHAT = 1.1
MAX_F = 8.0
"""Variance between islands, over what independent draws have, from which they disagree: one case in 10⁷."""
MAX_SPREAD = 1.0
"""Standard deviation of the islands' log evidences, in nats, up to which a mean of evidences says much."""


class Moves(NamedTuple):
    """How particles are moved at one temperature."""

    step_size: float  # NaN where there is none
    number: int
    memory: float  # what was left of where they were; NaN where it was not looked at


class Step(NamedTuple):
    """One temperature of one island: what the evidence and the other islands need of it."""

    island: Any
    number: Any  # of the temperature, from 0
    beta: Any
    step_size: Any
    num_moves: Any
    memory: Any
    log_mean_weight: Any
    mean_potential: Any  # before the weights, at the temperature before
    num_invalid: Any  # particles whose potential is NaN
    acceptance_rate: Any


class State(NamedTuple):
    """What a run is resumed from, beside its steps."""

    cloud: Cloud
    finished: Cloud  # of the islands that have reached β = 1, on the host


@dataclass(frozen=True, eq=False, kw_only=True)
class Particles(Draws):
    """What `smc` returns: the particles of each island as the draws of a chain, and the evidence.

    Its `summary`, `predict`, `to_datatree`, `save` and `load` are those of `widebnn.Draws`. $R̂$ compares
    islands. All particles count alike: means over them have a bias of order $1/N$ in the number of particles
    of an island, which more islands do not remove. Particles that descend from one draw of the prior lie side
    by side, so that an effective sample size counts what they still have in common.

    Attributes
    ----------
    temperatures
        $β$ of each temperature; the last one is 1.
    step_sizes, num_moves, acceptance_rates
        Step size (NaN where nothing is tuned), number of moves and mean acceptance rate at each.
    log_evidences
        $log Ẑ$ of each island, with `log_normaliser` where the target has one: $Ẑ$ is then an estimate of
        $p(y | X)$, and else of $E exp(−U)$ over $N(0, I)$.
    bounds
        $−E U$ over the prior and over the posterior, each less `log_normaliser`: $log Z$ lies between them
        (Jensen), and they are as far apart as the sum of both Kullback–Leibler divergences.
    num_ancestors
        Of each island, how many of its draws from the prior have descendants at the end.
    """

    temperatures: Any
    step_sizes: Any
    num_moves: Any
    acceptance_rates: Any
    log_evidences: Any
    bounds: Any
    num_ancestors: Any

    _told: ClassVar[tuple[str, ...]] = (
        *Draws._told,
        *("temperatures", "step_sizes", "num_moves", "acceptance_rates"),
        *("log_evidences", "bounds", "num_ancestors"),
    )

    def __post_init__(self):
        for name in self._told[len(Draws._told) :]:
            object.__setattr__(self, name, np.asarray(getattr(self, name)))  # a list where it was loaded

    @property
    def log_evidence(self) -> float:
        """$log Ẑ$, with $Ẑ$ the mean over all islands, in nats."""
        return float(_log_mean(self.log_evidences))

    @property
    def log_evidence_error(self) -> float:
        """Standard error of `log_evidence` by the jackknife over islands; NaN where there is one.

        Of four islands it is known to about 40 % of its size: see `log_evidence_interval`.
        """
        count = len(self.log_evidences)
        without = [_log_mean(np.delete(self.log_evidences, i)) for i in range(count)] if count > 1 else []
        return float(np.std(without) * math.sqrt(count - 1)) if without else math.nan

    def log_evidence_interval(self, level: float = 0.95) -> tuple[float, float]:
        """The interval that holds $log Z$ in a share `level` of runs, by Student's t over the islands.

        It takes $Ẑ$ of an island for nearly normal: where the standard deviation of `log_evidences` exceeds
        half a nat, take more particles.
        """
        from scipy.stats import t  # a second, which only those pay who ask

        reach = t.ppf((1 + proper_fraction(level=level)) / 2, len(self.log_evidences) - 1)
        half = float(reach) * self.log_evidence_error
        return self.log_evidence - half, self.log_evidence + half

    def summary(self) -> "DataFrame":
        """A table of what was collected, as of `widebnn.Draws`; its corner tells of the evidence."""
        table = super().summary()
        islands, particles = self.stats["acceptance_rate"].shape
        table.columns.name = (
            f"{islands} islands of {particles} particles, {len(self.temperatures)} temperatures, "
            f"log Z {self.log_evidence:.2f} ± {self.log_evidence_error:.2f}, {self.seconds:.1f} s"
        )
        return table


def smc(
    rng_key: Key[Array, ""],
    target: Target,
    sampler: Sampler | tuned | None = None,
    *,
    num_particles: int = 64,
    num_islands: int = 4,
    ess: Number = 0.7,
    temperatures: Sequence[float] | Float[np.ndarray, " temperature"] | None = None,
    predict_at: NewInputs | Tabular | None = None,
    collect: Mapping[str, Collector] | None = None,
    checkpoint: Checkpoint | None = None,
    mesh: Mesh | None = None,
    progress: bool = True,
) -> Particles:
    """Particles from $N(0, I)$ to the posterior by sequential Monte Carlo, and the evidence.

    A target and a key are enough::

        run = wb.smc(jax.random.key(0), posterior)
        run.log_evidence, run.log_evidence_error
        run.predict(x_new)

    Exact draws from $N(0, I)$ go along $exp(−½‖u‖² − βU(u))$ from $β = 0$ to 1. At each temperature they are
    weighted by $exp(−(β′ − β)U)$, resampled systematically by these weights, and moved by a kernel that
    leaves the new density where it is. The product of the mean weights is $Ẑ$, an estimate of
    $Z = E exp(−U)$ (Del Moral, Doucet & Jasra 2006). Repriorisation makes the way short: the wider the
    network, the fewer temperatures (Hron et al. 2022, Theorem 2.1). Of a very wide one $β = 1$ is the first,
    and this is plain importance sampling from the prior, followed by moves.

    A pilot island finds the temperatures, the step size of each and the number of moves, and is then thrown
    away. The `num_islands` others keep what it found, so that nothing in them adapts, and $E Ẑ = Z$ exactly,
    given any pilot: on the scale of $Z$. The logarithm is low by half the relative variance of $Ẑ$. The
    islands are independent runs: from their spread come `Particles.log_evidence_error` and $R̂$.

    Rules of the pilot. The next $β$ is the one at which the weights leave a share `ess` of effective
    particles, found by bisection. Moves are made until the correlation, over particles, of the potential with
    what it was right after resampling, and that of the coordinates of every leaf of the positions, have
    fallen to $0.2 + 1/√N$; at most 32. A step size in `widebnn.samplers.tuned` is changed after each move
    towards the acceptance rate that is wanted; the islands take the one that came closest.

    Without a sampler, coordinates and kernel are those of `widebnn.automatic.auto`: function-space HMC, whose
    angle grows to a quarter turn where $U$ is flat, so that a move is an independent draw; or the unit-wise
    sampler, of which the tempered kernel is exact too. The scales of `widebnn.targets.scaled` start at their
    posterior in the limit of infinite width, where it is known, whose density relative to the prior is part
    of $U$: posterior and evidence are the same.

    Chains by `widebnn.sample` remain for long runs and large networks, of which many positions do not fit,
    and where the way is long: the number of temperatures grows with the standard deviation of $U$ under the
    prior.

    Parameters
    ----------
    rng_key
        Seed for all randomness.
    target
        Target to sample.
    sampler
        One of `widebnn.samplers` that needs no more of the target than its potential, or `unitwise`; its step
        size is tuned by the pilot where it is in `widebnn.samplers.tuned`.
    num_particles
        Particles of each island.
    num_islands
        Number of independent islands, run one after another.
    ess
        In (0, 1): the share of effective particles that a temperature leaves. More means smaller steps.
    temperatures
        $β$ of each temperature, increasing to 1; found by the pilot unless given.
    predict_at
        New inputs. The mean of an observation there, or a classifier's probabilities, is collected as
        "prediction".
    collect
        A dict of collectors, functions of `(target, position, rng_key)` such as those of
        `widebnn.collectors`, which are evaluated at the particles at the end. The potential is always among
        what is collected.
    checkpoint
        File where the run is saved between temperatures, and from which the next call resumes it, with the
        same bits; ``every_steps`` of it counts temperatures. A larger `num_islands` extends the run.
    mesh
        Devices to run on: particles are split along the axis "chain", observations along "data".
    progress
        Whether to show a progress bar, in a terminal or a notebook.

    Raises
    ------
    ValueError
        If particles do not fit into memory, no draw from the prior has a finite potential, or the checkpoint
        holds another or a longer run.
    OSError
        If a checkpoint cannot be written; the one before is kept.
    KeyboardInterrupt
        If Ctrl-C is pressed before one island has arrived; afterwards the finished islands are returned.

    Warns
    -----
    ChainWarning
        If islands disagree, by an $R̂$ above 1.1 or log evidences more than a nat apart (in standard
        deviation), particles had not lost their memory after 32 moves, potentials or what was collected are
        NaN, or the run was interrupted.
    """
    refuse_fork()
    check_run(rng_key, target, sampler, checkpoint, collect=collect)
    at_least(2, num_particles=num_particles)
    at_least(1, num_islands=num_islands)
    proper_fraction(ess=ess)
    wanted = None if temperatures is None else _increasing(temperatures)
    if sampler is None:
        target, sampler, reason = auto(target)
        if progress:
            print(reason)
    functions = dict(collect or {}) | ({} if predict_at is None else {"prediction": prediction(predict_at)})
    functions = {name: prepared(function, target) for name, function in functions.items()}

    make_room()
    devices = Devices.of(target, mesh, num_particles)
    walk = Walk.of(rng_key, target, sampler, devices, ess, wanted)
    check_memory(target, num_particles, num_islands)
    if functions:  # errors in them come before the work
        one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((1, *leaf.shape), leaf.dtype), target.template)
        jax.eval_shape(_at_particles, walk.target, functions, walk.rng_key, one)
    snapshot, store = Snapshot(walk.start(), [], 0.0), None
    if checkpoint is not None:
        store = Store(checkpoint, walk.identity(snapshot.carry.cloud))
        snapshot = store.restore(snapshot.carry, Step(*[0.0] * len(Step._fields)))
    steps = [Step(*row) for table in snapshot.draws for row in zip(*table)]
    if steps and (made := int(steps[-1].island)) > num_islands:
        raise ValueError(f"num_islands must be at least the {made} of the checkpoint; got {num_islands}")
    since = time.perf_counter() - snapshot.seconds

    def advance(state):
        state, step = walk.step(next_place(steps), state, steps)
        steps.append(step)
        return state, 1, _note(step, num_islands)

    def ended(state, number, is_interrupted):
        stopped = "interrupted" if is_interrupted else None
        stopped = "num_samples" if next_place(steps)[0] > num_islands else stopped
        if store is not None:
            table = Step(*np.array(steps, np.float64).T)
            snapshot = Snapshot(state, [table], time.perf_counter() - since)
            store.save_if_due(number, snapshot, is_last=stopped is not None)
        return stopped

    state, stopped = snapshot.carry, "num_samples"
    if next_place(steps)[0] <= num_islands:
        # Threads of a Cholesky factorisation keep turning after it and take the cores from what follows.
        with threadpool_limits(1, user_api="blas"):
            state, _, stopped = loop(
                advance,
                ended,
                state,
                len(steps),
                total=None,  # as many temperatures as the pilot finds
                unit="temperature",
                progress=progress,
            )
    if not (num_finished := len(state.finished.potentials)):
        raise KeyboardInterrupt("interrupted before the first island had arrived")
    if stopped == "interrupted":
        warn(f"the run was interrupted after {num_finished} of {num_islands} islands, which are returned")
    return _result(walk, functions, state.finished, steps, time.perf_counter() - since, stopped)


@dataclass(frozen=True, eq=False)
class Walk:
    """What is the same at all temperatures of all islands."""

    rng_key: Key[Array, ""]
    target: Target
    sampler: Sampler | tuned
    devices: Devices
    ess: Number
    temperatures: np.ndarray | None

    @classmethod
    def of(cls, rng_key, target, sampler, devices, ess, temperatures) -> "Walk":
        kernel = sampler.sampler if isinstance(sampler, tuned) else sampler
        tempered, _ = at_temperature(target, kernel, 1.0)
        try:
            prepared = kernel.prepare(tempered)
        except TypeError as error:
            if tempered is target:
                raise
            raise TypeError(
                "sampler must need no more of the target than its potential, which is tempered; "
                f"got {type(kernel).__name__}"
            ) from error
        sampler = replace(sampler, sampler=prepared) if isinstance(sampler, tuned) else prepared
        target, sampler = devices.shard_data((target, sampler))
        return cls(devices.put(rng_key), target, sampler, devices, ess, temperatures)

    def start(self) -> State:
        """Before the first temperature of the pilot; it compiles."""
        cloud = self._drawn(PILOT)
        if not np.isfinite(np.asarray(cloud.potentials)).any():
            raise ValueError("the potential must be finite at draws from N(0, I); it is so at none")
        moved(*self._arguments(0.5, self._first_step_size, (PILOT, 0), cloud, self._all, 0))
        return State(cloud, jax.tree.map(lambda leaf: np.empty((0, *leaf.shape), leaf.dtype), cloud))

    def step(self, place: tuple[int, int], state: State, steps: list[Step]) -> tuple[State, Step]:
        """Weights, resampling and moves at one temperature."""
        (island, number), (cloud, finished) = place, state
        if number == 0:
            cloud, before, step_size = self._drawn(island), 0.0, self._first_step_size
        else:
            before, step_size = steps[-1].beta, steps[-1].step_size
        potentials = np.asarray(cloud.potentials, np.float64)
        invalid = np.isnan(potentials)
        potentials = np.where(invalid, np.inf, potentials)
        if island != PILOT:
            beta = steps[number].beta  # of the pilot, whose steps come first
        elif self.temperatures is None:
            beta = next_temperature(potentials, before, float(self.ess))
        else:
            beta = float(self.temperatures[number])
        chosen = resampled(potentials, beta - before, self._uniform(place))
        if island == PILOT:
            cloud, moves = self._settled(beta, step_size, number, cloud, chosen)
        else:
            moves = Moves(steps[number].step_size, int(steps[number].num_moves), math.nan)
            at = island, number + 1
            cloud = moved(*self._arguments(beta, moves.step_size, at, cloud, chosen, moves.number))
        rate = float(np.mean(cloud.acceptance_rates))
        mean_weight = log_mean_weight(potentials, beta - before)
        told = island, number, beta, *moves, mean_weight, potentials.mean(), invalid.sum(), rate
        if island != PILOT and beta == 1:
            arrived = jax.tree.map(lambda leaf: np.asarray(leaf)[None], cloud)
            finished = jax.tree.map(lambda *parts: np.concatenate(parts), finished, arrived)
        return State(cloud, finished), Step(*map(float, told))

    def _settled(self, beta, step_size, number, cloud, chosen):
        """The pilot's particles after as many moves as it takes, and what they took."""
        origin = jax.tree.map(lambda leaf: np.asarray(leaf)[chosen], cloud)
        tried, reached = [], math.inf
        while reached > self.least_memory and len(tried) < MAX_MOVES:
            at, chosen = (PILOT, number + 1, len(tried)), self._all if tried else chosen
            cloud = moved(*self._arguments(beta, step_size, at, cloud, chosen, 1))
            reached, rate = memory(origin, cloud), float(np.mean(cloud.acceptance_rates))
            tried.append((abs(rate - self._goal), step_size))
            step_size = self._tuned_step_size(step_size, rate, len(tried))
        return cloud, Moves(min(tried)[1], len(tried), reached)

    def _drawn(self, island: int) -> Cloud:
        return drawn(self.target, self.rng_key, (island, 0), self.devices)

    @property
    def _goal(self) -> float:
        """Acceptance rate that is wanted."""
        return float(self.sampler.target_acceptance) if isinstance(self.sampler, tuned) else math.nan

    def _tuned_step_size(self, step_size, rate, number):
        """As `tuned` does during burn-in, afresh at each temperature."""
        if not isinstance(self.sampler, tuned):
            return step_size
        change = number**-0.6 * (rate - self._goal) / (self._goal * (1 - self._goal))
        largest = float(self.sampler.max_step_size)
        return min(step_size * math.exp(min(max(change, -1.0), 1.0)), largest)

    @property
    def least_memory(self) -> float:
        """Correlation up to which particles count as moved."""
        return MEMORY + 1 / math.sqrt(self.devices.num_chains)

    @property
    def _first_step_size(self) -> float:
        return float(self.sampler.step_size) if isinstance(self.sampler, tuned) else math.nan

    @property
    def _all(self) -> np.ndarray:
        return np.arange(self.devices.num_chains, dtype=np.int32)

    def _uniform(self, place: tuple[int, int]) -> float:
        seed = np.asarray(jax.random.key_data(self.rng_key)).ravel().tolist()
        return float(np.random.default_rng([*seed, *place]).random())

    def _arguments(self, beta, step_size, at, cloud, chosen, num_moves):
        sampler = self.sampler.at(step_size) if isinstance(self.sampler, tuned) else self.sampler
        at = (*at, 0)[:3]
        return self.target, sampler, float(beta), self.rng_key, at, cloud, chosen, num_moves, self.devices

    def identity(self, cloud: Cloud) -> dict[str, Any]:
        """What must be the same for a run to go on."""
        configuration = {
            "rng_key": f"{jax.random.key_impl(self.rng_key)} {jax.random.key_data(self.rng_key)}",
            "num_particles": self.devices.num_chains,
            "ess": float(self.ess),
            "temperatures": None if self.temperatures is None else self.temperatures.tolist(),
            "position": str(self.target.template),
        }
        arguments = self._arguments(0.5, self._first_step_size, (PILOT, 0), cloud, self._all, 0)
        return identity(configuration, moved.lower(*arguments).as_text(), (self.target, self.sampler))


def next_place(steps: list[Step]) -> tuple[int, int]:
    """Island and number of the temperature that comes next."""
    if not steps:
        return PILOT, 0
    island, number = int(steps[-1].island), int(steps[-1].number)
    return (island + 1, 0) if steps[-1].beta == 1 else (island, number + 1)


def check_memory(target: Target, num_particles: int, num_islands: int) -> None:
    """See that the positions of all islands fit, beside what one island takes while it moves."""
    position = sum(math.prod(x.shape) * x.dtype.itemsize for x in jax.tree.leaves(target.template))
    size, room = position * (num_islands + COPIES), free_bytes()
    if num_particles * size > room:
        raise ValueError(
            f"num_particles must be at most {int(room // size):,}: {num_particles:,} in each of "
            f"{num_islands} islands take {num_particles * size / 2**30:.3g} GiB, and {room / 2**30:.3g} are "
            "free; widebnn.sample keeps none of its positions"
        )


def _result(walk, functions, finished, steps, seconds, stopped) -> Particles:
    positions, target = finished.positions, walk.target
    collected = {"potential": finished.potentials}
    if functions:
        shape = finished.potentials.shape
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), positions)
        found = jax.device_get(_at_particles(target, functions, walk.rng_key, flat))
        collected |= jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), found)
    count = next(number for number, step in enumerate(steps, 1) if step.beta == 1)
    pilot, *islands = (steps[i : i + count] for i in range(0, len(steps) - count + 1, count))
    normaliser = float(getattr(target, "log_normaliser", lambda: 0.0)())
    log_evidences = np.array([sum(step.log_mean_weight for step in island) for island in islands])
    bounds = -np.mean([island[0].mean_potential for island in islands]), -finished.potentials.mean()
    run = Particles(
        collected=collected,
        stats={"acceptance_rate": finished.acceptance_rates},
        streamed={},
        position=jax.tree.map(lambda leaf: jnp.asarray(leaf[:, -1]), positions),
        step_size=pilot[-1].step_size if isinstance(walk.sampler, tuned) else None,
        thin=1,
        burn_in=0,
        seconds=seconds,
        stopped=stopped,
        reason=f"{len(islands)} islands at β = 1, by {len(pilot)} temperatures",
        positions=positions,
        target=target,
        temperatures=[step.beta for step in pilot],
        step_sizes=[step.step_size for step in pilot],
        num_moves=[int(step.num_moves) for step in pilot],
        acceptance_rates=np.mean([[step.acceptance_rate for step in island] for island in islands], axis=0),
        log_evidences=log_evidences - normaliser,
        bounds=np.asarray(bounds, np.float64) - normaliser,
        num_ancestors=[len(np.unique(ancestors)) for ancestors in finished.ancestors],
    )
    _warn(run, walk, steps)
    return run


def _warn(run: Particles, walk: Walk, steps: list[Step]) -> None:
    islands, particles = run.stats["acceptance_rate"].shape
    if num_invalid := sum(int(step.num_invalid) for step in steps):
        warn(f"the potential is NaN at {num_invalid} particles, which count as impossible")
    if undefined := [name for name, values in run.collected.items() if np.isnan(values).any()]:
        warn(f"values of {', '.join(map(repr, undefined))} are NaN at some particles")
    stuck = [step.beta for step in steps if step.memory > walk.least_memory]
    if stuck:
        warn(
            f"at β = {', '.join(f'{beta:.2g}' for beta in stuck)} particles had not moved away from where "
            f"they were after {MAX_MOVES} moves: take a sampler that mixes better"
        )
    if islands > 1 and (spread := float(np.std(run.log_evidences, ddof=1))) > MAX_SPREAD:
        warn(
            f"log evidences of the islands spread by {spread:.1f} nats: take more particles, or a larger ess"
        )
    if islands == 1 or particles < MIN_DRAWS:
        return
    limit = max(MAX_RHAT, math.sqrt(1 + 2 * (MAX_F - 1) / particles))
    for name, values in run.collected.items():
        known = values.size > 0 and values.dtype.kind == "f" and np.isfinite(values).all()
        worst = np.nan_to_num(convergence(values).rhat).max() if known else 0.0
        if worst > limit:
            warn(f"islands disagree on {name!r} (R̂ of {worst:.2f}): take more particles, or a larger ess")


@jax.jit
def _at_particles(target, functions, rng_key, positions):
    """Values of the functions at each."""

    def at(inputs):
        position, key = inputs
        return values_of("collect", functions, target, position, key)

    keys = jax.random.split(jax.random.fold_in(rng_key, 2**31), len(jax.tree.leaves(positions)[0]))
    return jax.lax.map(at, (positions, keys))


def _log_mean(log_values: np.ndarray) -> float:
    """log of the mean of the exponentials."""
    highest = log_values.max()
    return highest + np.log(np.exp(log_values - highest).mean()) if np.isfinite(highest) else highest


def _increasing(temperatures: Any) -> np.ndarray:
    values = np.asarray(temperatures)
    if values.dtype.kind not in "if" or values.ndim != 1:
        raise TypeError(f"temperatures must be numbers, one for each temperature; got {temperatures!r}")
    values = values.astype(np.float64)
    if not len(values) or values[-1] != 1 or not (np.diff(values, prepend=0.0) > 0).all():
        raise ValueError(f"temperatures must increase from above 0 to 1; got {temperatures!r}")
    return values


def _note(step: Step, num_islands: int) -> str:
    """For the progress bar."""
    who = "pilot" if step.island == PILOT else f"island {step.island:.0f} of {num_islands}"
    return f"{who}, β = {step.beta:.2g}, {step.num_moves:.0f} moves, acceptance {step.acceptance_rate:.2f}"
