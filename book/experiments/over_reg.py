"""T and the Jacobian map R over the regulariser: effective samples per step (Hron et al. 2022, Figure 10)."""

import math
from collections.abc import Iterator
from operator import itemgetter

import jax

from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.networks import in_span, network, observed
from book.experiments.tuned_chains import effective_samples, gain, share_folded
from widebnn import targets
from widebnn.diagnostics import random_projections
from widebnn.tables import Results, Row, Rows
from widebnn.tree import inner_product

__all__ = ["over_reg"]


@experiment(SETTINGS["over_reg"])  # whole, for each part would run the chain of the identity again
def over_reg(
    *, dataset, num_train, width, regs, num_prior, noise_std, seed, num_projections, maps="TR", **chains
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
    quantities = {"projections": project, "norm": lambda _, theta: inner_product(theta, theta)}
    make = {
        "identity": lambda reg: targets.standard(bnn, x, y),
        "T": lambda reg: targets.repriorised(bnn, x, y, reg),
        "R": lambda reg: targets.jacobian(bnn, x, y, reg),
    }
    for name, reg in [("identity", None), *((name, reg) for name in maps for reg in regs)]:
        target = make[name](reg)
        row = {"map": name, "reg": reg} | effective_samples(keys[1], target, quantities, **chains)
        if name == "R":
            row["folded"] = share_folded(keys[2], target, num_prior)
        yield row


@experiment(SETTINGS["reg_of_t"])
def reg_of_t(**settings) -> Iterator[Row]:
    """T alone over its regulariser, in longer chains: a step of R costs as much as a hundred of T."""
    return over_reg(maps="T", **settings)


@over_reg.claim("H-F10")
def readout_map_is_best(results: Results) -> Iterator[Finding]:
    for quantity, name in (("projections", "projections"), ("norm", "‖θ‖²")):
        column = itemgetter(f"ess_{quantity}")
        best = {of: max(found, key=column) for of, found in results.rows.by("map")}
        for other, its_name in (("R", "best R"), ("identity", "identity")):
            what = f"ESS of {name}, best T ÷ {its_name}"
            decides = (name, other) == ("projections", "R")
            yield gain(results, what, best["T"], best[other], quantity, above=1, decides=decides)


@over_reg.claim("H-E2c")
def readout_map_is_cheaper(rows: Rows) -> Iterator[Finding]:
    ms = {name: of.column("ms_per_step") for name, of in rows.by("map")}
    yield Finding(
        "milliseconds per step, least of R ÷ greatest of T", ms["R"].min() / ms["T"].max(), above=10
    )


@reg_of_t.claim("H-F7e")
def exact_regulariser_is_best(results: Results) -> Iterator[Finding]:
    exact = results.settings["noise_std"] ** 2
    first, *rest = sorted(results.rows.where(map="T"), key=lambda row: abs(math.log(row["reg"] / exact)))
    sides = ("smaller", lambda row: row["reg"] < exact), ("greater", lambda row: row["reg"] > exact)
    column = itemgetter("ess_projections")
    others = {f"best {side} λ": max(filter(is_there, rest), key=column) for side, is_there in sides}
    best = max(others, key=lambda side: column(others[side]))
    others["identity"] = results.rows.one(map="identity")
    for name, other in others.items():
        what = f"ESS of projections, T with λ = {first['reg']:g} ÷ {name}"
        yield gain(results, what, first, other, above=1, decides=name == best)
