"""A linear model with Gaussian noise, for which the best mean-field Gaussian is known in closed form.

With A = XᵀX/σ², the tempered ELBO is greatest at μ = (A + ηI/v)⁻¹Xᵀy/σ² and σ_j² = η/(A_jj + η/v).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

import widebnn as wb

NOISE_STD, VARIANCE = 0.5, 0.2
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) @ np.array([[1.0, 0.6, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 1.0]])
Y = X @ np.array([[0.8], [-0.5], [0.3]]) + NOISE_STD * RNG.normal(size=(40, 1))
LOSS = wb.vi.gaussian(NOISE_STD)


class Gaussian(NamedTuple):
    """Means and deviations of weights."""

    mean: np.ndarray
    std: np.ndarray


def optimum(temperature):
    """The best q."""
    precision = X.T @ X / NOISE_STD**2
    mean = np.linalg.solve(precision + temperature / VARIANCE * np.eye(3), X.T @ Y / NOISE_STD**2)
    return Gaussian(mean[:, 0], np.sqrt(temperature / (np.diag(precision) + temperature / VARIANCE)))


def linear():
    return wb.models.Dense(3, 1, scale=1, bias_std=0, initial_std=0.01, rngs=nnx.Rngs(0))


def fitted(temperature, num_epochs=1_000, **options):
    """The q that the package arrives at: in minibatches of which the last is not full."""
    options = {"batch_size": 16, "num_samples": 16, "initial_std": 0.1} | options
    num_steps = num_epochs * -(-len(X) // options["batch_size"])
    optimiser = optax.adam(optax.cosine_decay_schedule(0.03, num_steps))
    fit = wb.vi.fit(
        jax.random.key(0),
        linear(),
        X,
        Y,
        LOSS,
        optimiser,
        num_epochs=num_epochs,
        temperature=temperature,
        prior_variance=VARIANCE,
        progress=False,
        **options,
    )
    return Gaussian(*(np.asarray(part["kernel"])[:, 0] for part in (fit.posterior.mean, fit.posterior.std)))


def assert_optimum(temperature=30.0, **options):
    """The fit is at the optimum: means within a tenth of a deviation, deviations to 5 %.

    At this temperature prior and data weigh about the same, so that neither can be wrong unnoticed. The
    tolerances are four times what is left of the noise of minibatches when the steps have become 0.
    """
    found, best = fitted(temperature, **options), optimum(temperature)
    off = np.concatenate([(found.mean - best.mean) / best.std / 0.1, (found.std / best.std - 1) / 0.05])
    assert np.all(np.abs(off) < 1), f"the fit {found} is not at the optimum {best}"


def assert_scaling(module, inputs=X):
    """f = N⁻¹ Σ_j a_j relu(⟨b_j, x⟩)."""
    hidden = np.maximum(inputs @ np.asarray(module.hidden.kernel[...]), 0)
    a = np.asarray(module.readout.kernel[...])
    mean = sum(hidden[:, [j]] * a[[j]] for j in range(len(a))) / len(a)
    assert np.allclose(module(jnp.asarray(inputs)), mean, rtol=1e-5), "outputs are no mean over neurons"
