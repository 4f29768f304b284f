"""Two engines, one measured choice: particles where the way to the posterior is short, else chains.

How long the way is, a sweep over draws from the start tells: the standard deviation of the potential there.
Both engines move weights and scales together, as `auto` says. Either ends when the answer stands: when chains
or islands agree on what is predicted, and their first halves with their second. What their scales do, no
prediction needs to know.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from widebnn import targets
from widebnn._failures import ChainWarning, warn
from widebnn._pytree import pytree
from widebnn.automatic import auto
from widebnn.collectors import predictive_mean, predictive_moments, predictive_variance
from widebnn.driver import Draws, sample
from widebnn.driver._devices import Devices
from widebnn.driver._island import drawn
from widebnn.driver._particles import smc
from widebnn.driver.stopping import Until
from widebnn.estimators._draws import quantile

__all__ = ["Answer", "Moments", "error_of_interval", "error_of_probabilities", "near_medians", "run"]

SHORT_WAY = 10.0
"""Deviation of the potential at the start, in nats, up to which particles tell the evidence in some seconds.

Chains tell none and take less: on 300 rows of Friedman's third table with 64 units (10 to 20 nats, nine
temperatures) 2 s of processor time where particles take 22.
"""
NUM_PARTICLES, MAX_PARTICLES = 16, 128
"""Of each island, doubled until the answer stands."""
NEAR = 0.6
"""Deviation of the scales' coordinates at the start where no limit is known.

On 50 rows of diabetes with 64 units predictions have 510 effective samples per processor second here, 490 at
0.3 and 310 at 1; the scales have 93, 22 and 176.
"""
TAIL = 0.05
"""On either side of the interval whose ends are looked at."""

Values = Float64[np.ndarray, "chain draw row of"]


@pytree
@dataclass(frozen=True, eq=False)
class Moments:
    """Collects mean and deviation of an observation at each row, (row, 2).

    Where the noise varies, its deviations are given in units of σ, which is 1 unless it is learned.
    """

    rows: Any
    noise: Any = None

    def __call__(self, target: Any, position: Any, rng_key: Any = None) -> Any:
        if self.noise is None:
            mean, variance = predictive_moments(self.rows)(target, position, rng_key)
        else:
            mean = predictive_mean(self.rows)(target, position, rng_key)
            noise = self.noise * target.scales(position).get("noise_std", 1.0)
            variance = (
                predictive_variance(self.rows)(target, position, rng_key) + noise.astype(mean.dtype) ** 2
            )
        return jnp.stack([mean[:, 0], jnp.sqrt(variance.reshape(len(mean)))], axis=1)


def error_of_interval(values: Values) -> float:
    """Monte Carlo error of the ends of the 90 % interval, in half widths, by the disagreement of chains.

    A chain's draws are a mixture of Gaussians at each row, of which `values` hold mean and deviation. The
    mean square over rows and ends is taken, since three degrees of freedom of four chains tell little alone.
    """
    means, stds = np.moveaxis(values, -1, 0)
    ends = np.array([[quantile(q, *both) for q in (TAIL, 1 - TAIL)] for both in zip(means, stds)])
    half = np.diff(ends.mean(axis=0), axis=0) / 2
    return math.sqrt(np.mean(ends.var(axis=0, ddof=1) / len(ends) / half**2))


def error_of_probabilities(values: Values) -> float:
    """Monte Carlo error of all classes' probabilities together, the root of the mean square over rows."""
    p = values.mean(axis=1)
    return math.sqrt(np.mean(np.sum(p.var(axis=0, ddof=1), axis=-1)) / len(p))


@dataclass(frozen=True)
class Answer(Until):
    """Looks at predictions alone: a run ends when their Monte Carlo error is small."""

    first_look: ClassVar[int] = 16

    error: Callable[[Values], float] = error_of_interval
    largest: float = 0.05
    unit: str = "half the width of a predictive interval"

    def __post_init__(self):
        object.__setattr__(self, "names", ("predictions",))

    @property
    def looks(self) -> bool:
        return True

    def watch(self) -> Any:
        return self

    def look(self, draws: Sequence[Mapping[str, Any]], streamed: Any, *, everywhere: bool) -> "Reached":
        if not draws:
            return Reached(math.inf)
        values = np.concatenate([part["predictions"] for part in draws]).swapaxes(0, 1)
        return Reached(self.of_draws(values))

    def of_draws(self, values: np.ndarray) -> float:
        """The error of (chain, draw, row, of), of those draws at which all chains predict."""
        values = values[:, np.isfinite(values).all(axis=(0, 2, 3))].astype(np.float64)
        if (num_draws := values.shape[1]) < 2:
            return self.error(values) if num_draws and len(values) > 1 else math.inf
        halves = np.stack(np.split(values[:, num_draws % 2 :], 2, axis=1))
        # A way that all chains go together shows in their halves alone, which differ by twice the error.
        by_halves = self.error(halves.reshape(2, -1, *values.shape[2:]))
        return by_halves if len(values) == 1 else max(self.error(values), by_halves)

    def is_met(self, reached: Any) -> bool:
        return reached.error <= self.largest

    def __str__(self) -> str:
        return f"a Monte Carlo error of at most {self.largest:.0%} of {self.unit}"


