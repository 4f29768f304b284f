"""Effective samples per second: samplers of ours and of others, on one posterior, in one run.

An effective sample size is the least over the potential, 100 random projections of the rotated weights below
the readout, and Rao–Blackwellised predictions for test images. It is estimated from chains that begin in the
posterior, whose draws cost nothing here; the milliseconds of a step are timed apart, without collecting
anything and on one chain.

The papers' pCN and Langevin chains have in law the informed part that ours have (`benchmarks.paper_lmc`), and
are followed there; what is timed is their own step.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import blackjax
import jax
import numpy as np
from blackjax.adaptation.base import get_filter_adapt_info_fn

import widebnn as wb
from benchmarks.paper_lmc import langevin_with_rest, lmc_steps
from benchmarks.paper_pcn import pcn_steps
from benchmarks.steps import compiled_steps, informed_target, network, python_steps, repeated
from benchmarks.timing import on_one_thread
from widebnn.targets.rotated import Rotated
from widebnn.tuning import Candidate, Tuned, tune

__all__ = ["BLACKJAX", "OURS", "PAPERS", "Efficiency", "Posterior", "efficiency", "least_ess", "paper_pcn"]

NUM_CHAINS = 4
MAX_DRAWS = 500
"""Draws that are kept of a chain; longer runs are thinned."""
ENOUGH = 200.0
"""Effective samples, of all chains, at which a run is long enough. A chain that is not much longer than its
correlations looks better than it is."""
MAX_SECONDS = 80.0
"""Of a run, at which it ends all the same."""
TUNING_SECONDS = 10.0
ADAPTATION_STEPS = 300
ROUNDS = 3


class Efficiency(NamedTuple):
    """What a sampler achieves. `error` is of `ess_per_step`, a standard error over chains (jackknife)."""

    sampler: str
    width: int
    setting: str
    step_size: float | None
    acceptance: float
    num_steps: int
    ess: float
    ess_per_step: float
    error: float
    worst: str
    ms_per_step: float
    ess_per_second: float


class Method(NamedTuple):
    """A sampler that is ready to run, how it was set, and how so many of its steps are timed."""

    sampler: Any
    setting: str
    step_size: float | None
    timed: Callable[[int], Callable[[], float]]


class Posterior:
    """The posterior at one width, chains in it, and the functions whose effective samples count."""

    def __init__(self, data: wb.data.Dataset, width: int, num_projections: int = 100, num_sweeps: int = 50):
        self.data, self.width, self.target = data, width, informed_target(data, width)
        self.bnn = network(data, width)
        keys = jax.random.split(jax.random.key(width), 3)
        self.rng_key = keys[2]
        basis = self.target.basis
        seen = np.asarray(data.x_test @ basis @ basis.T, data.x_test.dtype)  # what a chain alone determines
        self.collect = {
            "potential": self.target.potential,
            "weights": wb.random_projections(keys[0], self.target.template, num_projections),
            "predictions": self.target.predictive_mean(seen),
        }
        sweeps = wb.samplers.unitwise(self.target)
        burnt_in = partial(wb.sample, keys[1], sweeps, self.target, num_samples=1, burn_in=num_sweeps)
        self.positions = burnt_in(num_chains=NUM_CHAINS, progress=False).position
        with on_one_thread():
            self.ms_potential = repeated(self.target.potential, self.first(None), 50)()

    def first(self, num: int | None) -> Any:
        """Positions of `num` chains, or, with None, of one without its axis."""
        return jax.tree.map(lambda leaf: leaf[0] if num is None else leaf[:num], self.positions)

    @property
    def num_free(self) -> int:
        """Entries of φ that the rotated marginal target leaves out."""
        trees = self.bnn.template(self.data.x_train), self.target.template
        whole, informed = (sum(leaf.size for leaf in jax.tree.leaves(tree)) for tree in trees)
        return whole - informed

    def tune(self, candidates: Mapping[str, Candidate]) -> Tuned:
        """`widebnn.tuning.tune`, by the potential and by ten projections."""
        collect = {
            "potential": self.target.potential,
            "weights": wb.random_projections(jax.random.key(0), self.target.template, 10),
        }
        budget = 1e3 * TUNING_SECONDS / self.ms_potential / len(candidates)
        cost = max(float(candidate.cost) for candidate in candidates.values())
        return tune(
            self.rng_key,
            candidates,
            self.target,
            budget=max(budget, 100 * cost),
            num_chains=1,
            collect=collect,
            initial=self.first(1),
        )


def efficiency(posterior: Posterior, name: str) -> tuple[Efficiency, wb.Draws]:
    """Set a sampler, time its step, run it until it has made enough effective samples, and count them."""
    sampler, setting, step_size, timed = SAMPLERS[name](posterior)
    ms_per_step = median_time(timed)
    draws = long_run(posterior, sampler, ms_per_step)
    least, worst = least_ess(draws.collected)
    num_steps = draws.thin * draws["potential"].shape[1]
    per_step = least / (num_steps * NUM_CHAINS)
    row = Efficiency(
        sampler=name,
        width=posterior.width,
        setting=setting,
        step_size=step_size,
        acceptance=draws.acceptance_rate,
        num_steps=num_steps,
        ess=least,
        ess_per_step=per_step,
        error=_jackknife(draws) / num_steps,
        worst=worst,
        ms_per_step=ms_per_step,
        ess_per_second=1e3 * per_step / ms_per_step,
    )
    return row, draws


def median_time(timed: Callable[[int], Callable[[], float]]) -> float:
    """Milliseconds of a step, the median of `ROUNDS` timings of half a second each."""
    with on_one_thread():
        num_steps = max(3, int(500 / timed(3)()))
        return float(np.median([timed(num_steps)() for _ in range(ROUNDS)]))


def paper_pcn(posterior: Posterior, row: Efficiency) -> Efficiency:
    """The papers' pCN, from what `efficiency` found of ours: in law the same chain at their cost."""
    assert row.sampler == "pCN" and row.step_size is not None
    data = posterior.data
    ms = median_time(
        partial(python_steps, pcn_steps(posterior.bnn, data.x_train, data.y_train, row.step_size))
    )
    return row._replace(sampler="paper pCN", ms_per_step=ms, ess_per_second=1e3 * row.ess_per_step / ms)


