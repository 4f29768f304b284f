"""Effective samples per second: samplers on one target over width, and one sampler on three targets."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from widebnn import data, estimates, samplers, targets
from widebnn._check import at_least, one_of
from widebnn.diagnostics import effective_sample_size, random_projections
from widebnn.experiments.settings.images import images
from widebnn.experiments.settings.step_times import step_times
from widebnn.models import BNN, FCN, Parameters
from widebnn.samplers import tuned
from widebnn.sampling import Draws, sample
from widebnn.tree import Position

__all__ = ["EFFICIENCY", "METHODS", "Efficiency", "efficiency"]


class Method(NamedTuple):
    """From a target to a sampler, tuned where it has a step size; and the cost of a step in potentials."""

    make: Callable[[Any], samplers.Sampler | samplers.Tuned]
    cost: int


METHODS: Mapping[str, Method] = {
    "pCN": Method(lambda t: tuned(partial(samplers.pcn, t.potential), 0.25), 1),
    "pCNL": Method(lambda t: tuned(partial(samplers.pcnl, t.potential), 0.6), 3),
    "Langevin": Method(lambda t: tuned(partial(samplers.langevin, t.potential, damping=0.01), 0.9), 3),
    "HMC": Method(lambda t: tuned(partial(samplers.hmc, t.potential, num_steps=10), 0.8), 30),
    "function-space HMC": Method(
        lambda t: tuned(
            partial(samplers.function_space_hmc, t.potential, num_steps=6, jitter=True),
            0.8,
            max_step_size=math.pi / 2,
        ),
        18,
    ),
    "unit-wise": Method(samplers.unitwise, 10),
}
"""By name. Those of the papers have the settings that `python -m benchmarks` finds best at width 1,024."""

TARGETS: Mapping[str, Callable[..., Any]] = {
    "repriorised": targets.repriorised,
    "marginal": targets.marginal,
    "rotated": lambda *network: targets.rotated(targets.marginal(*network)),
}
"""All of φ; without the readout; and without the weights that no image sees."""

ROUNDS = 5  # of timings
MAX_DRAWS = 2_000  # that are kept of a chain; longer runs are thinned


@dataclass(frozen=True)
class Efficiency:
    """The configuration of one run of the experiment.

    Attributes
    ----------
    dataset, num_train, num_test
        "cifar10" or "digits", images that are observed, and images that are predicted, as far
        as there are so many.
    widths, samplers
        The grid of samplers, all on the rotated marginal target.
    work
        Of each chain of it, in potentials times width: the same for all samplers.
    compared_width, compared_steps
        Where HMC runs on each of three targets, and its proposals.
    num_chains
        Chains, all from the posterior.
    burn_in
        HMC proposals that lead there from the prior, and the least steps in which step sizes are tuned.
    num_projections
        Random directions in the space of the weights that the data inform.
    timed_seconds
        Of one of five timings of a sampler's steps.
    noise_std
        σ.
    seed
        Of everything.
    """

    dataset: str = "cifar10"
    num_train: int = 32
    num_test: int = 20
    widths: tuple[int, ...] = (16, 64, 256, 1_024)
    samplers: tuple[str, ...] = ("pCN", "pCNL", "Langevin", "function-space HMC", "unit-wise")
    work: int = 1_000_000
    compared_width: int = 64
    compared_steps: int = 200
    num_chains: int = 4
    burn_in: int = 200
    num_projections: int = 50
    timed_seconds: float = 0.3
    noise_std: float = 0.1
    seed: int = 0


EFFICIENCY = {
    "smoke": Efficiency(
        dataset="digits",
        num_train=8,
        num_test=5,
        widths=(64,),
        samplers=("pCN", "unit-wise"),
        work=30_000,
        compared_width=16,
        compared_steps=50,
        num_chains=2,
        burn_in=50,
        num_projections=10,
        timed_seconds=0.02,
    ),
    "laptop": Efficiency(),
    "colab": Efficiency(
        num_train=256,
        num_test=100,
        widths=(128, 512, 1_024, 2_048, 4_096, 8_192),
        work=40_000_000,
        compared_width=512,
        num_projections=100,
    ),
    "paper": Efficiency(
        num_train=256,
        num_test=100,
        widths=(128, 512, 1_024, 2_048, 4_096, 8_192, 16_384),
        work=400_000_000,
        compared_width=1_024,
        compared_steps=2_000,
        num_projections=100,
    ),
}
"""The configuration at each scale; the papers report no effective samples per second,
and "paper" is what a GPU makes of it."""


def efficiency(config: Efficiency, on_row: Callable[[dict[str, Any]], None] = lambda row: None) -> list[dict]:
    """What a second of each sampler is worth in the posterior of a network with one hidden layer.

    The figure of merit is the least effective sample size over the potential, random projections of the
    weights that the data inform, and Rao–Blackwellised predictions on the part of test images that lies in
    the span of the training images. A step is timed apart, on one chain, all samplers of a width in turn.

    Parameters
    ----------
    config
        What to run.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with width, target, sampler; dimension of the chain; step_size as tuned (None where there is none)
    and acceptance; num_steps, ess and ess_per_step with its standard error (jackknife over chains); worst,
    what has the least effective samples; ms_per_step, ess_per_second; and the potential's mean over the chain
    with its standard error, and its standard deviation.

    Raises
    ------
    ValueError
        If a name is unknown, or there are fewer than two chains.
    """
    for name in config.samplers:
        one_of(METHODS, samplers=name)
    at_least(2, num_chains=config.num_chains)
    dataset = images(config.dataset, config.num_train, config.num_test)
    rows = []
    for width in dict.fromkeys((config.compared_width, *config.widths)):
        posterior = _Posterior(config, dataset, width)
        cases = []
        if width == config.compared_width:
            cases += [("HMC", name, config.compared_steps) for name in TARGETS]
        if width in config.widths:
            for name in config.samplers:
                num_steps = max(config.burn_in, config.work // (width * METHODS[name].cost))
                cases.append((name, "rotated", num_steps))
        found = [posterior.run(*case) for case in cases]
        rounds = step_times([(run.sampler, run.start) for run in found], config.timed_seconds, ROUNDS)
        for (name, kind, _), run, ms in zip(cases, found, np.median(rounds, axis=0), strict=True):
            row = {"width": width, "target": kind, "sampler": name} | _row(run)
            row |= {"ms_per_step": float(ms), "ess_per_second": 1e3 * row["ess_per_step"] / float(ms)}
            rows.append(row)
            on_row(row)
    return rows


class _Run(NamedTuple):
    """Draws, the sampler that made them, and where one chain of it starts."""

    draws: Draws
    sampler: Any
    start: Position


class _Posterior:
    """One network's posterior, chains in it, and the functions whose effective samples count."""

    def __init__(self, config: Efficiency, dataset: data.Dataset, width: int):
        self.config = config
        x, y = dataset.x_train, dataset.y_train
        bnn = BNN(FCN(x.shape[1], width, rngs=nnx.Rngs(config.seed)), y.shape[1], config.noise_std)
        self.network = bnn, x, y
        self.rotated = TARGETS["rotated"](*self.network)
        keys = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), width), 4)
        self.project = random_projections(keys[0], self.rotated.template, num=config.num_projections)
        equilibrium = sample(
            keys[1],
            tuned(partial(samplers.hmc, self.rotated.potential, num_steps=10), 0.8),
            self.rotated,
            num_samples=1,
            burn_in=config.burn_in,
            num_chains=config.num_chains,
        )
        chains = jax.random.split(keys[2], config.num_chains)
        self.parameters = jax.vmap(self.rotated.to_parameters)(equilibrium.position, chains)
        self.rng_key = keys[3]
        basis = self.rotated.basis
        seen = (dataset.x_test @ basis @ basis.T).astype(x.dtype)
        self.predict = self.rotated.predictive_mean(seen)

    def run(self, name: str, kind: str, num_steps: int) -> _Run:
        config, target = self.config, TARGETS[kind](*self.network)
        sampler = METHODS[name].make(target)
        is_tuned = isinstance(sampler, samplers.Tuned)

        def informed(position):
            """The rotated weights, whatever the chain moves."""
            if kind == "rotated":
                return position
            unused = jnp.zeros((0, 0))  # the weights below it do not depend on the readout
            return self.rotated.from_parameters(Parameters(target.inner(position), unused))

        thin = -(-num_steps // MAX_DRAWS)
        initial = jax.vmap(target.from_parameters)(self.parameters)
        draws = sample(
            self.rng_key,
            sampler,
            target,
            num_samples=num_steps // thin,
            thin=thin,
            burn_in=max(config.burn_in, num_steps // 10) if is_tuned else 0,
            num_chains=config.num_chains,
            initial=initial,
            collect={
                "potential": target.potential,
                "weights": lambda position: self.project(informed(position)),
                "predictions": lambda position, rng_key: self.predict(informed(position), rng_key),
            },
        )
        if is_tuned:
            sampler = sampler.make(draws.step_size)
        return _Run(draws, sampler, jax.tree.map(lambda leaf: leaf[0], initial))


def _row(run: _Run) -> dict[str, Any]:
    draws = run.draws
    num_chains, num_draws = draws["potential"].shape
    num_steps = num_draws * draws.thin
    ess, worst = _least(draws.collected)
    # standard error over chains left out in turn, of the least effective sample size of a chain
    left_out = [
        _least({name: np.delete(values, i, axis=0) for name, values in draws.collected.items()})[0]
        for i in range(num_chains)
    ]
    u = draws["potential"].astype(np.float64)
    mean, mean_error = (float(x) for x in estimates.mean_and_mcse(u))
    return {
        "dimension": sum(leaf.size for leaf in jax.tree.leaves(run.start)),
        "step_size": draws.step_size,
        "acceptance": draws.acceptance_rate,
        "num_steps": num_steps,
        "ess": ess,
        "worst": worst,
        "ess_per_step": ess / (num_chains * num_steps),
        "ess_per_step_error": float(np.std(left_out)) / math.sqrt(num_chains - 1) / num_steps,
        "potential": mean,
        "potential_error": mean_error,
        "potential_std": float(u.std()),
    }


def _least(collected: Mapping[str, np.ndarray]) -> tuple[float, str]:
    """The least effective sample size, and of what it is."""
    sizes = {name: float(np.min(effective_sample_size(values))) for name, values in collected.items()}
    worst = min(sizes, key=sizes.__getitem__)
    return sizes[worst], worst
