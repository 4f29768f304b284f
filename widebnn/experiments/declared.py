"""Every experiment that there is."""

import math

from widebnn.experiments.approximations import APPROXIMATIONS, approximations
from widebnn.experiments.collapse import COLLAPSE, collapse
from widebnn.experiments.convergence import CONVERGENCE, convergence
from widebnn.experiments.elbo_ratio import ELBO_RATIO, elbo_ratio
from widebnn.experiments.experiment import Experiment
from widebnn.experiments.landscape import LANDSCAPE, landscape
from widebnn.experiments.mean_field_limit import (
    CONCENTRATION,
    MEAN_FIELD_GAP,
    SUPREMA,
    concentration,
    mean_field_gap,
    suprema,
)
from widebnn.experiments.other_maps import OVER_MAPS, OVER_REG, over_maps, over_reg
from widebnn.experiments.published_pcnl import PUBLISHED_PCNL, published_pcnl
from widebnn.experiments.resnet import RESNET, resnet
from widebnn.experiments.tempering import TEMPERING, tempering
from widebnn.experiments.width import OVER_WIDTH, over_width

__all__ = ["DECLARED", "EXPERIMENTS"]

# Whole stay those whose entries share something: random numbers (approximations, concentration), a chain that
# each part would have to run again (over_reg), the mean and the deviation of the most images (landscape).
_ALL = (
    Experiment(
        "over_width",
        "acceptance and mixing of four samplers over width",
        OVER_WIDTH,
        over_width,
        effort=lambda c: sum(c.widths) * sum(c.num_steps) * len(c.step_sizes) * c.num_train,
        over=(("widths",),),
    ),
    Experiment(
        "convergence",
        "R-hat and traces of three chains over width",
        CONVERGENCE,
        convergence,
        effort=lambda c: sum(c.widths) * sum(c.num_steps) * c.num_chains * c.num_train,
        over=(("widths",), ("samplers", "num_steps")),
    ),
    Experiment(
        "published_pcnl",
        "the law of the published pCNL against the posterior",
        PUBLISHED_PCNL,
        published_pcnl,
        effort=lambda c: (
            c.num_train
            * sum(
                width * (2 * leapfrog * c.num_chains * (c.num_samples + c.burn_in) + steps)
                for width, leapfrog, steps in zip(c.widths, c.leapfrog_steps, c.pcnl_steps)
            )
        ),
        over=(("widths", "leapfrog_steps", "pcnl_steps"),),
    ),
    Experiment(
        "landscape",
        "slices of the posterior before and after repriorisation",
        LANDSCAPE,
        landscape,
        effort=lambda c: sum(math.prod(problem) for problem in c.problems) * c.resolution**2,
    ),
    Experiment(
        "over_reg",
        "two maps of the weights over their regulariser",
        OVER_REG,
        over_reg,
        effort=lambda c: (1 + 2 * len(c.regs)) * c.num_chains * (c.num_steps + c.burn_in),
    ),
    Experiment(
        "over_maps",
        "maps of the readout under a softmax likelihood, over width",
        OVER_MAPS,
        over_maps,
        effort=lambda c: sum(c.widths) * len(c.maps) * c.num_train * c.num_chains * (c.num_steps + c.burn_in),
        over=(("widths",), ("maps",)),
    ),
    Experiment(
        "collapse",
        "the best q of a plain ELBO over width",
        COLLAPSE,
        collapse,
        effort=lambda c: sum(c.widths) * len(c.scalings) * len(c.losses) * c.num_steps * c.num_samples,
        over=(("losses",), ("scalings",), ("widths",)),
    ),
    Experiment(
        "mean_field_gap",
        "how far the ELBO is from its mean-field limit",
        MEAN_FIELD_GAP,
        mean_field_gap,
        effort=lambda c: sum(c.widths) * c.num_train * c.num_posteriors * c.num_samples,
        over=(("losses",), ("scalings",), ("widths",)),
    ),
    Experiment(
        "suprema",
        "the best ELBO of N neurons against the best of its limit",
        SUPREMA,
        suprema,
        effort=lambda c: len(c.taus) * sum(c.widths) * (1 + c.num_starts) * c.num_train,
        over=(("taus",),),
    ),
    Experiment(
        "concentration",
        "the limit functional over samples of the data",
        CONCENTRATION,
        concentration,
        effort=lambda c: sum(c.num_train) * c.num_replicates,
    ),
    Experiment(
        "elbo_ratio",
        "the two terms of the ELBO before training",
        ELBO_RATIO,
        elbo_ratio,
        effort=lambda c: sum(c.num_train) * sum(c.widths) * len(c.scalings) * c.num_samples,
        over=(("datasets", "num_train"), ("scalings",), ("widths",)),
    ),
    Experiment(
        "tempering",
        "a two-layer network over the temperature of the ELBO",
        TEMPERING,
        tempering,
        effort=lambda c: len(c.taus) * c.num_repeats * c.num_epochs * c.num_train * c.width,
        over=(("taus",),),
        order=("repeat",),
    ),
    Experiment(
        "resnet",
        "ResNet-20 over the temperature of the ELBO",
        RESNET,
        resnet,
        effort=lambda c: len(c.norms) * len(c.taus) * c.num_repeats * c.num_epochs * c.num_train,
        over=(("norms",), ("taus",)),
        order=("norm", "repeat"),
    ),
    Experiment(
        "approximations",
        "one posterior and everything that approximates it",
        APPROXIMATIONS,
        approximations,
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

EXPERIMENTS = {name: experiment.configs for name, experiment in DECLARED.items()}
"""Configurations by experiment and scale; results ship as `book/results/<experiment>_<scale>.json`."""
