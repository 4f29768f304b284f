"""Four samplers over width: more layers, other architectures and other data (Pezzetti et al. 2025, §5)."""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple

import arviz
import jax
import numpy as np
from book.experiments.chain_summaries import (
    LEAST_DRAWS,
    behind,
    bulk_and_tail,
    ess_per_step,
    finite,
    is_resolved,
    mean_of_chains,
)
from book.experiments.configuration import Configuration, Count, Several
from book.experiments.experiment import experiment
from book.experiments.fields import Noise, NumTest, Seed
from book.experiments.findings import Finding
from book.experiments.networks import Network, network, observed, observes, over_widths
from book.experiments.posterior import LMC, SAMPLERS, Posterior, size
from widebnn import samplers
from widebnn._check import at_least, fraction
from widebnn.sampling import Draws, sample
from widebnn.tables import Measure, Results, Row

__all__ = ["Architectures", "Case", "architectures"]


class Case(NamedTuple):
    """One posterior, and how long it is sampled.

    Attributes
    ----------
    network
        The network whose parameters have this posterior.
    step_size
        The coefficient of the noise of all samplers but HMC, or where γ is not 1 the leapfrog step.
    num_steps
        Steps of a chain, and gradients of one of HMC; as many gradients of HMC first bring the chains from
        the prior to where all samplers start.
    """

    network: Network
    step_size: float
    num_steps: int


class Architectures(Configuration):
    """The posteriors, and how chains run."""

    cases: Annotated[tuple[Case, ...], "The posteriors; those that differ in width alone are compared."]
    num_test: NumTest = 10
    num_kicks: Annotated[Count, "Gradients of a proposal of HMC."] = 4
    num_chains: Annotated[Several, "Chains, which all samplers start at the same places."] = 3
    thin: Annotated[Count, "Steps from one draw to the next; gradients of HMC."] = 8
    noise_std: Noise = 0.1
    seed: Seed = 0

    def check(self):
        """`thin` is a multiple of `num_kicks` and each case has known names and eight draws of a chain."""
        if self.thin % self.num_kicks:
            raise ValueError(f"thin must be a multiple of num_kicks={self.num_kicks}; got {self.thin}")
        for case in self.cases:
            case.network.check()
            fraction(step_size=case.step_size)
            at_least(LEAST_DRAWS * self.thin, num_steps=case.num_steps)


def _over(
    architecture: str, dataset: str, depth: int, num_train: int, step_size: float, steps: Mapping[int, int]
) -> tuple[Case, ...]:
    """The cases of one setting, from the steps of a chain by width."""
    networks = over_widths(architecture, dataset, depth, num_train, steps)
    return tuple(Case(one, step_size, steps[one.width]) for one in networks)


