"""The experiments of the book, the rows of the ledger that rest on them, and their shipped results."""

from pathlib import Path

from widebnn.experiments.chains.architectures import Architectures, Case, architectures
from widebnn.experiments.chains.convergence import Convergence, convergence
from widebnn.experiments.chains.efficiency import Efficiency, efficiency
from widebnn.experiments.chains.gradient_gain import GradientGain, gradient_gain
from widebnn.experiments.chains.langevin_gain import (
    LangevinGain,
    gain_dense,
    gain_over_data,
    gain_over_width,
    gain_resnet,
)
from widebnn.experiments.chains.over_width import OverWidth, mixing_over_width, over_width, series
from widebnn.experiments.chains.rivals import Rivals, rivals
from widebnn.experiments.chains.step_cost import StepCost, step_cost
from widebnn.experiments.chains.unitwise import Unitwise, unitwise
from widebnn.experiments.chains.whitening import Whitening, whitening
from widebnn.experiments.errata import misprints  # noqa: F401 (identities are registered where they are defined)
from widebnn.experiments.errata.algorithms import Algorithms, algorithms
from widebnn.experiments.errata.published_pcnl import (
    PublishedPCNL,
    published_marginal,
    published_pcnl,
    published_potential,
)
from widebnn.experiments.settings.chain_summaries import convergence_summary, trace_summary
from widebnn.experiments.settings.networks import Network
from widebnn.experiments.settings.ood_split import InAndOut, classification_summary, ood_split
from widebnn.experiments.theory.counterexample import Counterexample, counterexample
from widebnn.experiments.theory.identities import Identities, identities
from widebnn.experiments.theory.iterated_maps import IteratedMaps, iterated_maps
from widebnn.experiments.theory.landscape import Landscape, landscape
from widebnn.experiments.theory.over_reg import OverReg, over_reg
from widebnn.experiments.theory.softmax_maps import SoftmaxMaps, laplace_map, softmax_gain, softmax_maps
from widebnn.experiments.theory.theorems import Theorems, theorems
from widebnn.experiments.variational.approximations import Approximations, Predictions, approximations
from widebnn.experiments.variational.ascent import curve, maximise
from widebnn.experiments.variational.collapse import Collapse, collapse
from widebnn.experiments.variational.concentration import Concentration, concentration
from widebnn.experiments.variational.elbo_ratio import ElboRatio, elbo_ratio
from widebnn.experiments.variational.mean_field_gap import MeanFieldGap, mean_field_gap
from widebnn.experiments.variational.resnet import ResNet, resnet
from widebnn.experiments.variational.suprema import Suprema, suprema
from widebnn.experiments.variational.tempered_fits import TemperedFits
from widebnn.experiments.variational.tempering import Tempering, tempering
from widebnn.study.ledger import Entry
from widebnn.study.registry import Registry

__all__ = [
    "CLAIMS",
    "EXPERIMENTS",
    "Algorithms",
    "Approximations",
    "Architectures",
    "Case",
    "Collapse",
    "Concentration",
    "Convergence",
    "Counterexample",
    "Efficiency",
    "ElboRatio",
    "Entry",
    "GradientGain",
    "Identities",
    "InAndOut",
    "IteratedMaps",
    "Landscape",
    "LangevinGain",
    "MeanFieldGap",
    "Network",
    "OverReg",
    "OverWidth",
    "Predictions",
    "PublishedPCNL",
    "ResNet",
    "Rivals",
    "SoftmaxMaps",
    "StepCost",
    "Suprema",
    "TemperedFits",
    "Tempering",
    "Theorems",
    "Unitwise",
    "Whitening",
    "algorithms",
    "approximations",
    "architectures",
    "classification_summary",
    "collapse",
    "concentration",
    "convergence",
    "convergence_summary",
    "counterexample",
    "curve",
    "efficiency",
    "elbo_ratio",
    "find",
    "gain_dense",
    "gain_over_data",
    "gain_over_width",
    "gain_resnet",
    "gradient_gain",
    "identities",
    "iterated_maps",
    "landscape",
    "laplace_map",
    "ledger",
    "maximise",
    "mean_field_gap",
    "mixing_over_width",
    "ood_split",
    "over_reg",
    "over_width",
    "published_marginal",
    "published_pcnl",
    "published_potential",
    "report",
    "resnet",
    "results_folder",
    "rivals",
    "run",
    "series",
    "shipped",
    "softmax_gain",
    "softmax_maps",
    "step_cost",
    "suprema",
    "tempering",
    "theorems",
    "trace_summary",
    "unitwise",
    "whitening",
]

# fmt: off
_EVERY = (
    theorems, identities, counterexample, algorithms, unitwise, whitening, rivals, efficiency, over_width,
    mixing_over_width, gradient_gain, convergence, gain_over_width, gain_over_data, gain_dense,
    gain_resnet, architectures, step_cost, published_pcnl, landscape, over_reg, iterated_maps,
    softmax_gain, laplace_map, collapse, mean_field_gap, suprema, concentration, elbo_ratio, resnet,
    tempering, approximations,
)
# fmt: on
ORDER = """
H-F1 H-F2 H-F3 H-T2.1 H-P2.2 H-P2.3 H-P3.1 H-F4 H-F5 H-F6 H-F7a H-F7b H-F7c H-F7d H-F8a H-F8b H-F8c H-F9 H-F10
H-F11a H-F11b H-AB H-AC H-AD H-AE1 H-AE2 H-E5 H-ES H-EJ
P-T2.1 P-T2.2 P-T3.1 P-A1 P-A2 P-F1 P-F2 P-F3 P-F4 P-F5 P-F6 P-C P-X P-E9 P-ER P-ES P-EC
V-P2 V-T1 V-T2 V-C V-F1 V-F2 V-F3 V-F4 V-F5 V-F6a V-F6b V-A1 V-EW
X-1 X-2 X-3 X-4 X-5 X-6 X-7
"""


def results_folder() -> Path:
    """Where the results that ship with the book lie: in the package, or in `book` of a checkout."""
    package = Path(__file__).parents[1]
    shipped = package / "results"
    return shipped if shipped.is_dir() else package.parent / "book" / "results"


_registry = Registry(_EVERY, ORDER.split(), results_folder)
EXPERIMENTS = _registry.experiments
"""By name."""
CLAIMS = _registry.claims
"""In the order of the ledger."""
find, run, ledger = _registry.find, _registry.run, _registry.ledger
report, shipped = _registry.report, _registry.shipped
