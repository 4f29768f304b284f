"""What repriorisation gains Langevin Monte Carlo: width, data and architecture (Hron et al. 2022)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from widebnn import samplers, targets
from widebnn._check import at_least, one_of, positive
from widebnn.diagnostics import band, effective_sample_size, random_projections
from widebnn.experiments.chains.convergence import LEAST_DRAWS, convergence_summary
from widebnn.experiments.settings.networks import NETWORKS, in_span, network, observed
from widebnn.sampling import Draws, sample

__all__ = [
    "GAIN_DENSE",
    "GAIN_OVER_DATA",
    "GAIN_OVER_WIDTH",
    "GAIN_RESNET",
    "LangevinGain",
    "langevin_gain",
]

PARAMETRISATIONS: Mapping[str, Callable[..., targets.NetworkTarget]] = {
    "θ": lambda bnn, x, y, reg: targets.standard(bnn, x, y),
    "φ": targets.repriorised,
}
"""By name, targets of one posterior; `reg` is λ."""

FIRST_STEP_SIZE = 1e-3  # stable in θ: where an uncorrected chain is carried away, tuning ends
MAX_RUNS = 5  # after the first, until one has the acceptance


@dataclass(frozen=True)
class LangevinGain:
    """The configuration of one run of the experiment.

    Attributes
    ----------
    dataset
        "cifar10", "mnist" or "digits".
    architecture, depth
        "dense", "convolutional" or "residual", and L of the first two.
    widths, num_train, parametrisations
        The grid: d_L, images that are observed, and "θ" or "φ".
    num_test
        Images that are predicted, as far as there are so many.
    dampings
        γ, of which the one with the most effective samples is taken.
    target_acceptance, least_acceptance
        Of the correction that is left out: ε is tuned to the first, and anew where a run does not keep the
        second, or exceeds it by twice what it should.
    burn_in, num_steps, thin
        Steps during which ε is tuned, steps from then on, and steps from one draw to the next.
    num_checkpoints
        Times, evenly spaced over the steps, at which the chains are looked at.
    num_chains
        Chains, each of which starts at T of a prior draw of its own.
    num_projections
        Random directions in the space of all parameters.
    reg_grows
        Whether λ is nσ², as the paper has it for residual networks, or σ².
    noise_std
        σ.
    seed
        Of everything.
    """

    dataset: str = "cifar10"
    architecture: str = "dense"
    depth: int = 3
    widths: tuple[int, ...] = (32, 64, 128, 384, 512, 768, 1_024)
    num_train: tuple[int, ...] = (256,)
    parametrisations: tuple[str, ...] = tuple(PARAMETRISATIONS)
    num_test: int = 5_000
    dampings: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1)
    target_acceptance: float = 0.985
    least_acceptance: float = 0.98
    burn_in: int = 20_000
    num_steps: int = 3_000_000
    thin: int = 25
    num_checkpoints: int = 6
    num_chains: int = 3
    num_projections: int = 100
    reg_grows: bool = False
    noise_std: float = 0.1
    seed: int = 0


SMOKE = LangevinGain(
    dataset="digits",
    depth=2,
    widths=(16, 64),
    num_train=(16,),
    num_test=4,
    dampings=(0.2,),
    burn_in=300,
    num_steps=800,
    thin=4,
    num_checkpoints=2,
    num_projections=20,
)
LAPTOP = LangevinGain(
    num_test=100,
    dampings=(0.01, 0.1),
    burn_in=800,
    num_steps=3_000,
    thin=10,
    num_checkpoints=4,
)
COLAB = LangevinGain(num_test=1_000, dampings=(0.01, 0.03, 0.1), burn_in=5_000, num_steps=20_000)
PAPER = LangevinGain()

GAIN_OVER_WIDTH = {
    "smoke": SMOKE,
    "laptop": replace(LAPTOP, widths=(32, 128, 512), num_train=(64,)),
    "colab": replace(COLAB, widths=(32, 128, 512, 1_024)),
    "paper": PAPER,
}
GAIN_OVER_DATA = {
    "smoke": replace(SMOKE, widths=(16,), num_train=(8, 32)),
    "laptop": replace(LAPTOP, widths=(256,), num_train=(16, 64, 256), num_steps=2_000),
    "colab": replace(COLAB, widths=(512,), num_train=(64, 256, 1_024)),
    "paper": replace(PAPER, widths=(512,), num_train=(64, 256, 1_024, 4_096, 16_384)),
}
GAIN_DENSE = {
    "smoke": replace(SMOKE, widths=(8,), num_train=(8, 80)),
    "laptop": replace(LAPTOP, widths=(32,), num_train=(32, 320, 1_280)),
    "colab": replace(
        COLAB,
        widths=(1_024,),
        num_train=(1_024, 4_096),
        dampings=(0.01, 0.1),
        burn_in=1_000,
        num_steps=5_000,
    ),
    "paper": replace(PAPER, widths=(1_024,), num_train=(1_024, 10_240, 40_960), thin=100),
}
GAIN_RESNET = {
    "smoke": replace(  # twenty layers take minutes to compile
        SMOKE, architecture="convolutional", reg_grows=True, widths=(8,), num_train=(4, 16), num_steps=200
    ),
    "laptop": replace(
        LAPTOP,
        architecture="residual",
        reg_grows=True,
        widths=(16,),
        num_train=(2, 8),
        burn_in=300,
        num_steps=2_400,
    ),
    "colab": replace(
        COLAB,
        architecture="residual",
        reg_grows=True,
        widths=(32,),
        num_train=(8, 32),
        dampings=(0.01, 0.1),
        burn_in=500,
        num_steps=3_000,
    ),
    "paper": replace(
        PAPER,
        architecture="residual",
        reg_grows=True,
        widths=(512,),
        num_train=(1_024, 10_240),
        thin=100,
    ),
}
"""The configuration of each experiment at each scale; "paper" has the widths, the observations where it
states them (Figure 8), the test points and the number of steps of Hron et al., with three chains where they
have one."""


def langevin_gain(
    config: LangevinGain, on_row: Callable[[dict[str, Any]], None] = lambda row: None
) -> list[dict[str, Any]]:
    """Langevin without correction on one posterior in θ and in φ, each with the step and damping it likes.

    The step is tuned during burn-in to the acceptance that a correction would have. A chain that goes on to
    where U is steeper, as one on its way from the prior may, loses that acceptance: such a run is made again
    with another step, until it has the acceptance on the whole.

    Chains of both parametrisations start at the same parameters T(φ), φ ~ N(0, I), which a wide network's
    posterior is close to: what θ is spared, the way from the prior, is no part of the comparison. Dense
    networks are sampled in the span of the training images (`in_span`): of the weights that no image sees
    both parametrisations have the prior, and a step that is small enough for thousands of those, as the
    paper's is, tells little of either. Projections are of θ and predictions are f at new images, the output
    of each one's class, whatever the chain moves. A step costs one gradient.

    Parameters
    ----------
    config
        What to run.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with width, num_train, num_test, parametrisation and `step`, of a checkpoint; damping and step_size
    as tuned, `acceptance` that a correction would have had so far, milliseconds a step of one chain. Then, of
    projections and of predictions: `ess_` per step, chain by chain as in the paper, the mean over entries,
    its standard error from the scatter over chains, and `_low` and `_high`, the least and the largest (None
    where a chain never moved); `pooled_` per step, the mean of the rank-normalised `ess_bulk`, which
    disagreeing chains lower, and its standard error (jackknife over chains); and what
    `widebnn.experiments.convergence_summary` says. At last `ess_per_second`, pooled, of projections.

    Raises
    ------
    ValueError
        If a name is unknown, there are fewer than two chains, no γ, burn-in or checkpoint, a number is out of
        range, or there are fewer than eight draws before the first checkpoint.
    """
    _check(config)
    rows = []
    for width in config.widths:
        for num_train in config.num_train:
            posterior = _Posterior(config, width, num_train)
            for name in config.parametrisations:
                point = {"width": width, "num_train": num_train, "num_test": posterior.num_test}
                for row in posterior.rows(name):
                    rows.append(point | {"parametrisation": name} | row)
                    on_row(rows[-1])
    return rows


def _check(config: LangevinGain) -> None:
    one_of(NETWORKS, architecture=config.architecture)
    for name in config.parametrisations:
        one_of(PARAMETRISATIONS, parametrisations=name)
    at_least(2, num_chains=config.num_chains)
    at_least(1, dampings=len(config.dampings))
    positive(noise_std=config.noise_std)
    if not 0 <= config.least_acceptance < config.target_acceptance < 1:
        raise ValueError(
            "least_acceptance must be below target_acceptance, and both in [0, 1); "
            f"got {config.least_acceptance} and {config.target_acceptance}"
        )
    least = LEAST_DRAWS * at_least(1, num_checkpoints=config.num_checkpoints) * at_least(1, thin=config.thin)
    at_least(least, num_steps=config.num_steps)
    at_least(1, burn_in=config.burn_in)


class _Posterior:
    """One network's posterior, chains in it, and what is collected of their parameters."""

    def __init__(self, config: LangevinGain, width: int, num_train: int):
        self.config = config
        dataset = observed(config.architecture, config.dataset, num_train, config.num_test)
        self.num_test = len(dataset.x_test)
        if config.architecture == "dense":
            dataset = in_span(dataset)
        bnn = network(config.architecture, dataset, width, config.depth, config.noise_std, config.seed)
        reg = config.noise_std**2 * (num_train if config.reg_grows else 1)
        x, y, x_new = dataset.x_train, dataset.y_train, jnp.asarray(dataset.x_test)
        labels = jnp.argmax(dataset.y_test, axis=1, keepdims=True)
        self.targets = {name: make(bnn, x, y, reg) for name, make in PARAMETRISATIONS.items()}
        keys = jax.random.split(jax.random.key(config.seed), 3)
        self.quantities = {
            "projections": random_projections(keys[0], bnn.template(x), num=config.num_projections),
            "predictions": lambda parameters: jnp.take_along_axis(bnn(parameters, x_new), labels, axis=1),
        }
        start_key, self.rng_key = keys[1:]
        prior = jax.vmap(self.targets["φ"].draw_prior)(jax.random.split(start_key, config.num_chains))
        self.starts = {"θ": jax.jit(jax.vmap(self.targets["φ"].to_parameters))(prior), "φ": prior}

    def rows(self, name: str) -> list[dict[str, Any]]:
        config = self.config
        goal, least = config.target_acceptance, config.least_acceptance
        make = partial(samplers.langevin, self.targets[name].potential, metropolis=False)
        tuned = {
            damping: samplers.tuned(partial(make, damping=damping), goal, FIRST_STEP_SIZE)
            for damping in config.dampings
        }
        runs = (  # of which two at a time are in memory
            (damping, self._sample(name, sampler)) for damping, sampler in tuned.items()
        )
        damping, draws = max(runs, key=lambda run: _pooled(run[1]["projections"]))
        step_size: Any = draws.step_size  # a number, since it was tuned
        for _ in range(MAX_RUNS):
            if least < draws.acceptance_rate < 2 * goal - least:
                break
            # What is rejected grows like ε³, and faster where a shorter step does not come so far.
            rejected = max(1 - draws.acceptance_rate, (1 - goal) / 16)
            step_size *= ((1 - goal) / rejected) ** (1 / 4)
            draws = self._sample(name, make(step_size, damping))
        return [{"damping": damping, "step_size": step_size} | row for row in _over_time(config, draws)]

    def _sample(self, name: str, sampler: Any) -> Draws:
        config, target = self.config, self.targets[name]

        def of_parameters(function):
            return lambda position: function(target.to_parameters(position))

        return sample(
            self.rng_key,
            sampler,
            target,
            num_samples=config.num_steps // config.thin,
            thin=config.thin,
            burn_in=config.burn_in,
            num_chains=config.num_chains,
            initial=self.starts[name],
            collect={name: of_parameters(function) for name, function in self.quantities.items()},
        )