@experiment(
    "samplers over width, beyond one hidden layer",
    scales={
        "smoke": Architectures(cases=_over("dense", "digits", 2, 16, 0.2, {32: 480, 128: 480}), num_test=3),
        "laptop": Architectures(
            cases=_over("dense", "cifar10", 1, 256, 0.2, {512: 1_600, 2_048: 640, 8_192: 200, 16_384: 160})
            + _over("dense", "cifar10", 3, 128, 0.1, {128: 1_040, 512: 520, 1_024: 200})
            + _over("dense", "mnist", 1, 256, 0.1, {512: 640, 2_048: 320})
            + _over("dense", "digits", 1, 256, 0.1, {512: 640, 2_048: 320})
            + _over("convolutional", "digits", 2, 32, 0.1, {8: 1_040, 32: 640, 128: 200})
            + _over("residual", "digits", 20, 8, 0.1, {32: 280, 128: 160}),
            seed=1,
        ),
        "colab": Architectures(
            cases=_over("dense", "cifar10", 1, 256, 0.2, dict.fromkeys((512, 2_048, 8_192, 16_384), 4_000))
            + _over("dense", "cifar10", 3, 256, 0.1, dict.fromkeys((128, 512, 2_048), 4_000))
            + _over("dense", "mnist", 1, 256, 0.1, dict.fromkeys((512, 2_048, 8_192), 4_000))
            + _over("convolutional", "cifar10", 3, 32, 0.1, dict.fromkeys((16, 64, 256), 500))
            + _over("residual", "cifar10", 20, 32, 0.1, dict.fromkeys((32, 128), 1_000))
        ),
        "paper": Architectures(
            cases=_over("dense", "cifar10", 1, 256, 0.2, dict.fromkeys((512, 2_048, 8_192, 16_384), 100_000))
            + _over("dense", "cifar10", 3, 256, 0.1, dict.fromkeys((128, 512, 2_048, 4_096), 100_000))
            + _over("dense", "mnist", 1, 256, 0.1, dict.fromkeys((512, 2_048, 8_192, 16_384), 100_000))
            + _over("convolutional", "cifar10", 3, 256, 0.1, dict.fromkeys((32, 128, 512), 20_000))
            + _over("residual", "cifar10", 20, 256, 0.1, dict.fromkeys((64, 256), 20_000)),
            num_test=5_000,
        ),
    },
    parts="cases",
    observes=lambda c: observes(case.network for case in c.cases),
)
def architectures(config: Architectures) -> Iterator[Row]:
    """Run pCN, pCNL, Langevin with two dampings and HMC from the same places in each posterior.

    The target is the marginal one, rotated where the first layer is dense: what that leaves out of φ has a
    constant potential, which neither pCN nor pCNL nor function-space HMC sees; Langevin carries its norm
    (`num_flat` of `widebnn.samplers.langevin`). The acceptance of all is in law the one on the whole of φ.

    The paper left this open, and "paper" is what goes on from its setting.

    Yields
    ------
    Rows with the network and sampler; step_size, of HMC as tuned; num_test; num_steps of a chain, proposals
    of HMC; dimension of φ; acceptance and mean potential, each with its standard error; effective samples per
    step of the potential and of Rao–Blackwellised predictions (mean over test images × outputs), each with
    the standard error from the scatter over chains; rank-normalised R̂ of the potential, and its `ess_bulk_`
    and `ess_tail_` of all chains together, per step of one chain; milliseconds per step of one chain. None
    where a chain that never moved leaves a number undefined.
    """
    for case in config.cases:
        yield from _rows(config, case)


def _rows(config: Architectures, case: Case) -> Iterator[Row]:
    one = case.network
    dataset = observed(one.architecture, one.dataset, one.num_train, config.num_test)
    bnn = network(one.architecture, dataset, one.width, one.depth, config.noise_std, config.seed)
    posterior = Posterior(bnn, dataset)
    target = posterior.informed
    burn_in_key, rng_key = jax.random.split(jax.random.key(config.seed))
    hmc = partial(samplers.function_space_hmc, target.potential, num_steps=config.num_kicks)
    equilibrium = sample(
        burn_in_key,
        samplers.tuned(hmc, 0.8, max_step_size=np.pi / 2),
        target,
        num_samples=1,
        burn_in=case.num_steps // config.num_kicks,
        num_chains=config.num_chains,
    )
    angle: Any = equilibrium.step_size  # a number, since it was tuned
    made = {name: make(posterior, case.step_size) for name, make in SAMPLERS.items()}
    for name, sampler in (made | {"HMC": hmc(angle)}).items():
        draws = sample(
            rng_key,
            sampler,
            target,
            num_samples=case.num_steps // config.thin,
            thin=config.thin // (config.num_kicks if name == "HMC" else 1),
            num_chains=config.num_chains,
            initial=equilibrium.position,
            collect={"potential": target.potential, "predictions": target.predictive_mean(posterior.seen)},
        )
        yield (
            case.network._asdict()
            | {
                "sampler": name,
                "step_size": angle if name == "HMC" else case.step_size,
                "num_test": draws["predictions"].shape[2],
                "num_steps": draws["potential"].shape[1] * draws.thin,
                "dimension": size(posterior.repriorised),
            }
            | _summary(draws)
        )


