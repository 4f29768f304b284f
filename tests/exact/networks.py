"""Tiny networks with data, and their mathematics written out densely without the package."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.scipy.stats import multivariate_normal

import widebnn as wb
from widebnn.models import BNN, Parameters
from widebnn.tree import normal_like


class Problem(NamedTuple):
    """A network with its data and new inputs; x has rank 2 of 3 and x_new leaves its span."""

    bnn: BNN
    x: jax.Array
    y: jax.Array
    x_new: jax.Array

    def draw_parameters(self, seed=0):
        return normal_like(jax.random.key(seed), self.bnn.template(self.x))


def problem(widths=(4,), out_features=1, n=5, activation="gelu", noise_std=0.4, bias_std=0.1):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 3))
    y = rng.normal(size=(n, out_features))
    features = wb.models.FCN(3, widths, activation=activation, bias_std=0.5, rngs=nnx.Rngs(0))
    bnn = BNN(features, out_features, noise_std, bias_std=bias_std)
    return Problem(bnn, jnp.asarray(x), jnp.asarray(y), jnp.asarray(rng.normal(size=(2, 3))))


ACTIVATION = {"gelu": lambda f: f * jax.scipy.stats.norm.cdf(f), "erf": jax.scipy.special.erf}


def embedding(kernels, biases, x, activation, bias_std):
    """Ψ of `problem`'s networks: hidden σ_W² = 2, σ_b = 0.5, readout σ_W = 1."""
    h = x
    for w, b in zip(kernels, biases, strict=True):
        f = jnp.sqrt(2 / h.shape[1]) * jnp.matmul(h, w) + 0.5 * b[None, :]
        h = ACTIVATION[activation](f)
    return jnp.concatenate([h / jnp.sqrt(h.shape[1]), jnp.full((len(x), 1), bias_std)], axis=1)


def log_joint(problem, parameters: Parameters):
    """log p(y | θ) + log N(θ; 0, I), normalised."""
    f = problem.bnn.embedding(parameters.inner, problem.x) @ parameters.readout
    prior = sum(jnp.sum(jax.scipy.stats.norm.logpdf(leaf)) for leaf in jax.tree.leaves(parameters))
    return jnp.sum(jax.scipy.stats.norm.logpdf(problem.y, f, problem.bnn.noise_std)) + prior


def labels(problem):
    """Classes for a problem with several outputs."""
    return jnp.argmax(problem.y, axis=1)


def log_evidence(problem, inner):
    """log p(y | θ^{≤L}) = Σ_j log N(y_j; 0, ΨΨᵀ + σ²I), by the dense density."""
    psi = problem.bnn.embedding(inner, problem.x)
    covariance = psi @ psi.T + problem.bnn.noise_std**2 * jnp.eye(len(psi))
    mean = jnp.zeros(len(psi))
    return sum(multivariate_normal.logpdf(column, mean, covariance) for column in problem.y.T)


def gp_prediction(problem, inner, x_new):
    """Mean (m, d_out) and covariance (m, m) of the GP with the empirical kernel, noise left out."""
    psi, new = problem.bnn.embedding(inner, problem.x), problem.bnn.embedding(inner, x_new)
    k = psi @ psi.T + problem.bnn.noise_std**2 * jnp.eye(len(psi))
    return new @ psi.T @ jnp.linalg.inv(k) @ problem.y, new @ new.T - new @ psi.T @ jnp.linalg.inv(
        k
    ) @ psi @ new.T
