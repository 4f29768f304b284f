"""Declared experiments: a frozen configuration at each scale, a function that runs it, results on disk."""

from widebnn.experiments.algorithms import ALGORITHMS, Algorithms, algorithms
from widebnn.experiments.approximations import (
    APPROXIMATIONS,
    Approximations,
    Predictions,
    approximations,
)
from widebnn.experiments.architectures import ARCHITECTURES, Architectures, Case, architectures
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
from widebnn.experiments.counterexample import COUNTEREXAMPLE, Counterexample, counterexample
from widebnn.experiments.declared import DECLARED, EXPERIMENTS
from widebnn.experiments.efficiency import EFFICIENCY, Efficiency, efficiency
from widebnn.experiments.elbo_ratio import ELBO_RATIO, ElboRatio, elbo_ratio
from widebnn.experiments.experiment import VERDICTS, Claim, Experiment, Finding
from widebnn.experiments.identities import IDENTITIES, Identities, identities
from widebnn.experiments.landscape import LANDSCAPE, Landscape, landscape
from widebnn.experiments.langevin_gain import (
    GAIN_DENSE,
    GAIN_OVER_DATA,
    GAIN_OVER_WIDTH,
    GAIN_RESNET,
    LangevinGain,
    langevin_gain,
)
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
from widebnn.experiments.networks import Network
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
from widebnn.experiments.speed import T4, Speed, measured_speed
from widebnn.experiments.step_cost import STEP_COST, StepCost, step_cost
from widebnn.experiments.tempering import TEMPERING, TemperedFits, Tempering, tempering
from widebnn.experiments.theorems import THEOREMS, Theorems, theorems
from widebnn.experiments.uncertainty import InAndOut, in_and_out, quality
from widebnn.experiments.unitwise import UNITWISE, Unitwise, unitwise
from widebnn.experiments.width import OVER_WIDTH, OverWidth, over_width, series

__all__ = [
    "ALGORITHMS",
    "APPROXIMATIONS",
    "ARCHITECTURES",
    "CLAIMS",
    "COLLAPSE",
    "CONCENTRATION",
    "CONVERGENCE",
    "COUNTEREXAMPLE",
    "DECLARED",
    "EFFICIENCY",
    "ELBO_RATIO",
    "EXPERIMENTS",
    "GAIN_DENSE",
    "GAIN_OVER_DATA",
    "GAIN_OVER_WIDTH",
    "GAIN_RESNET",
    "IDENTITIES",
    "LANDSCAPE",
    "MEAN_FIELD_GAP",
    "OVER_MAPS",
    "OVER_REG",
    "OVER_WIDTH",
    "PUBLISHED_PCNL",
    "RESNET",
    "SOFTMAX_MAPS",
    "STEP_COST",
    "SUPREMA",
    "T4",
    "TEMPERING",
    "THEOREMS",
    "UNITWISE",
    "VERDICTS",
    "Algorithms",
    "Approximations",
    "Architectures",
    "Case",
    "Claim",
    "Collapse",
    "Concentration",
    "Convergence",
    "Counterexample",
    "Efficiency",
    "ElboRatio",
    "Entry",
    "Experiment",
    "Finding",
    "Forecast",
    "Identities",
    "InAndOut",
    "Landscape",
    "LangevinGain",
    "MeanFieldGap",
    "Network",
    "OverMaps",
    "OverReg",
    "OverWidth",
    "Predictions",
    "PublishedPCNL",
    "ResNet",
    "Results",
    "Speed",
    "StepCost",
    "Suprema",
    "TemperedFits",
    "Tempering",
    "Theorems",
    "Unitwise",
    "agreement",
    "algorithms",
    "approximations",
    "architectures",
    "collapse",
    "concentration",
    "config_hash",
    "convergence",
    "counterexample",
    "device",
    "efficiency",
    "elbo_ratio",
    "find",
    "forecast",
    "identities",
    "in_and_out",
    "landscape",
    "langevin_gain",
    "ledger",
    "load",
    "load_or_run",
    "mean_field_gap",
    "measured_speed",
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
    "step_cost",
    "summarise",
    "suprema",
    "tempering",
    "theorems",
    "unitwise",
    "whole_langevin",
]