def _summary(draws: Draws) -> Row:
    potential = draws["potential"].astype(float)
    num_steps = potential.shape[1] * draws.thin
    total_steps = len(potential) * num_steps
    has_moved = bool(np.ptp(potential, axis=1).all())  # else R̂ is a ratio to a variance of 0 or of rounding
    with np.errstate(invalid="ignore", divide="ignore"):
        ranked = {"rhat": arviz.rhat(potential)}
    ranked |= {name: ess / total_steps for name, ess in bulk_and_tail(potential).items()}
    found = {f"{name}_potential": finite(value) if has_moved else None for name, value in ranked.items()}
    measures = {
        "acceptance": mean_of_chains(draws.stats["acceptance_rate"]),
        "potential": mean_of_chains(potential),
    }
    measures |= {f"ess_{name}": ess_per_step(values, num_steps) for name, values in draws.collected.items()}
    for name, measure in measures.items():
        found |= {column: finite(value) for column, value in measure.columns(name).items()}
    return found | {"ms_per_step": 1e3 * draws.seconds / total_steps}


SETTING = ("architecture", "dataset", "depth")


@architectures.claim(
    "P-X",
    where="Section 5",
    claim="The trends hold in deeper networks, other architectures and on other data, and gaps widen with the"
    " width.",
    paper="left open",
    rule="In every setting pCN and pCNL, as corrected, accept more at the widest network than at the "
    "narrowest, pCNL accepts more than pCN at the widest, and its lead over LMC is greater there than at "
    "the narrowest. With one hidden layer on CIFAR-10, up to width 16,384, the ratio of its effective "
    "samples of U to those of pCN grows too, over the widths at which bulk and tail have 150 of each, which "
    "stand for a hundred. LMC has γ = 1, which is meant where none is named, and 0.01, the published "
    "default.",
    would_change="5,000 steps or more, as many at every width, of chains that agree.",
    page="11-left-open#fig-left-open",
)
def left_open(results: Results) -> Iterator[Finding]:
    for (architecture, dataset, depth), rows in results.rows.by(*SETTING):
        what = f"{architecture}, {dataset}, depth {depth}"
        rates = {
            name: rows.where(sampler=name).over("width", "acceptance", "acceptance_error")
            for name in ("pCN", "pCNL", *LMC.values())
        }
        for name in ("pCN", "pCNL"):
            rise = rates[name][-1] - rates[name][0]
            yield Finding(f"{what}: {name}, widest less narrowest", rise, above=0)
        above = rates["pCNL"][-1] - rates["pCN"][-1]
        yield Finding(f"{what}: pCNL less pCN, widest", above, above=0)
        for lmc, name in LMC.items():
            gaps = [a - b for a, b in zip(rates["pCNL"], rates[name], strict=True)]
            yield Finding(f"{what}: pCNL less {lmc}, widest less narrowest", gaps[-1] - gaps[0], above=0)
    longest, gains = (max((rows for _, rows in results.rows.by(*SETTING)), key=len), [])
    counted: list[Row] = []
    num_chains = results.settings["num_chains"]
    for width in sorted(longest.values("width")):
        pair = [longest.one(width=width, sampler=name) for name in ("pCNL", "pCN")]
        per_step = [row[f"ess{kind}_potential"] for row in pair for kind in ("_bulk", "_tail")]
        total = pair[0]["num_steps"] * num_chains
        if is_resolved(*(ess and ess * total for ess in per_step)):
            pcnl, pcn = (Measure.of(row, "ess_potential") for row in pair)
            gains.append(pcnl / pcn)
            counted += pair
    widens = gains[-1] / gains[0] if len(gains) > 1 else math.nan
    what = "ESS of U, pCNL ÷ pCN, over most widths: widest ÷ narrowest that is resolved"
    ends = counted[:2] + counted[-2:]
    ess = (row["ess_bulk_potential"] * row["num_steps"] * num_chains for row in ends)
    chains = behind(ess, (row["rhat_potential"] for row in ends)) if len(gains) > 1 else None
    yield Finding(what, widens, above=1, chains=chains)
