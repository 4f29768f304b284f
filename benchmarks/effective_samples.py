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
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

import widebnn as wb
from benchmarks.paper_lmc import lmc_steps
from benchmarks.paper_pcn import pcn_steps
from benchmarks.steps import posterior as posterior_of
from benchmarks.steps import python_steps
from book.experiments.blackjax_samplers import BLACKJAX as ADAPTATIONS
from book.experiments.blackjax_samplers import Adaptation, windows
from book.experiments.clock import Clock, on_one_thread, step_times, steps
from book.experiments.efficiency import counted, least
from book.experiments.own_samplers import METHODS
from book.experiments.posterior import WATCHED, size
from widebnn.samplers import Sampler, tuned
from widebnn.tables import Row
from widebnn.targets._whitened import Whitened

NUM_CHAINS = 4
MAX_DRAWS = 500
"""Draws that are kept of a chain; longer runs are thinned."""
ENOUGH = 200.0
"""Effective samples, of all chains, at which a run is long enough. A chain that is not much longer than its
correlations looks better than it is."""
MAX_SECONDS = 500.0
"""Of a run, at which it ends all the same."""
TUNING_STEPS = 500
BURN_IN = {"unit-wise": 50, "function-space HMC, one radian": 200}
ADAPTATION_STEPS = 150
ROUNDS, TIMED_SECONDS = 5, 0.5
"""Of timings, and of each."""


class Method(NamedTuple):
    """A sampler that is ready to run, how it was set, and how its steps are timed."""

    sampler: Sampler
    setting: str
    clock: Clock


class Posterior:
    """The posterior of one network, chains in it, and the functions whose effective samples count.

    One hidden layer burns in by sweeps over its units, several by function-space HMC.
    """

    def __init__(self, data: wb.data.Dataset, width: int, depth: int = 1, num_projections: int = 100):
        self.data, self.width, self.depth = data, width, depth
        keys = jax.random.split(jax.random.key(width), 3)
        self.rng_key = keys[2]
        whole = posterior_of(data, width, depth)
        self.bnn = whole.bnn
        if depth == 1:
            name, self.target = "unit-wise", whole.rotated
            projections = wb.random_projections(keys[0], self.target.template, num_projections)
            self.collect = whole.collect(self.target, projections)
        else:
            name, self.target = "function-space HMC, one radian", wb.targets.whitened(whole.marginal)
            self.collect = WATCHED
        burnt_in = partial(
            wb.sample, keys[1], self.target, METHODS[name].sampler, num_samples=1, num_positions=0
        )
        draws = burnt_in(burn_in=BURN_IN[name], num_chains=NUM_CHAINS, progress=False)
        self.positions = draws.position

    def on_weights(self) -> "Posterior":
        """The same chains and functions of the same networks, where chains move on weights."""
        assert isinstance(self.target, Whitened)
        keys = jax.random.split(self.rng_key, NUM_CHAINS)
        other = copy.copy(self)
        other.target = self.target.weights
        other.positions = jax.jit(jax.vmap(self.target.restored))(self.positions, keys)
        other.collect = WATCHED
        return other

    def sample(self, sampler: Sampler | tuned, num_chains: int = NUM_CHAINS, **options: Any) -> wb.Draws:
        """Chains that begin in the posterior."""
        initial = jax.tree.map(lambda leaf: leaf[:num_chains], self.positions)
        options = {"burn_in": 0, "num_positions": 0} | options
        options |= {"num_chains": num_chains, "initial": initial, "progress": False}
        return wb.sample(self.rng_key, self.target, sampler, **options)

    @property
    def first(self) -> Any:
        """The position of one chain."""
        return jax.tree.map(lambda leaf: leaf[0], self.positions)

    def clock(self, sampler: Sampler) -> Clock:
        """Of steps from a position in the posterior."""
        return steps(self.target, sampler, self.first)

    def method(self, sampler: Sampler | tuned, setting: str = "") -> Method:
        """Tuned on one chain, where it is to be."""
        if isinstance(sampler, tuned):
            sampler = sampler.at(self.sample(sampler, 1, num_samples=1, burn_in=TUNING_STEPS).step_size)
        return Method(sampler, setting, self.clock(sampler))


