"""Effective samples per second: samplers of ours and of others, on one posterior, in one run.

An effective sample size is the least over the potential, 100 random projections of the rotated weights below
the readout, and Rao–Blackwellised predictions for test images. Chains in several hidden layers move on
whitened ones or on weights; there it is the least over the potential and ten entries of ΨΨᵀ, which are the
same functions of the network for both.

It is estimated from chains that begin in the posterior, whose draws cost nothing here: how many steps an
effective sample takes does not depend on the machine. The milliseconds of a step are timed apart, of all
samplers in turn, without collecting anything and on one chain.

The papers' pCN and Langevin chains have in law the informed part that ours have (`benchmarks.paper_lmc`), and
are followed there; what is timed is their own step.
"""

import copy
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

import widebnn as wb
from benchmarks.paper_lmc import lmc_steps
from benchmarks.paper_pcn import pcn_steps
from benchmarks.steps import informed_target, marginal_target, network, python_steps, repeated
from benchmarks.tuning import Candidate, Choice, tune
from book.experiments.blackjax_samplers import BLACKJAX as ADAPTATIONS
from book.experiments.blackjax_samplers import Adaptation, windows
from book.experiments.chain_summaries import jackknife
from book.experiments.clock import in_turn, on_one_thread, steps
from book.experiments.efficiency import least as least_ess
from book.experiments.rivals import CONTENDERS, watched
from widebnn.samplers import Tuned, tuned
from widebnn.targets._rotated import Rotated
from widebnn.targets._whitened import Whitened

__all__ = [
    "BLACKJAX",
    "ON_WEIGHTS",
    "OURS",
    "PAPERS",
    "PCN",
    "SAMPLERS",
    "Clock",
    "Efficiency",
    "Mixing",
    "Posterior",
    "least_ess",
    "median_times",
    "mixing",
    "paper_pcn",
    "size",
]

NUM_CHAINS = 4
MAX_DRAWS = 500
"""Draws that are kept of a chain; longer runs are thinned."""
ENOUGH = 200.0
"""Effective samples, of all chains, at which a run is long enough. A chain that is not much longer than its
correlations looks better than it is."""
MAX_SECONDS = 500.0
"""Of a run, at which it ends all the same."""
TUNING_SECONDS = 10.0
NUM_SWEEPS = 50
ADAPTATION_STEPS = 150
ROUNDS = 5

Clock = Callable[[int], Callable[[], float]]
"""From a number of steps to a function that makes them and returns the milliseconds of one."""


class Mixing(NamedTuple):
    """How a sampler mixes. `error` is of `ess_per_step`, a standard error over chains (jackknife)."""

    sampler: str
    width: int
    depth: int
    setting: str
    step_size: float | None
    acceptance: float
    num_steps: int
    ess: float
    ess_per_step: float
    error: float
    worst: str


class Efficiency(NamedTuple):
    """What a sampler achieves."""

    mixing: Mixing
    ms_per_step: float

    @property
    def ess_per_second(self) -> float:
        """Effective samples per second."""
        return 1e3 * self.mixing.ess_per_step / self.ms_per_step

    def row(self) -> dict[str, Any]:
        """All of it, by name."""
        times = {"ms_per_step": self.ms_per_step, "ess_per_second": self.ess_per_second}
        return self.mixing._asdict() | times


class Method(NamedTuple):
    """A sampler that is ready to run, how it was set, and how its steps are timed."""

    sampler: Any
    setting: str
    step_size: float | None
    clock: Clock


def size(width: int, depth: int) -> str:
    """A network's in the name of a row: 1024, and 1024x2 where there are two hidden layers."""
    return f"{width}" if depth == 1 else f"{width}x{depth}"