def _over_time(config: LangevinGain, draws: Draws) -> list[dict[str, Any]]:
    rates = draws.stats["acceptance_rate"]
    num_chains, num_draws = rates.shape
    ms_per_step = 1e3 * draws.seconds / (num_chains * (config.burn_in + num_draws * config.thin))
    rows = []
    for checkpoint in range(1, config.num_checkpoints + 1):
        until = num_draws * checkpoint // config.num_checkpoints
        row = {
            "step": until * config.thin,
            "acceptance": float(rates[:, :until].mean()),
            "ms_per_step": ms_per_step,
        }
        for quantity, values in draws.collected.items():
            seen = values[:, :until].reshape(num_chains, until, -1)
            row |= {f"{name}_{quantity}": number for name, number in _worth(seen, config.thin).items()}
        per_step = row["pooled_projections"]
        row["ess_per_second"] = None if per_step is None else 1e3 * per_step / ms_per_step
        rows.append(row)
    return rows


def _worth(draws: Float[np.ndarray, "chain draw entry"], thin: int) -> dict[str, float | None]:
    """Effective samples per step, chain by chain and pooled, with errors, and how far the chains agree."""
    num_chains, num_draws, _ = draws.shape
    alone = np.array([effective_sample_size(chain[None]) for chain in draws], float) / num_draws
    mean, low, high = band(alone.mean(axis=0))
    left_out = [_pooled(np.delete(draws, chain, axis=0)) for chain in range(num_chains)]
    per_draw = {
        "ess": mean,
        "ess_error": alone.mean(axis=1).std(ddof=1) / math.sqrt(num_chains),
        "ess_low": low,
        "ess_high": high,
        "pooled": _pooled(draws),
        "pooled_error": np.std(left_out) * math.sqrt(num_chains - 1),
    }
    is_moving = np.isfinite(alone).all()
    per_step = {name: float(value) / thin if is_moving else None for name, value in per_draw.items()}
    return per_step | convergence_summary(draws)


def _pooled(draws: Float[np.ndarray, "chain draw entry"]) -> float:
    """`ess_bulk` of all chains per draw, mean over the entries."""
    import arviz

    return float(np.mean(arviz.ess(draws.astype(float), method="bulk"))) / math.prod(draws.shape[:2])
