"""Targets: potentials over the standard normal, one for each parametrisation of a posterior."""

from widebnn.targets._base import Target, from_potential
from widebnn.targets._jacobian import jacobian
from widebnn.targets._likelihoods import Likelihood
from widebnn.targets._linear import linear
from widebnn.targets._marginal import marginal
from widebnn.targets._network import NetworkTarget
from widebnn.targets._non_gaussian import binary, categorical, non_gaussian, student_t
from widebnn.targets._readout import DataSpace, FeatureSpace, ReadoutPosterior, readout_posterior
from widebnn.targets._repriorised import repriorised
from widebnn.targets._rotated import rotated
from widebnn.targets._scaled import READOUT_SCALES, Gaussian, LogNormal, Scaled, ScaledPosition, scaled
from widebnn.targets._standard import standard
from widebnn.targets._whitened import whitened

__all__ = [
    "READOUT_SCALES",
    "DataSpace",
    "FeatureSpace",
    "Gaussian",
    "Likelihood",
    "LogNormal",
    "NetworkTarget",
    "ReadoutPosterior",
    "Scaled",
    "ScaledPosition",
    "Target",
    "binary",
    "categorical",
    "from_potential",
    "jacobian",
    "linear",
    "marginal",
    "non_gaussian",
    "readout_posterior",
    "repriorised",
    "rotated",
    "scaled",
    "standard",
    "student_t",
    "whitened",
]
