"""Declared experiments: a frozen configuration at each scale, a function that runs it, results on disk."""

from widebnn.experiments.chains.architectures import ARCHITECTURES, Architectures, Case, architectures
from widebnn.experiments.chains.convergence import (
    CONVERGENCE,
    Convergence,
    convergence,
    convergence_summary,
    trace_summary,
    whole_langevin,
)
from widebnn.experiments.chains.efficiency import EFFICIENCY, Efficiency, efficiency
from widebnn.experiments.chains.langevin_gain import (
    GAIN_DENSE,
    GAIN_OVER_DATA,
    GAIN_OVER_WIDTH,
    GAIN_RESNET,
    LangevinGain,
    langevin_gain,
)
from widebnn.experiments.chains.over_width import OVER_WIDTH, OverWidth, over_width, series
from widebnn.experiments.chains.step_cost import STEP_COST, StepCost, step_cost
from widebnn.experiments.chains.unitwise import UNITWISE, Unitwise, unitwise
from widebnn.experiments.claims import CLAIMS
from widebnn.experiments.declared import DECLARED, EXPERIMENTS
from widebnn.experiments.errata.algorithms import ALGORITHMS, Algorithms, algorithms
from widebnn.experiments.errata.published_pcnl import (
    PUBLISHED_PCNL,
    PublishedPCNL,
    published_marginal,
    published_pcnl,
    published_potential,
)
from widebnn.experiments.settings.networks import Network
from widebnn.experiments.settings.ood_split import InAndOut, classification_summary, ood_split
from widebnn.experiments.theory.counterexample import COUNTEREXAMPLE, Counterexample, counterexample
from widebnn.experiments.theory.identities import IDENTITIES, Identities, identities
from widebnn.experiments.theory.landscape import LANDSCAPE, Landscape, landscape
from widebnn.experiments.theory.other_maps import (
    OVER_MAPS,
    OVER_REG,
    SOFTMAX_MAPS,
    OverMaps,
    OverReg,
    over_maps,
    over_reg,
)
from widebnn.experiments.theory.theorems import THEOREMS, Theorems, theorems
from widebnn.experiments.variational.approximations import (
    APPROXIMATIONS,
    Approximations,
    Predictions,
    approximations,
)
from widebnn.experiments.variational.collapse import COLLAPSE, Collapse, collapse
from widebnn.experiments.variational.elbo_ratio import ELBO_RATIO, ElboRatio, elbo_ratio
from widebnn.experiments.variational.mean_field_limit import (
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
from widebnn.experiments.variational.resnet import RESNET, ResNet, resnet
from widebnn.experiments.variational.tempering import TEMPERING, TemperedFits, Tempering, tempering
from widebnn.study.experiment import VERDICTS, Claim, Experiment, Finding
from widebnn.study.ledger import Entry, ledger
from widebnn.study.results import Results, config_hash, device, load, load_or_run, save
from widebnn.study.run import Forecast, find, forecast, run, summarise
from widebnn.study.speed import T4, Speed, measured_speed

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
    "algorithms",
    "approximations",
    "architectures",
    "classification_summary",
    "collapse",
    "concentration",
    "config_hash",
    "convergence",
    "convergence_summary",
    "counterexample",
    "device",
    "efficiency",
    "elbo_ratio",
    "find",
    "forecast",
    "identities",
    "landscape",
    "langevin_gain",
    "ledger",
    "load",
    "load_or_run",
    "mean_field_gap",
    "measured_speed",
    "ood_split",
    "over_maps",
    "over_reg",
    "over_width",
    "published_marginal",
    "published_pcnl",
    "published_potential",
    "resnet",
    "run",
    "save",
    "series",
    "step_cost",
    "summarise",
    "suprema",
    "tempering",
    "theorems",
    "trace_summary",
    "unitwise",
    "whole_langevin",
]
