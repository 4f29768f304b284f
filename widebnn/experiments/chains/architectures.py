"""Four samplers over width: more layers, other architectures and other data (Pezzetti et al. 2025, §5)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import arviz
import jax
import numpy as np

from widebnn import estimates, samplers, targets
from widebnn._check import at_least, fraction, one_of
from widebnn.diagnostics import effective_sample_size
from widebnn.experiments.chains.convergence import bulk_and_tail, whole_langevin
from widebnn.experiments.settings.images import LOADERS
from widebnn.experiments.settings.networks import NETWORKS, Network, network, observed, over_widths
from widebnn.sampling import Draws, sample

__all__ = ["ARCHITECTURES", "Architectures", "Case", "architectures"]

SAMPLERS: Mapping[str, Callable[["_Posterior"], samplers.Sampler]] = {
    "pCN": lambda posterior: samplers.pcn(posterior.target.potential, posterior.case.step_size),
    "pCNL": lambda posterior: samplers.pcnl(posterior.target.potential, posterior.case.step_size),
    "Langevin": lambda posterior: whole_langevin(
        posterior.target.potential, posterior.case.step_size, posterior.num_rest
    ),
    "HMC": lambda posterior: posterior.hmc(posterior.angle),
}
"""By name: all with the same coefficient of the noise, and function-space HMC with an angle that is tuned."""

LEAST_DRAWS = 8  # a chain is split in two, and half of it in two again


class Case(NamedTuple):
    """One posterior, and how long it is sampled.

    Attributes
    ----------
    network
        Of whose parameters.
    step_size
        The coefficient of the noise of all samplers but HMC.
    num_steps
        Steps of a chain, and gradients of one of HMC; as many gradients of HMC lead there from the prior.
    """

    network: Network
    step_size: float
    num_steps: int


@dataclass(frozen=True)
class Architectures:
    """The configuration of one run of the experiment.

    Attributes
    ----------
    cases
        The posteriors; those that differ in width alone are compared.
    num_test
        Images that are predicted, as far as there are so many.
    num_kicks
        Gradients of a proposal of HMC.
    num_chains
        Chains, which all samplers start at the same places.
    thin
        Steps from one draw to the next; gradients of HMC.
    noise_std
        σ.
    seed
        Of everything.
    """

    cases: tuple[Case, ...]
    num_test: int = 10
    num_kicks: int = 4
    num_chains: int = 3
    thin: int = 8
    noise_std: float = 0.1
    seed: int = 0


def _over(
    architecture: str, dataset: str, depth: int, num_train: int, step_size: float, steps: Mapping[int, int]
) -> tuple[Case, ...]:
    """The cases of one setting, from the steps of a chain by width."""
    networks = over_widths(architecture, dataset, depth, num_train, steps)
    return tuple(Case(one, step_size, steps[one.width]) for one in networks)


ARCHITECTURES = {
    "smoke": Architectures(
        cases=_over("dense", "digits", 2, 16, 0.2, {32: 480, 128: 480}),
        num_test=3,
    ),
    "laptop": Architectures(
        cases=_over("dense", "cifar10", 1, 256, 0.2, {512: 1_600, 2_048: 640, 8_192: 200, 16_384: 160})
        + _over("dense", "cifar10", 3, 128, 0.1, {128: 1_040, 512: 520, 1_024: 200})
        + _over("dense", "mnist", 1, 256, 0.1, {512: 640, 2_048: 320})
        + _over("dense", "digits", 1, 256, 0.1, {512: 640, 2_048: 320})
        + _over("convolutional", "digits", 2, 32, 0.1, {8: 1_040, 32: 640, 128: 200})
        + _over("residual", "digits", 20, 8, 0.1, {32: 280, 128: 160})
    ),
    "colab": Architectures(
        cases=_over("dense", "cifar10", 1, 256, 0.2, dict.fromkeys((512, 2_048, 8_192, 16_384), 4_000))
        + _over("dense", "cifar10", 3, 256, 0.1, dict.fromkeys((128, 512, 2_048), 4_000))
        + _over("dense", "mnist", 1, 256, 0.1, dict.fromkeys((512, 2_048, 8_192), 4_000))
        + _over("convolutional", "cifar10", 3, 32, 0.1, dict.fromkeys((16, 64, 256), 500))
        + _over("residual", "cifar10", 20, 32, 0.1, dict.fromkeys((32, 128), 1_000)),
    ),
    "paper": Architectures(
        cases=_over("dense", "cifar10", 1, 256, 0.2, dict.fromkeys((512, 2_048, 8_192, 16_384), 100_000))
        + _over("dense", "cifar10", 3, 256, 0.1, dict.fromkeys((128, 512, 2_048, 4_096), 100_000))
        + _over("dense", "mnist", 1, 256, 0.1, dict.fromkeys((512, 2_048, 8_192, 16_384), 100_000))
        + _over("convolutional", "cifar10", 3, 256, 0.1, dict.fromkeys((32, 128, 512), 20_000))
        + _over("residual", "cifar10", 20, 256, 0.1, dict.fromkeys((64, 256), 20_000)),
        num_test=5_000,
    ),
}
"""The configuration at each scale; the paper left this open, and "paper" is what goes on from its setting."""


def architectures(
    config: Architectures, on_row: Callable[[dict[str, Any]], None] = lambda row: None
) -> list[dict[str, Any]]:
    """Run four samplers from the same places in each posterior.

    The target is the marginal one, rotated where the first layer is dense: what that leaves out of φ has a
    constant potential, which neither pCN nor pCNL nor function-space HMC see; Langevin carries its norm
    (`whole_langevin`). The acceptance of all is in law the one on the whole of φ.

    Parameters
    ----------
    config
        What to run.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with the network and sampler; step_size, of HMC as tuned; num_test; num_steps of a chain, proposals
    of HMC; dimension of φ; acceptance and mean potential, each with its standard error; effective samples per
    step of the potential and of Rao–Blackwellised predictions (mean over test images × outputs), each with
    the standard error from the scatter over chains; rank-normalised R̂ of the potential, and its `ess_bulk_`
    and `ess_tail_` of all chains together, per step of one chain; milliseconds a step of one chain. None
    where a chain that never moved leaves a number undefined.

    Raises
    ------
    ValueError
        If a name is unknown, a number out of range, there are fewer than two chains or eight draws of each,
        or `thin` is no multiple of `num_kicks`.
    """
    at_least(2, num_chains=config.num_chains)
    if at_least(1, thin=config.thin) % at_least(1, num_kicks=config.num_kicks):
        raise ValueError(f"thin must be a multiple of num_kicks={config.num_kicks}; got {config.thin}")
    for case in config.cases:
        one_of(NETWORKS, architecture=case.network.architecture)
        one_of(LOADERS, dataset=case.network.dataset)
        fraction(step_size=case.step_size)
        at_least(LEAST_DRAWS * config.thin, num_steps=case.num_steps)
    rows = []
    for case in config.cases:
        posterior = _Posterior(config, case)
        for name in SAMPLERS:
            rows.append(case.network._asdict() | {"sampler": name} | posterior.run(name))
            on_row(rows[-1])
    return rows


class _Posterior:
    """One network's posterior, chains in it, and the angle of function-space HMC there."""

    def __init__(self, config: Architectures, case: Case):
        self.config, self.case = config, case
        self.target, self.num_rest, seen = _target(config, case.network)
        burn_in_key, self.rng_key = jax.random.split(jax.random.key(config.seed))
        equilibrium = sample(
            burn_in_key,
            samplers.tuned(self.hmc, 0.8, max_step_size=np.pi / 2),
            self.target,
            num_samples=1,
            burn_in=case.num_steps // config.num_kicks,
            num_chains=config.num_chains,
        )
        self.angle, self.start = equilibrium.step_size, equilibrium.position
        self.collect = {"potential": self.target.potential, "predictions": self.target.predictive_mean(seen)}

    def hmc(self, angle):
        return samplers.function_space_hmc(self.target.potential, angle, self.config.num_kicks)

    def run(self, name: str) -> dict[str, Any]:
        config = self.config
        per_step = config.num_kicks if name == "HMC" else 1
        draws = sample(
            self.rng_key,
            SAMPLERS[name](self),
            self.target,
            num_samples=self.case.num_steps // config.thin,
            thin=config.thin // per_step,
            num_chains=config.num_chains,
            initial=self.start,
            collect=self.collect,
        )
        return {
            "step_size": self.angle if name == "HMC" else self.case.step_size,
            "num_test": draws["predictions"].shape[2],
            "num_steps": draws["potential"].shape[1] * draws.thin,
            "dimension": _size(self.target) + self.num_rest,
        } | _summary(draws)


