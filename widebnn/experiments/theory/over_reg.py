"""T and the Jacobian map R over the regulariser: effective samples per step (Hron et al. 2022, Figure 10)."""

from collections.abc import Iterator
from operator import itemgetter
from typing import Annotated

import jax

from widebnn import targets
from widebnn.diagnostics import random_projections
from widebnn.experiments.settings.chain_summaries import behind, is_resolved
from widebnn.experiments.settings.fields import Images, NumTrain
from widebnn.experiments.settings.networks import in_span, network, observed
from widebnn.experiments.settings.tuned_chains import TunedChains, effective_samples, share_folded
from widebnn.study import Finding, Measure, Results, Row, experiment
from widebnn.study.configuration import Count, Positives
from widebnn.tree import inner_product

__all__ = ["OverReg", "over_reg"]


class OverReg(TunedChains):
    """T and R over λ, on so few images that determinants of R are exact."""

    dataset: Images = "cifar10"
    num_train: NumTrain = 8
    width: Annotated[Count, "Units of the one hidden layer."] = 8
    regs: Annotated[Positives, "λ."] = (1e-2, 1e-1, 1.0, 10.0, 100.0)
    num_prior: Annotated[Count, "Prior draws at which the sign of det ∂R/∂φ is computed."] = 2_000


@experiment(
    "two maps of the weights over their regulariser",
    scales={  # "paper" has λ of Figure 10, with λ = 10² more; no steps are stated
        "smoke": OverReg(
            dataset="digits",
            num_train=4,
            width=4,
            num_chains=4,
            num_steps=300,
            burn_in=200,
            regs=(1e-2, 100.0),
            num_prior=200,
        ),
        "laptop": OverReg(num_steps=10_000, burn_in=2_000, seed=2),
        "colab": OverReg(num_steps=100_000),
        "paper": OverReg(num_steps=3_000_000, regs=(1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)),
    },
    # whole, for each part would run the chain of the identity again
    observes=lambda c: [(c.dataset, c.num_train)],
)
def over_reg(config: OverReg) -> Iterator[Row]:
    """Langevin on the standard parametrisation, and on those by T and by R (exact determinant) over λ.

    The network sees the images by their coordinates in the span of those that it observes (`in_span`).

    Yields
    ------
    Rows with map ("identity", "T" or "R") and reg (None for the identity); acceptance; step_size as tuned;
    effective samples per step of projections of θ (their mean) and of ‖θ‖², each with the standard error from
    the scatter over chains, and `rhat_projections` and `rhat_norm` (means); for R the share of prior draws
    with det ∂R/∂φ < 0, where R is not a bijection and its chain does not sample the posterior.
    """
    dataset = in_span(observed("dense", config.dataset, config.num_train, 1))
    bnn = network("dense", dataset, config.width, 1, config.noise_std, config.seed)
    x, y = dataset.x_train, dataset.y_train
    keys = jax.random.split(jax.random.key(config.seed), 3)
    project = random_projections(keys[0], bnn.template(x), num=config.num_projections)
    quantities = {"projections": project, "norm": lambda theta: inner_product(theta, theta)}
    make = {
        "identity": lambda reg: targets.standard(bnn, x, y),
        "T": lambda reg: targets.repriorised(bnn, x, y, reg),
        "R": lambda reg: targets.jacobian(bnn, x, y, reg),
    }
    for name, reg in [("identity", None), *((name, reg) for name in "TR" for reg in config.regs)]:
        target = make[name](reg)
        row = {"map": name, "reg": reg} | effective_samples(keys[1], target, config, quantities)
        if name == "R":
            row["folded"] = share_folded(keys[2], target, config.num_prior)
        yield row


@over_reg.claim(
    "H-F10",
    where="Figure 10",
    claim="The map T of the readout mixes better than the Jacobian map R over all regularisers.",
    paper="R is competitive at times, T clearly preferable; subsets of CIFAR-10",
    rule="The best T has more effective samples per step than the best R, folded or not, of projections, "
    "which decides. "
    "Shown are the same of the squared norm, and against the identity. Resolved are 150 effective samples of "
    "all chains, which stand for a hundred. Errors are judged by Student's t. On eight images of CIFAR-10 in "
    "ten classes and width 8, where determinants are exact; γ = 2ε (Theorem 9.1) for all.",
    would_change="Chains long enough to converge; larger subsets of CIFAR-10, for which determinants of R "
    "have to be estimated.",
    page="17-other-maps#fig-reg",
)
def readout_map_is_best(results: Results) -> Iterator[Finding]:
    total = results.config["num_chains"] * results.config["num_steps"]
    for quantity, name in (("projections", "projections"), ("norm", "‖θ‖²")):
        column = f"ess_{quantity}"
        rows = {of: max(found, key=itemgetter(column)) for of, found in results.rows.by("map")}
        best = {of: Measure.of(row, column) for of, row in rows.items()}
        for other, its_name in (("R", "best R"), ("identity", "identity")):
            ess = [best[of].value * total for of in ("T", other)]
            yield Finding(
                f"ESS of {name}, best T ÷ {its_name}",
                best["T"] / best[other],
                above=1,
                degrees=results.config["num_chains"] - 1,
                decides=(name, other) == ("projections", "R"),
                resolved=is_resolved(*ess),
                chains=behind(ess, (rows[of][f"rhat_{quantity}"] for of in ("T", other))),
            )
