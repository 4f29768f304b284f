"""Every experiment that there is."""

import math

from widebnn.experiments.errata.algorithms import ALGORITHMS, algorithms
from widebnn.experiments.errata.published_pcnl import PUBLISHED_PCNL, published_pcnl
from widebnn.experiments.settings.images import INPUTS, PIXELS
from widebnn.experiments.theory.counterexample import COUNTEREXAMPLE, counterexample
from widebnn.experiments.theory.identities import IDENTITIES, identities
from widebnn.experiments.theory.landscape import LANDSCAPE, landscape
from widebnn.experiments.theory.other_maps import OVER_MAPS, OVER_REG, over_maps, over_reg
from widebnn.experiments.theory.theorems import CHAINS, THEOREMS, theorems
from widebnn.experiments.variational.approximations import APPROXIMATIONS, approximations
from widebnn.experiments.variational.collapse import COLLAPSE, collapse
from widebnn.experiments.variational.elbo_ratio import ELBO_RATIO, elbo_ratio
from widebnn.experiments.variational.mean_field_limit import (
    CONCENTRATION,
    MEAN_FIELD_GAP,
    SUPREMA,
    concentration,
    mean_field_gap,
    suprema,
)
from widebnn.experiments.variational.resnet import RESNET, resnet
from widebnn.experiments.variational.tempering import TEMPERING, TemperedFits, tempering
from widebnn.study import Cost, Experiment

__all__ = ["DECLARED"]


def _declared(
    name,
    title,
    configs,
    function,
    *,
    effort,
    steps=None,
    floats=None,
    over=(),
    observes=lambda c: (),
    **_,
):
    """An experiment whose function has its cost and its claims elsewhere."""

    def cost(c):
        return Cost(effort(c), steps and steps(c), floats and floats(c))

    made = Experiment(function, title, configs, over, cost, observes, None)
    made.name = name
    return made


def _batches(c: TemperedFits) -> int:
    """Of all fits, one after another."""
    return len(c.taus) * c.num_repeats * c.num_epochs * math.ceil(c.num_train / c.batch_size)


# A sampler holds its position, a proposal, gradients, momenta and variates: about 8 times the weights. Adam
# on q holds μ and ρ, their moments, gradients and updates: about 12 times. A fit by L-BFGS-B takes some 2,000
# steps; a step of a ResNet starts about ten times as many operations as one of a sampler.