def long_run(posterior: Posterior, sampler, ms_per_step: float) -> wb.Draws:
    """Runs from the posterior, each twice as long as the one before, until one is long enough."""
    num_steps = max(20, min(MAX_DRAWS, int(1e3 * MAX_SECONDS / ms_per_step / NUM_CHAINS)))
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
        if least_ess(draws.collected)[0] > ENOUGH or 2 * draws.seconds > MAX_SECONDS:
            return draws
        num_steps *= 2


def least_ess(collected: Mapping[str, np.ndarray], num_draws: int | None = None) -> tuple[float, str]:
    """The least effective sample size of `num_draws` draws of each chain, and of what it is."""
    sizes = {
        name: float(np.nan_to_num(wb.effective_sample_size(values[:, :num_draws])).min())
        for name, values in collected.items()
    }
    worst = min(sizes, key=sizes.__getitem__)
    return sizes[worst], worst


def _jackknife(draws: wb.Draws) -> float:
    """Standard error, over chains left out in turn, of the least effective sample size of a chain."""
    left_out = [
        least_ess({name: np.delete(values, i, axis=0) for name, values in draws.collected.items()})[0]
        for i in range(NUM_CHAINS)
    ]
    return float(np.std(left_out) / math.sqrt(NUM_CHAINS - 1))


