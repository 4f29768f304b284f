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

__all__ = ["BLACKJAX", "OURS", "PAPERS", "Efficiency", "Posterior", "efficiency"]

NUM_CHAINS = 4
MAX_DRAWS = 250
SECONDS = 20.0
"""That each sampler is tuned for, and that it then runs for, at least `LEAST_STEPS` steps a chain."""
LEAST_STEPS = 100
ADAPTATION_STEPS = 500
ROUNDS = 3


class Efficiency(NamedTuple):
    """What a sampler achieves. `error` is of `ess_per_step`, a standard error over chains (jackknife)."""

    sampler: str
    width: int
    setting: str
    acceptance: float
    ess_per_step: float
    error: float
    worst: str
    ms_per_step: float
    ess_per_second: float


class Method(NamedTuple):
    """A sampler that is ready to run, how it was set, and how so many of its steps are timed."""

    sampler: Any
    setting: str
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
        budget = 1e3 * SECONDS / self.ms_potential / len(candidates)
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


def efficiency(posterior: Posterior, name: str) -> Efficiency:
    """Set a sampler, time its step, run it, and count its effective samples.

    The run is `SECONDS` long, in four chains. Draws are thinned to at most `MAX_DRAWS` a chain unless that
    would thin effective samples out.
    """
    sampler, setting, timed = SAMPLERS[name](posterior)
    probe = timed(3)()
    ms_per_step = float(np.median([timed(max(3, int(500 / probe)))() for _ in range(ROUNDS)]))

    def run(num_steps: int, thin: int) -> wb.Draws:
        return wb.sample(
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

    own_ms = probe if name not in PAPERS else compiled_steps(sampler, posterior.target, 3)()
    num_steps = max(LEAST_STEPS, int(1e3 * SECONDS / own_ms / NUM_CHAINS))
    draws = run(num_steps, thin=max(1, num_steps // MAX_DRAWS))
    num_steps = draws.thin * draws["potential"].shape[1]
    least = {q: float(np.nan_to_num(ess).min()) for q, ess in wb.effective_sample_size(draws).items()}
    worst = min(least, key=least.__getitem__)
    per_step = least[worst] / (num_steps * NUM_CHAINS)
    return Efficiency(
        sampler=name,
        width=posterior.width,
        setting=setting,
        acceptance=draws.acceptance_rate,
        ess_per_step=per_step,
        error=_jackknife(draws) / num_steps,
        worst=worst,
        ms_per_step=ms_per_step,
        ess_per_second=1e3 * per_step / ms_per_step,
    )


def _jackknife(draws: wb.Draws) -> float:
    """Standard error, over chains left out in turn, of the least effective sample size of a chain."""
    left_out = []
    for i in range(NUM_CHAINS):
        rest = [np.delete(values, i, axis=0) for values in draws.collected.values()]
        sizes = [np.nan_to_num(wb.effective_sample_size(values)).min() for values in rest]
        left_out.append(min(sizes) / (NUM_CHAINS - 1))
    return float(np.std(left_out) * math.sqrt(NUM_CHAINS - 1))


def _ours(make: Callable[[Rotated], Mapping[str, Candidate]]) -> Callable[[Posterior], Method]:
    """A sampler that is tuned, run and timed on the rotated marginal target."""

    def method(posterior: Posterior) -> Method:
        found = posterior.tune(make(posterior.target))
        timed = partial(compiled_steps, found.sampler, posterior.target)
        return Method(found.sampler, _setting(found), timed)

    return method


def _setting(found: Tuned) -> str:
    return f"{found.name}, step size {found.step_size:.3g}"


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
        f"{k} kicks": Candidate(partial(make, num_steps=k), 0.8, 3 * k, math.pi / 2) for k in (1, 2, 4, 8, 16)
    }


def _untuned(make: Callable[[Rotated], wb.samplers.Sampler]) -> Callable[[Posterior], Method]:
    def method(posterior: Posterior) -> Method:
        sampler = make(posterior.target)
        return Method(sampler, "", partial(compiled_steps, sampler, posterior.target))

    return method


def _paper_pcn(posterior: Posterior) -> Method:
    found = posterior.tune(_pcn(posterior.target))
    data = posterior.data
    steps = pcn_steps(posterior.bnn, data.x_train, data.y_train, found.step_size)
    return Method(found.sampler, _setting(found), partial(python_steps, steps))


def _paper_lmc(posterior: Posterior) -> Method:
    make = partial(langevin_with_rest, posterior.target.potential, num_free=posterior.num_free)
    found = posterior.tune(
        {f"damping {g}": Candidate(partial(make, damping=g), 0.98, 3) for g in (0.001, 0.01, 0.1, 1.0)}
    )
    damping = float(found.name.split()[1])
    data = posterior.data
    steps = lmc_steps(posterior.bnn, data.x_train, data.y_train, found.step_size, damping)
    return Method(found.sampler, _setting(found), partial(python_steps, steps))


def _blackjax(algorithm, **fixed) -> Callable[[Posterior], Method]:
    """After BlackJAX's window adaptation of a step size, for an acceptance of 0.8, and a diagonal mass."""

    def method(posterior: Posterior) -> Method:
        logdensity = posterior.target.logdensity
        adaptation = blackjax.window_adaptation(
            algorithm, logdensity, adaptation_info_fn=get_filter_adapt_info_fn(), **fixed
        )
        with on_one_thread():
            (_, found), _ = adaptation.run(posterior.rng_key, posterior.first(None), ADAPTATION_STEPS)
        sampler = algorithm(logdensity, **found)
        setting = "".join(f"{value} leapfrog steps, " for value in fixed.values())
        timed = partial(compiled_steps, sampler, posterior.target)
        return Method(sampler, f"{setting}step size {float(found['step_size']):.3g}", timed)

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
PAPERS = {"paper pCN": _paper_pcn, "paper LMC": _paper_lmc}
BLACKJAX = {
    "BlackJAX NUTS": _blackjax(blackjax.nuts),
    **{f"BlackJAX HMC, {k} steps": _blackjax(blackjax.hmc, num_integration_steps=k) for k in (8, 16, 32)},
}
SAMPLERS: dict[str, Callable[[Posterior], Method]] = OURS | PAPERS | BLACKJAX