class Posterior:
    """The posterior of one network, chains in it, and the functions whose effective samples count.

    One hidden layer burns in by sweeps over its units, several by function-space HMC.
    """

    def __init__(self, data: wb.data.Dataset, width: int, depth: int = 1, num_projections: int = 100):
        self.data, self.width, self.depth = data, width, depth
        self.bnn = network(data, width, depth)
        keys = jax.random.split(jax.random.key(width), 3)
        self.rng_key = keys[2]
        if depth == 1:
            self.target = target = informed_target(data, width)
            seen = data.x_test @ target.basis @ target.basis.T  # what a chain alone determines
            self.collect = {
                "potential": target.potential,
                "weights": wb.random_projections(keys[0], target.template, num_projections),
                "predictions": target.predictive_mean(np.asarray(seen, data.x_test.dtype)),
            }
            tuning = {"weights": wb.random_projections(jax.random.key(0), target.template, 10)}
            self.tuned_by = {"potential": target.potential} | tuning
            sampler, burn_in = wb.samplers.unitwise(target), NUM_SWEEPS
        else:
            self.target = wb.targets.whitened(marginal_target(data, width, depth))
            self.collect = self.tuned_by = watched(self.target)
            adapted = RADIAN.adaptation.adapt(self.target, self.target.draw_prior(keys[1]), keys[0])
            sampler, burn_in = adapted.sampler, RADIAN.burn_in
        burnt_in = partial(wb.sample, keys[1], sampler, self.target, num_samples=1, burn_in=burn_in)
        self.positions = burnt_in(num_chains=NUM_CHAINS, progress=False).position
        with on_one_thread():
            self.ms_potential = repeated(self.target.potential, self.first(None), 50)()

    def on_weights(self) -> "Posterior":
        """The same chains and functions of the same networks, where chains move on weights."""
        assert isinstance(self.target, Whitened)
        keys = jax.random.split(self.rng_key, NUM_CHAINS)
        other = copy.copy(self)
        other.target = self.target.weights
        other.positions = jax.jit(jax.vmap(self.target.restored))(self.positions, keys)
        other.collect = other.tuned_by = watched(other.target)
        return other

    def first(self, num: int | None) -> Any:
        """Positions of `num` chains, or, with None, of one without its axis."""
        return jax.tree.map(lambda leaf: leaf[0] if num is None else leaf[:num], self.positions)

    @property
    def num_flat(self) -> int:
        """Entries of φ that the rotated marginal target leaves out."""
        trees = self.bnn.template(self.data.x_train), self.target.template
        whole, informed = (sum(leaf.size for leaf in jax.tree.leaves(tree)) for tree in trees)
        return whole - informed

    def clock(self, sampler) -> Clock:
        """Of steps through the driver, from a position in the posterior."""
        return partial(steps, sampler, self.target, initial=self.first(1))

    def tune(self, candidates: Mapping[str, Candidate]) -> Choice:
        """`widebnn.tuning.tune`, by the potential and by ten projections, or ten entries of ΨΨᵀ."""
        budget = 1e3 * TUNING_SECONDS / self.ms_potential / len(candidates)
        cost = max(float(candidate.cost) for candidate in candidates.values())
        return tune(
            self.rng_key,
            candidates,
            self.target,
            budget=max(budget, 100 * cost),
            num_chains=1,
            collect=self.tuned_by,
            initial=self.first(1),
        )


def mixing(posterior: Posterior, name: str) -> tuple[Mixing, wb.Draws, Clock]:
    """Set a sampler, run it until it has made enough effective samples, and count them."""
    if name in ON_WEIGHTS:
        posterior = posterior.on_weights()
    sampler, setting, step_size, clock = SAMPLERS[name](posterior)
    draws = long_run(posterior, sampler)
    least, worst = least_ess(draws.collected)
    num_steps = draws.thin * draws["potential"].shape[1]

    def per_draw(collected: Mapping[str, np.ndarray]) -> float:
        return least_ess(collected)[0] / (len(collected["potential"]) * num_steps)

    found = Mixing(
        sampler=name,
        width=posterior.width,
        depth=posterior.depth,
        setting=setting,
        step_size=step_size,
        acceptance=draws.acceptance_rate,
        num_steps=num_steps,
        ess=least,
        ess_per_step=least / (num_steps * NUM_CHAINS),
        error=jackknife(per_draw, dict(draws.collected)).error,
        worst=worst,
    )
    return found, draws, clock