class Reached(NamedTuple):
    """By the draws so far."""

    error: float

    @property
    def note(self) -> str:
        return f"error {self.error:.1%}"

    def __str__(self) -> str:
        return f"Monte Carlo error {self.error:.1%}"


def run(
    rng_key: Any,
    posterior: targets.Scaled,
    *,
    starts_at_limit: bool,
    until: Until | None,
    answer: Answer,
    collect: Mapping[str, Any],
    num_chains: int,
    progress: bool,
    tells_evidence: bool = False,
    **options: Any,
) -> Draws:
    """Draws of the posterior from N(0, I); `options` are those of chains.

    Particles are taken, however long the way, where the run has to tell the evidence.

    Raises
    ------
    FloatingPointError
        If the potential is finite at no start.
    """
    sampler = auto(posterior).sampler
    sweep_key, run_key = jax.random.split(rng_key)
    devices = Devices.of(posterior, None, NUM_PARTICLES)
    cloud = drawn(posterior, sweep_key, (0, 0), devices)
    potentials = np.asarray(cloud.potentials, np.float64)
    (found,) = np.nonzero(np.isfinite(potentials))
    if not len(found):
        raise FloatingPointError(
            "the potential is finite at no start: hold the scales in a narrower range by `scales`"
        )
    deviation = float(potentials[found].std()) if len(found) == len(potentials) else math.inf
    is_short = starts_at_limit and deviation <= SHORT_WAY
    if tells_evidence or (is_short and until is None):
        engine = "particles"
        draws = _particles(run_key, posterior, sampler, answer, collect, num_chains, progress)
    else:
        chosen = found[np.arange(num_chains) % len(found)]
        initial = jax.tree.map(lambda leaf: np.asarray(leaf)[chosen], cloud.positions)
        engine = "chains"
        draws = sample(
            run_key,
            posterior,
            sampler,
            num_chains=num_chains,
            until=answer
            if until is None
            else replace(until, names=[name for name in collect if name != "positions"]),
            initial=initial,
            collect=collect,
            progress=progress,
            **options,
        )
    if progress:
        print(
            f"{engine}, since the potential has a deviation of {deviation:.3g} nats at the start; "
            f"{Reached(answer.of_draws(draws['predictions']))} of {answer.unit}"
        )
    return draws


def _particles(rng_key, posterior, sampler, answer, collect, num_islands, progress) -> Draws:
    number = NUM_PARTICLES
    collect = {name: function for name, function in collect.items() if name != "positions"}
    options = {"num_islands": num_islands, "collect": collect, "progress": progress}
    while True:
        with warnings.catch_warnings():  # of scales, of which no prediction needs to know
            warnings.filterwarnings("ignore", "islands disagree", ChainWarning)
            draws = smc(rng_key, posterior, sampler, num_particles=number, **options)
        reached = Reached(answer.of_draws(draws["predictions"]))
        if (is_met := answer.is_met(reached)) or number >= MAX_PARTICLES:
            break
        number *= 2
    if not is_met:
        warn(f"the fit ended with {number} particles of each island without {answer}; {reached}")
    shape = draws["potential"].shape  # of islands that finished
    leaves = [np.asarray(leaf).reshape(*shape, -1) for leaf in jax.tree.leaves(draws.positions)]
    collected = draws.collected | {"positions": np.concatenate(leaves, axis=-1)}
    return replace(draws, collected=collected, stopped="converged" if is_met else "num_samples")


def near_medians(posterior: targets.Scaled) -> targets.Gaussian:
    """Of the scales, where no limit is known."""
    shapes = posterior.template.scales
    medians = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
    size, dtype = sum(leaf.size for leaf in medians.values()), jax.tree.leaves(posterior.template)[0].dtype
    factor: Any = NEAR * np.eye(size, dtype=dtype)
    return targets.Gaussian(medians, factor)