def _target(config: Architectures, of: Network):
    """What is sampled, the number of coordinates of φ that it leaves out, and the images to predict."""
    dataset = observed(of.architecture, of.dataset, of.num_train, config.num_test)
    bnn = network(of.architecture, dataset, of.width, of.depth, config.noise_std, config.seed)
    x, y = dataset.x_train, dataset.y_train
    target, seen = targets.marginal(bnn, x, y), dataset.x_test
    if of.architecture == "dense":
        target = targets.rotated(target)
        seen = (seen @ target.basis @ target.basis.T).astype(seen.dtype)  # new inputs see no fresh weights
    return target, _size(targets.repriorised(bnn, x, y)) - _size(target), seen


def _size(target: targets.Target) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(target.template))


def _summary(draws: Draws) -> dict[str, Any]:
    potential = draws["potential"].astype(float)
    num_steps = potential.shape[1] * draws.thin
    total_steps = len(potential) * num_steps
    has_moved = bool(np.ptp(potential, axis=1).all())  # else R̂ is a ratio to a variance of 0 or of rounding
    with np.errstate(invalid="ignore", divide="ignore"):
        ranked = {"rhat": arviz.rhat(potential)}
    ranked |= {name: ess / total_steps for name, ess in bulk_and_tail(potential).items()}
    found = {f"{name}_potential": _number(value) if has_moved else None for name, value in ranked.items()}
    for name, series in {"acceptance": draws.stats["acceptance_rate"], "potential": potential}.items():
        mean, error = estimates.mean_and_mcse(series)
        found |= {name: mean, f"{name}_error": _number(error)}
    for name, values in draws.collected.items():
        each = np.stack([effective_sample_size(chain[None]) for chain in values]) / num_steps
        chains = each.reshape(len(each), -1).mean(axis=1)
        found |= {
            f"ess_{name}": _number(chains.mean()),
            f"ess_{name}_error": _number(chains.std(ddof=1) / math.sqrt(len(chains))),
        }
    return found | {"ms_per_step": 1e3 * draws.seconds / total_steps}


def _number(value) -> float | None:
    return float(value) if np.isfinite(value) else None
