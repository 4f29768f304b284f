"""Targets: potentials over N(0, I), one for each parametrisation of a posterior."""

from widebnn.targets.base import Target, from_potential
from widebnn.targets.categorical import categorical
from widebnn.targets.linear import linear
from widebnn.targets.marginal import marginal
from widebnn.targets.network import NetworkTarget
from widebnn.targets.ntk import jacobian
from widebnn.targets.readout import DataSpace, FeatureSpace, ReadoutPosterior, readout_posterior
from widebnn.targets.repriorised import repriorised
from widebnn.targets.rotated import rotated
from widebnn.targets.standard import standard

__all__ = [
    "DataSpace",
    "FeatureSpace",
    "NetworkTarget",
    "ReadoutPosterior",
    "Target",
    "categorical",
    "from_potential",
    "jacobian",
    "linear",
    "marginal",
    "readout_posterior",
    "repriorised",
    "rotated",
    "standard",
]