# Whole stay those whose entries share something: random numbers (approximations, concentration), a chain that
# each part would have to run again (over_reg), the mean and the deviation of the most images (landscape).
_ALL = (
    _declared(
        "theorems",
        "what vanishes in the limit theorems, over width",
        THEOREMS,
        theorems,
        effort=lambda c: (
            c.num_train
            * sum(c.widths)
            * (3 * c.num_draws + 4 * len(CHAINS) * c.num_chains * (c.num_steps + c.burn_in))
            + sum(width**2 for width in c.function_widths) * c.num_functions
        ),
        steps=lambda c: (  # 64 draws at a time
            len(c.widths) * (c.num_draws / 64 + len(CHAINS) * (c.num_steps + c.burn_in))
            + len(c.function_widths) * c.num_functions / 64
        ),
    ),
    _declared(
        "identities",
        "exact statements on random problems",
        IDENTITIES,
        identities,
        effort=lambda c: len(c.sizes) * len(c.noise_stds),
        over=(("sizes",), ("noise_stds",)),
    ),
    _declared(
        "counterexample",
        "what another layer than the readout would leave",
        COUNTEREXAMPLE,
        counterexample,
        effort=lambda c: sum(c.widths) * c.num_draws,
        steps=lambda c: len(c.widths) * c.num_draws / 500,
        over=(("widths",),),
    ),
    _declared(
        "algorithms",
        "pCN and pCNL as printed and as they should be",
        ALGORITHMS,
        algorithms,
        effort=lambda c: (
            len(c.cases) * (5 * c.num_draws + 2 * c.num_chains * (c.num_samples * c.thin + c.burn_in))
        ),
        steps=lambda c: 2 * len(c.cases) * (c.num_samples * c.thin + c.burn_in),
        over=(("cases",),),
    ),
    _declared(
        "published_pcnl",
        "the law of the published pCNL against the posterior",
        PUBLISHED_PCNL,
        published_pcnl,
        steps=lambda c: sum(
            2 * leapfrog * (c.num_samples + c.burn_in) + steps
            for leapfrog, steps in zip(c.leapfrog_steps, c.pcnl_steps)
        ),
        floats=lambda c: (
            (c.num_train + c.num_test) * INPUTS + 8 * max(c.widths) * (INPUTS + c.num_chains * c.num_train)
        ),
        effort=lambda c: (
            c.num_train
            * sum(
                width * (2 * leapfrog * c.num_chains * (c.num_samples + c.burn_in) + steps)
                for width, leapfrog, steps in zip(c.widths, c.leapfrog_steps, c.pcnl_steps)
            )
        ),
        over=(("widths", "leapfrog_steps", "pcnl_steps"),),
    ),
    _declared(
        "landscape",
        "slices of the posterior before and after repriorisation",
        LANDSCAPE,
        landscape,
        steps=lambda c: len(c.problems) * (c.resolution**2 + 9 * c.num_products + 1_000),
        floats=lambda c: (
            max(width for width, _ in c.problems) * INPUTS * (8 + 2 * c.num_products)
            + 3 * max(width * n for width, n in c.problems)
        ),
        effort=lambda c: sum(math.prod(problem) for problem in c.problems) * c.resolution**2,
    ),
    _declared(
        "over_reg",
        "two maps of the weights over their regulariser",
        OVER_REG,
        over_reg,
        steps=lambda c: (1 + 2 * len(c.regs)) * (c.num_steps + c.burn_in),
        floats=lambda c: c.num_chains * (8 * c.width) ** 2 + 4 * c.num_prior * c.width,
        effort=lambda c: (1 + 2 * len(c.regs)) * c.num_chains * (c.num_steps + c.burn_in),
    ),
    _declared(
        "over_maps",
        "maps of the readout under a softmax likelihood, over width",
        OVER_MAPS,
        over_maps,
        steps=lambda c: len(c.widths) * len(c.maps) * (c.num_steps + c.burn_in),
        floats=lambda c: (
            max(c.widths)
            * (
                c.num_chains * (8 * c.num_inputs + 4 * c.num_train + c.num_projections)
                + c.num_prior * c.num_inputs
            )
        ),
        effort=lambda c: sum(c.widths) * len(c.maps) * c.num_train * c.num_chains * (c.num_steps + c.burn_in),
        over=(("widths",), ("maps",)),
    ),
    _declared(
        "collapse",
        "the best q of a plain ELBO over width",
        COLLAPSE,
        collapse,
        steps=lambda c: len(c.scalings) * len(c.widths) * (c.num_steps + 2_000),
        floats=lambda c: max(c.widths) * (4 * c.num_samples * c.num_digits + 12 * 74),
        effort=lambda c: sum(c.widths) * len(c.scalings) * len(c.losses) * c.num_steps * c.num_samples,
        over=(("losses",), ("scalings",), ("widths",)),
    ),
    _declared(
        "mean_field_gap",
        "how far the ELBO is from its mean-field limit",
        MEAN_FIELD_GAP,
        mean_field_gap,
        steps=lambda c: len(c.scalings) * len(c.widths) * c.num_posteriors * c.num_samples,
        floats=lambda c: max(c.widths) * (3 * c.num_train + 4 * 74),
        effort=lambda c: sum(c.widths) * c.num_train * c.num_posteriors * c.num_samples,
        over=(("losses",), ("scalings",), ("widths",)),
    ),
    _declared(
        "suprema",
        "the best ELBO of N neurons against the best of its limit",
        SUPREMA,
        suprema,
        steps=lambda c: 2_000 * len(c.taus) * len(c.widths) * (1 + c.num_starts),
        floats=lambda c: max(c.widths) * 2 * (6 * 8 + 4 * c.num_train),
        effort=lambda c: len(c.taus) * sum(c.widths) * (1 + c.num_starts) * c.num_train,
        over=(("taus",),),
    ),
    _declared(
        "concentration",
        "the limit functional over samples of the data",
        CONCENTRATION,
        concentration,
        effort=lambda c: sum(c.num_train) * c.num_replicates,
    ),
    _declared(
        "elbo_ratio",
        "the two terms of the ELBO before training",
        ELBO_RATIO,
        elbo_ratio,
        steps=lambda c: (
            sum(math.ceil(p / 2_000) for p in c.num_train) * len(c.widths) * len(c.scalings) * c.num_samples
        ),
        floats=lambda c: max(c.num_train) * PIXELS + max(c.widths) * (4 * PIXELS + 3 * 2_000),
        effort=lambda c: sum(c.num_train) * sum(c.widths) * len(c.scalings) * c.num_samples,
        over=(("datasets", "num_train"), ("scalings",), ("widths",)),
        observes=lambda c: zip(c.datasets, c.num_train),
    ),
    _declared(
        "tempering",
        "a two-layer network over the temperature of the ELBO",
        TEMPERING,
        tempering,
        steps=_batches,
        floats=lambda c: (c.num_train + 2 * c.num_test) * PIXELS + c.width * (12 * PIXELS + 6 * c.batch_size),
        effort=lambda c: len(c.taus) * c.num_repeats * c.num_epochs * c.num_train * c.width,
        over=(("taus",),),
        order=("repeat",),
    ),
    _declared(
        "resnet",
        "ResNet-20 over the temperature of the ELBO",
        RESNET,
        resnet,
        steps=lambda c: 10 * len(c.norms) * _batches(c),
        # 188,000 outputs of convolutions an image, four arrays of each kind, and 270,000 weights
        floats=lambda c: c.num_train * INPUTS + 4 * 188_000 * c.batch_size + 12 * 270_000,
        effort=lambda c: len(c.norms) * len(c.taus) * c.num_repeats * c.num_epochs * c.num_train,
        over=(("norms",), ("taus",)),
        order=("norm", "repeat"),
    ),
    _declared(
        "approximations",
        "one posterior and everything that approximates it",
        APPROXIMATIONS,
        approximations,
        steps=lambda c: (
            c.num_repeats
            * (
                2 * (c.num_sweeps * c.num_draws // c.num_chains + c.burn_in) * c.width
                + (1 + len(c.taus) + c.num_members) * c.num_epochs
            )
        ),
        floats=lambda c: (
            (c.num_repeats * c.num_train + c.num_test) * INPUTS
            + c.width * (12 * INPUTS + c.num_chains * (8 * c.num_train + c.num_test))
            + c.num_chains * c.num_test**2
        ),
        effort=lambda c: (
            c.num_repeats
            * c.num_train
            * c.width
            * (2 * c.num_draws * c.num_sweeps + (2 + len(c.taus)) * c.num_epochs)
        ),
    ),
)

DECLARED = {experiment.name: experiment for experiment in _ALL}
"""Experiments by name."""
