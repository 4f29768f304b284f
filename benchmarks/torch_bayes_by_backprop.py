"""Bayes by Backprop as the published code of Huix et al. (2022) runs it, in plain PyTorch: the peer of ours.

A process of its own, so that the two libraries' threads do not meet: it reads the data from a file, then
times one epoch for every line it is sent, and answers with milliseconds and the mean of its objective. It
needs PyTorch and NumPy, and nothing of this package.
"""

import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

LEARNING_RATE = 1e-2
NUM_BINS = 15


def log_density(w, mean, std):
    """Σ log N(w; mean, std²)."""
    return -(torch.log(2 * torch.pi * std**2) / 2 + (w - mean) ** 2 / (2 * std**2)).sum()


class BayesLinear(nn.Module):
    """x Wᵀ with a fresh W ~ N(μ, σ²), and log q(W) − log p(W) of that draw.

    As published, σ is guarded against overflow by hand, and computed once for the draw, once for its density.
    """

    def __init__(self, in_features, out_features, prior_std):
        super().__init__()
        shape = (out_features, in_features)
        self.mu = nn.Parameter(0.01 * torch.randn(shape))
        self.rho = nn.Parameter(float(np.log(np.expm1(1e-3))) + 0.01 * torch.randn(shape))
        self.prior_std = torch.tensor(prior_std)

    def sigma(self):
        return torch.where(self.rho < 50, torch.log1p(torch.exp(self.rho)), self.rho)

    def forward(self, x):
        weight = self.mu + self.sigma() * torch.normal(0.0, 1.0, size=self.mu.shape)
        self.kl = log_density(weight, self.mu, self.sigma()) - log_density(weight, 0.0, self.prior_std)
        return functional.linear(x, weight)


def calibration_error(probabilities, labels):
    """ECE with equal bins of confidence."""
    confidence, predicted = probabilities.max(1)
    bins = (confidence * NUM_BINS).long().clamp(max=NUM_BINS - 1)
    gap = torch.zeros(NUM_BINS).index_add(0, bins, (predicted == labels).float() - confidence)
    return gap.abs().sum() / len(labels)


class Peer:
    """One hidden layer in 1/N scaling with its optimiser."""

    def __init__(self, x, y, width, batch_size, temperature, prior_variance):
        self.x, self.y, self.width, self.batch_size = x, y, width, batch_size
        self.temperature, self.num_batches = temperature, -(-len(x) // batch_size)
        prior_std = prior_variance**0.5
        self.layers = nn.Sequential(
            BayesLinear(x.shape[1], width, prior_std), nn.ReLU(), BayesLinear(width, 10, prior_std)
        )
        self.optimiser = torch.optim.Adam(self.layers.parameters(), lr=LEARNING_RATE)

    def epoch(self):
        """The mean objective over the steps of an epoch."""
        total = 0.0
        for rows in torch.randperm(len(self.x)).split(self.batch_size):
            x, y = self.x[rows], self.y[rows]
            outputs = self.layers(x) / self.width
            negative = functional.cross_entropy(outputs, y, reduction="sum")
            kl = (self.layers[0].kl + self.layers[2].kl) / self.num_batches
            objective = self.num_batches / len(self.x) * (negative + self.temperature * kl)
            self.optimiser.zero_grad()
            objective.backward()
            self.optimiser.step()
            with torch.no_grad():
                accuracy = (outputs.argmax(1) == y).float().mean()
                error = calibration_error(outputs.softmax(1), y)
            logged = objective.item(), negative.item(), kl.item(), accuracy.item(), error.item()
            total += logged[0]
        return total / self.num_batches


def main():
    """Answer until the input ends."""
    given = np.load(sys.argv[1])
    torch.manual_seed(0)
    x, y = torch.from_numpy(given["x"]), torch.from_numpy(given["y"]).long()
    settings = [given[name].item() for name in ("width", "batch_size", "temperature", "prior_variance")]
    peer = Peer(x, y, *settings)
    print(torch.__version__, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        objective = peer.epoch()
        print(1e3 * (time.perf_counter() - start), objective, flush=True)


if __name__ == "__main__":
    main()