def _ours(make: Callable[[Rotated], Mapping[str, Candidate]]) -> Callable[[Posterior], Method]:
    """A sampler that is tuned, run and timed on the rotated marginal target."""

    def method(posterior: Posterior) -> Method:
        found = posterior.tune(make(posterior.target))
        timed = partial(compiled_steps, found.sampler, posterior.target)
        return Method(found.sampler, found.name, found.step_size, timed)

    return method


def _pcn(target: Rotated):
    make = partial(wb.samplers.pcn, target.potential)
    return {f"acceptance {a}": Candidate(make, a, 1) for a in (0.2, 0.4, 0.6)}


def _pcnl(target: Rotated):
    make = partial(wb.samplers.pcnl, target.potential)
    return {f"acceptance {a}": Candidate(make, a, 3) for a in (0.4, 0.6, 0.8)}


def _langevin(target: Rotated):
    make = partial(wb.samplers.langevin, target.potential)
    return {f"damping {g}": Candidate(partial(make, damping=g), 0.9, 3) for g in (0.01, 0.1, 1.0)}


def _hmc(target: Rotated):
    make = partial(wb.samplers.hmc, target.potential)
    return {f"{k} leapfrog steps": Candidate(partial(make, num_steps=k), 0.8, 3 * k) for k in (8, 16, 32)}


def _function_space_hmc(target: Rotated):
    make = partial(wb.samplers.function_space_hmc, target.potential)
    return {
        f"{k} kicks": Candidate(partial(make, num_steps=k), 0.8, 3 * k, math.pi / 2) for k in (2, 4, 8, 16)
    }


def _untuned(make: Callable[[Rotated], wb.samplers.Sampler]) -> Callable[[Posterior], Method]:
    def method(posterior: Posterior) -> Method:
        sampler = make(posterior.target)
        return Method(sampler, "", None, partial(compiled_steps, sampler, posterior.target))

    return method


def _paper_lmc(posterior: Posterior) -> Method:
    """The step size is lowered after tuning until the mean acceptance probability stays above 98 %."""
    make = partial(langevin_with_rest, posterior.target.potential, num_free=posterior.num_free)
    found = posterior.tune(
        {f"damping {g}": Candidate(partial(make, damping=g), 0.98, 3) for g in (0.001, 0.01, 0.1)}
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


def _blackjax(algorithm, **fixed) -> Callable[[Posterior], Method]:
    """After BlackJAX's window adaptation of a step size, for an acceptance of 0.8, and a diagonal mass."""

    def method(posterior: Posterior) -> Method:
        logdensity = posterior.target.logdensity
        adaptation = blackjax.window_adaptation(
            algorithm,
            logdensity,
            initial_step_size=0.1,  # from 1, the first trajectories are a thousand gradients long
            adaptation_info_fn=get_filter_adapt_info_fn(),
            **fixed,
        )
        run: Any = adaptation.run
        with on_one_thread():
            (_, found), _ = run(posterior.rng_key, posterior.first(None), ADAPTATION_STEPS)
        sampler = algorithm(logdensity, **found)
        setting = "".join(f"{value} leapfrog steps" for value in fixed.values())
        timed = partial(compiled_steps, sampler, posterior.target)
        return Method(sampler, setting, float(found["step_size"]), timed)

    return method


OURS = {
    "pCN": _ours(_pcn),
    "pCNL": _ours(_pcnl),
    "Langevin": _ours(_langevin),
    "HMC": _ours(_hmc),
    "elliptical slice": _untuned(lambda target: wb.samplers.elliptical_slice(target.potential)),
    "function-space HMC": _ours(_function_space_hmc),
    "unit-wise": _untuned(wb.samplers.unitwise),
}
PAPERS = {"paper LMC": _paper_lmc}
BLACKJAX = {
    "BlackJAX NUTS": _blackjax(blackjax.nuts),
    **{f"BlackJAX HMC, {k} steps": _blackjax(blackjax.hmc, num_integration_steps=k) for k in (8, 16)},
}
SAMPLERS: dict[str, Callable[[Posterior], Method]] = OURS | PAPERS | BLACKJAX
