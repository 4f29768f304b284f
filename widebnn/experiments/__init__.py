"""Declared experiments: a frozen configuration at each scale, a function that runs it, results on disk."""

from widebnn.experiments.approximations import (
    APPROXIMATIONS,
    Approximations,
    Predictions,
    approximations,
)
from widebnn.experiments.claims import CLAIMS
from widebnn.experiments.collapse import COLLAPSE, Collapse, collapse
from widebnn.experiments.convergence import (
    CONVERGENCE,
    Convergence,
    agreement,
    convergence,
    steadiness,
    whole_langevin,
)
from widebnn.experiments.declared import DECLARED, EXPERIMENTS
from widebnn.experiments.elbo_ratio import ELBO_RATIO, ElboRatio, elbo_ratio
from widebnn.experiments.experiment import VERDICTS, Claim, Experiment, Finding
from widebnn.experiments.landscape import LANDSCAPE, Landscape, landscape
from widebnn.experiments.ledger import Entry, ledger
from widebnn.experiments.mean_field_limit import (
    CONCENTRATION,
    MEAN_FIELD_GAP,
    SUPREMA,
    Concentration,
    MeanFieldGap,
    Suprema,
    concentration,
    mean_field_gap,
    suprema,
)
from widebnn.experiments.other_maps import (
    OVER_MAPS,
    OVER_REG,
    SOFTMAX_MAPS,
    OverMaps,
    OverReg,
    over_maps,
    over_reg,
)
from widebnn.experiments.published_pcnl import (
    PUBLISHED_PCNL,
    PublishedPCNL,
    published_marginal,
    published_pcnl,
    published_potential,
)
from widebnn.experiments.resnet import RESNET, ResNet, resnet
from widebnn.experiments.results import Results, config_hash, device, load, load_or_run, save
from widebnn.experiments.runner import Forecast, find, forecast, run, summarise
from widebnn.experiments.tempering import TEMPERING, TemperedFits, Tempering, tempering
from widebnn.experiments.uncertainty import InAndOut, in_and_out, quality
from widebnn.experiments.width import OVER_WIDTH, OverWidth, over_width, series

__all__ = [
    "APPROXIMATIONS",
    "CLAIMS",
    "COLLAPSE",
    "CONCENTRATION",
    "CONVERGENCE",
    "DECLARED",
    "ELBO_RATIO",
    "EXPERIMENTS",
    "LANDSCAPE",
    "MEAN_FIELD_GAP",
    "OVER_MAPS",
    "OVER_REG",
    "OVER_WIDTH",
    "PUBLISHED_PCNL",
    "RESNET",
    "SOFTMAX_MAPS",
    "SUPREMA",
    "TEMPERING",
    "VERDICTS",
    "Approximations",
    "Claim",
    "Collapse",
    "Concentration",
    "Convergence",
    "ElboRatio",
    "Entry",
    "Experiment",
    "Finding",
    "Forecast",
    "InAndOut",
    "Landscape",
    "MeanFieldGap",
    "OverMaps",
    "OverReg",
    "OverWidth",
    "Predictions",
    "PublishedPCNL",
    "ResNet",
    "Results",
    "Suprema",
    "TemperedFits",
    "Tempering",
    "agreement",
    "approximations",
    "collapse",
    "concentration",
    "config_hash",
    "convergence",
    "device",
    "elbo_ratio",
    "find",
    "forecast",
    "in_and_out",
    "landscape",
    "ledger",
    "load",
    "load_or_run",
    "mean_field_gap",
    "over_maps",
    "over_reg",
    "over_width",
    "published_marginal",
    "published_pcnl",
    "published_potential",
    "quality",
    "resnet",
    "run",
    "save",
    "series",
    "steadiness",
    "summarise",
    "suprema",
    "tempering",
    "whole_langevin",
]
