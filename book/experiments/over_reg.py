"""T and the Jacobian map R over the regulariser: effective samples per step (Hron et al. 2022, Figure 10)."""

import math
from collections.abc import Iterator
from operator import itemgetter

import jax

from book.experiments.chain_summaries import behind, is_resolved
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.networks import in_span, network, observed
from book.experiments.tuned_chains import effective_samples, share_folded
from widebnn import targets
from widebnn.diagnostics import random_projections
from widebnn.tables import Measure, Results, Row
from widebnn.tree import inner_product

__all__ = ["over_reg"]


@experiment(SETTINGS["over_reg"])  # whole, for each part would run the chain of the identity again
def over_reg(
    *, dataset, num_train, width, regs, num_prior, noise_std, seed, num_projections, **chains
) -> Iterator[Row]:
    """Two maps of the weights over their regulariser.

    Langevin on the standard parametrisation, and on those by T and by R (exact determinant) over λ. The
    network sees the images by their coordinates in the span of those that it observes (`in_span`).

    Yields
    ------
    Rows with map ("identity", "T" or "R") and reg (None for the identity); acceptance; step_size as tuned;
    effective samples per step of projections of θ (their mean) and of ‖θ‖², each with the standard error from
    the scatter over chains, and `rhat_projections` and `rhat_norm` (means); for R the share of prior draws
    with det ∂R/∂φ < 0, where R is not a bijection and its chain does not sample the posterior.
    """
    dataset = in_span(observed("dense", dataset, num_train, 1))
    bnn = network("dense", dataset, width, 1, noise_std, seed)
    x, y = dataset.x_train, dataset.y_train
    keys = jax.random.split(jax.random.key(seed), 3)
    project = random_projections(keys[0], bnn.template(x), num=num_projections)
    quantities = {"projections": project, "norm": lambda theta: inner_product(theta, theta)}
    make = {
        "identity": lambda reg: targets.standard(bnn, x, y),
        "T": lambda reg: targets.repriorised(bnn, x, y, reg),
        "R": lambda reg: targets.jacobian(bnn, x, y, reg),
    }
    for name, reg in [("identity", None), *((name, reg) for name in "TR" for reg in regs)]:
        target = make[name](reg)
        row = {"map": name, "reg": reg} | effective_samples(keys[1], target, quantities, **chains)
        if name == "R":
            row["folded"] = share_folded(keys[2], target, num_prior)
        yield row


@over_reg.claim("H-F10")
def readout_map_is_best(results: Results) -> Iterator[Finding]:
    total = results.settings["num_chains"] * results.settings["num_steps"]
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
                degrees=results.settings["num_chains"] - 1,
                decides=(name, other) == ("projections", "R"),
                resolved=is_resolved(*ess),
                chains=behind(ess, (rows[of][f"rhat_{quantity}"] for of in ("T", other))),
            )


@over_reg.claim("H-F7e")
def exact_regulariser_is_best(results: Results) -> Iterator[Finding]:
    total = results.settings["num_chains"] * results.settings["num_steps"]
    exact = results.settings["noise_std"] ** 2
    first, *rest = sorted(results.rows.where(map="T"), key=lambda row: abs(math.log(row["reg"] / exact)))
    others = {"best other λ": max(rest, key=itemgetter("ess_projections"))}
    others["identity"] = results.rows.one(map="identity")
    for name, other in others.items():
        pair = first, other
        gain, less = (Measure.of(row, "ess_projections") for row in pair)
        ess = [row["ess_projections"] * total for row in pair]
        yield Finding(
            f"ESS of projections, T with λ = {first['reg']:g} ÷ {name}",
            gain / less,
            above=1,
            degrees=results.settings["num_chains"] - 1,
            decides=name != "identity",
            resolved=is_resolved(*ess),
            chains=behind(ess, (row["rhat_projections"] for row in pair)),
        )