def mixing(posterior: Posterior, name: str) -> tuple[Row, Clock]:
    """Set a sampler, run it until it has made enough effective samples, and count them."""
    if name in ON_WEIGHTS:
        posterior = posterior.on_weights()
    sampler, setting, clock = SAMPLERS[name](posterior)
    draws = long_run(posterior, sampler)
    step_size = getattr(sampler, "step_size", None)
    step_size = None if step_size is None else float(step_size)
    row = {"sampler": name, "width": posterior.width, "depth": posterior.depth, "setting": setting}
    row |= {"step_size": step_size, "acceptance": draws.acceptance_rate} | counted(draws)
    row["error"] = row.pop("ess_per_step_error")
    return row, clock


def paper_pcn(posterior: Posterior, ours: Row) -> tuple[Row, Clock]:
    """The papers' pCN, from what `mixing` found of ours: in law the same chain, at their cost."""
    x, y = posterior.data.x_train, posterior.data.y_train
    papers = pcn_steps(posterior.bnn, x, y, ours["step_size"])
    return ours | {"sampler": f"paper {ours['sampler']}"}, python_steps(papers)


def median_times(clocks: Mapping[str, Clock]) -> dict[str, float]:
    """Milliseconds of a step of each, the median of timings that are made in turn."""
    rounds = step_times([*clocks.values()], TIMED_SECONDS, ROUNDS)
    return dict(zip(clocks, np.median(rounds, axis=0).tolist(), strict=True))


def long_run(posterior: Posterior, sampler: Sampler) -> wb.Draws:
    """Runs from the posterior, each as long as the one before says, until one is long enough."""
    num_steps = 12
    while True:
        thin = -(-num_steps // MAX_DRAWS)
        num_samples = num_steps // thin
        draws = posterior.sample(sampler, num_samples=num_samples, thin=thin, collect=posterior.collect)
        wanted = 1.2 * ENOUGH / max(least(draws.collected)[0], 1.0)
        longer = min(wanted, MAX_SECONDS / draws.seconds, 10)
        if wanted < 1.2 or longer < 1.5:
            return draws
        num_steps = int(num_steps * longer)


def _paper_lmc(posterior: Posterior) -> Method:
    """The step size is lowered after tuning until the mean acceptance probability stays above 98 %.

    Of dampings of 0.001, 0.01 and 0.1 the least made the most effective samples at width 1,024.
    """
    x, y, target = posterior.data.x_train, posterior.data.y_train, posterior.target
    num_flat = sum(leaf.size for leaf in jax.tree.leaves(posterior.bnn.template(x))) - size(target)
    langevin = wb.samplers.langevin(0.1, damping=0.001, metropolis=False, num_flat=num_flat)
    langevin = posterior.method(tuned(langevin, 0.98)).sampler
    while posterior.sample(langevin, num_samples=1, thin=500, burn_in=500).acceptance_rate <= 0.98:
        langevin = replace(langevin, step_size=0.95 * langevin.step_size)
    papers = lmc_steps(posterior.bnn, x, y, langevin.step_size, langevin.damping)
    return Method(langevin, "damping 0.001", python_steps(papers))


def _adapted(adaptation: Adaptation) -> Callable[[Posterior], Method]:
    """After its own adaptation; tuned where that is left to a burn-in."""

    def method(posterior: Posterior) -> Method:
        with on_one_thread():
            sampler = adaptation(posterior.target, posterior.first, posterior.rng_key)
        return posterior.method(sampler)

    return method


def _windows(name: str, **fixed: Any) -> Callable[[Posterior], Method]:
    return _adapted(windows(name, ADAPTATION_STEPS, **fixed))


PCN = {f"pCN, acceptance {a}": tuned(wb.samplers.pcn(0.1), a) for a in (0.2, 0.4, 0.6)}
_MADE = PCN | {name: method.sampler for name, method in METHODS.items() if name != "pCN"}
OURS = {name: partial(Posterior.method, sampler=sampler) for name, sampler in _MADE.items()}
ON_WEIGHTS = {"function-space HMC on weights": OURS["function-space HMC, one radian"]}
"""Of several layers, in place of whitened ones."""
PAPERS = {"paper LMC": _paper_lmc}
BLACKJAX = {
    "BlackJAX NUTS": _windows("nuts"),
    **{f"BlackJAX HMC, {k} steps": _windows("hmc", num_integration_steps=k) for k in (8, 16)},
    **{f"BlackJAX {name}": _adapted(ADAPTATIONS[name]) for name in ("adjusted MCLMC", "mgrad")},
}
SAMPLERS: dict[str, Callable[[Posterior], Method]] = OURS | PAPERS | BLACKJAX | ON_WEIGHTS