def paper_pcn(posterior: Posterior, ours: Mixing) -> tuple[Mixing, Clock]:
    """The papers' pCN, from what `mixing` found of ours: in law the same chain, at their cost."""
    assert ours.sampler in PCN and ours.step_size is not None
    data = posterior.data
    steps = pcn_steps(posterior.bnn, data.x_train, data.y_train, ours.step_size)
    return ours._replace(sampler=f"paper {ours.sampler}"), partial(python_steps, steps)


def median_times(clocks: Mapping[str, Clock]) -> dict[str, float]:
    """Milliseconds of a step of each, the median of `ROUNDS` timings of half a second, made in turn."""
    with on_one_thread():
        timed = {name: clock(max(5, int(500 / clock(3)()))) for name, clock in clocks.items()}
    return {name: float(np.median(times)) for name, times in in_turn(timed, ROUNDS).items()}


def long_run(posterior: Posterior, sampler) -> wb.Draws:
    """Runs from the posterior, each as long as the one before says, until one is long enough."""
    num_steps = 12
    while True:
        thin = -(-num_steps // MAX_DRAWS)
        draws = wb.sample(
            posterior.rng_key,
            sampler,
            posterior.target,
            num_samples=num_steps // thin,
            thin=thin,
            num_chains=NUM_CHAINS,
            initial=posterior.positions,
            collect=posterior.collect,
            progress=False,
        )
        wanted = 1.2 * ENOUGH / max(least_ess(draws.collected)[0], 1.0)
        longer = min(wanted, MAX_SECONDS / draws.seconds, 10)
        if wanted < 1.2 or longer < 1.5:
            return draws
        num_steps = int(num_steps * longer)


def _ours(make: Callable[[Rotated], Mapping[str, Candidate]]) -> Callable[[Posterior], Method]:
    """A sampler that is tuned, run and timed on the rotated marginal target."""

    def method(posterior: Posterior) -> Method:
        found = posterior.tune(make(posterior.target))
        return Method(found.sampler, found.name, found.step_size, posterior.clock(found.sampler))

    return method


def _pcn(acceptance: float, target: Rotated):
    """Which acceptance is best takes runs too long for `tune`: each is a sampler of its own."""
    return {"": Candidate(tuned(partial(wb.samplers.pcn, target.potential), acceptance), 1)}


def _pcnl(target: Rotated):
    make = partial(wb.samplers.pcnl, target.potential)
    return {f"acceptance {a}": Candidate(tuned(make, a), 3) for a in (0.4, 0.6, 0.8)}


def _langevin(target: Rotated):
    make = partial(wb.samplers.langevin, target.potential)
    return {f"damping {g}": Candidate(tuned(partial(make, damping=g), 0.9), 3) for g in (0.01, 0.1, 1.0)}


def _hmc(target: Rotated):
    make = partial(wb.samplers.hmc, target.potential)
    return {
        f"{k} leapfrog steps": Candidate(tuned(partial(make, num_steps=k), 0.8), 3 * k) for k in (8, 16, 32)
    }


def _function_space_hmc(target: Rotated):
    """No trajectory is longer than a quarter turn: from half a turn, at −φ, the next one leads back."""
    make = partial(wb.samplers.function_space_hmc, target.potential)
    return {
        f"{k} kicks": Candidate(tuned(partial(make, num_steps=k), 0.8, 0.05, math.pi / 2 / k), 3 * k)
        for k in (2, 4, 8, 16)
    }


def _untuned(make: Callable[[Rotated], wb.samplers.Sampler]) -> Callable[[Posterior], Method]:
    def method(posterior: Posterior) -> Method:
        sampler = make(posterior.target)
        return Method(sampler, "", None, posterior.clock(sampler))

    return method


def _paper_lmc(posterior: Posterior) -> Method:
    """The step size is lowered after tuning until the mean acceptance probability stays above 98 %."""
    make = partial(
        wb.samplers.langevin, posterior.target.potential, metropolis=False, num_flat=posterior.num_flat
    )
    found = posterior.tune(
        {f"damping {g}": Candidate(tuned(partial(make, damping=g), 0.98), 3) for g in (0.001, 0.01, 0.1)}
    )
    damping, step_size = float(found.name.split()[1]), found.step_size
    while _acceptance(posterior, make(step_size=step_size, damping=damping)) <= 0.98:
        step_size *= 0.95
    data = posterior.data
    steps = lmc_steps(posterior.bnn, data.x_train, data.y_train, step_size, damping)
    sampler = make(step_size=step_size, damping=damping)
    return Method(sampler, found.name, step_size, partial(python_steps, steps))


def _acceptance(posterior: Posterior, sampler: wb.samplers.Sampler) -> float:
    draws = wb.sample(
        posterior.rng_key,
        sampler,
        posterior.target,
        num_samples=1,
        thin=500,
        burn_in=500,
        num_chains=NUM_CHAINS,
        initial=posterior.positions,
        progress=False,
    )
    return draws.acceptance_rate


def _adapted(adaptation: Adaptation, num_gradients: int = 1) -> Callable[[Posterior], Method]:
    """After its own adaptation; where that is left to a burn-in, tuned, at so many gradients per step."""

    def method(posterior: Posterior) -> Method:
        with on_one_thread():
            adapted = adaptation.adapt(posterior.target, posterior.first(None), posterior.rng_key)
        sampler, step_size = adapted.sampler, adapted.step_size
        if isinstance(sampler, Tuned):
            found = posterior.tune({"": Candidate(sampler, 3 * num_gradients)})
            sampler, step_size = found.sampler, found.step_size
        return Method(sampler, adapted.setting, step_size, posterior.clock(sampler))

    return method


def _windows(name: str, **fixed) -> Callable[[Posterior], Method]:
    return _adapted(Adaptation(windows(name, "window_adaptation", ADAPTATION_STEPS, **fixed), 0))


RADIAN = CONTENDERS["function-space HMC"]
"""As many kicks as make one radian; several layers are too slow to choose among numbers of them."""
PCN = {f"pCN, acceptance {a}": _ours(partial(_pcn, a)) for a in (0.2, 0.4, 0.6)}
OURS = {
    **PCN,
    "pCNL": _ours(_pcnl),
    "Langevin": _ours(_langevin),
    "HMC": _ours(_hmc),
    "elliptical slice": _untuned(lambda target: wb.samplers.elliptical_slice(target.potential)),
    "function-space HMC": _ours(_function_space_hmc),
    "unit-wise": _untuned(wb.samplers.unitwise),
    "function-space HMC, one radian": _adapted(RADIAN.adaptation, num_gradients=8),
}
ON_WEIGHTS = {"function-space HMC on weights": OURS["function-space HMC, one radian"]}
"""Of several layers, in place of whitened ones."""
PAPERS = {"paper LMC": _paper_lmc}
BLACKJAX = {
    "BlackJAX NUTS": _windows("nuts"),
    **{f"BlackJAX HMC, {k} steps": _windows("hmc", num_integration_steps=k) for k in (8, 16)},
    **{f"BlackJAX {name}": _adapted(ADAPTATIONS[name]) for name in ("adjusted MCLMC", "mgrad")},
}
SAMPLERS: dict[str, Callable[[Posterior], Method]] = OURS | PAPERS | BLACKJAX | ON_WEIGHTS
