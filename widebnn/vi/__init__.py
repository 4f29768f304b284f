"""Mean-field variational inference of wide networks, with a tempered ELBO (Huix et al. 2022)."""

from widebnn.vi.elbo import Elbo, elbo, temperature
from widebnn.vi.fit import Fit, fit
from widebnn.vi.losses import cross_entropy, gaussian, square
from widebnn.vi.mean_field import MeanField, kl_divergence, mean_field
from widebnn.vi.models import ResNet20, TwoLayer
from widebnn.vi.network import Network, network
from widebnn.vi.predict import predict
from widebnn.vi.relu_moments import Moments, output_moments, relu_moments, square_elbo

__all__ = [
    "Elbo",
    "Fit",
    "MeanField",
    "Moments",
    "Network",
    "ResNet20",
    "TwoLayer",
    "cross_entropy",
    "elbo",
    "fit",
    "gaussian",
    "kl_divergence",
    "mean_field",
    "network",
    "output_moments",
    "predict",
    "relu_moments",
    "square",
    "square_elbo",
    "temperature",
]
