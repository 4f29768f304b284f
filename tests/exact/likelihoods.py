"""Likelihoods that are not Gaussian, written out densely, on the observations of a tiny problem."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jax.scipy.stats import poisson

import widebnn as wb

from .networks import labels

DEGREES = 3.0


class Likelihood(NamedTuple):
    """How the package is asked for it, log p(y_i | F_i) of each row, E[y | F] and Var[y | F]."""

    target: Callable
    log_prob: Callable
    mean: Callable
    variance: Callable

    def log_joint(self, problem, parameters):
        """log p(y | θ) + log N(θ; 0, I), up to the prior's constant."""
        f = problem.bnn.embedding(parameters.inner, problem.x) @ parameters.readout
        prior = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(parameters)) / 2
        return jnp.sum(self.log_prob(problem, f)) - prior


def _probabilities(f):
    return jnp.exp(f) / jnp.exp(f).sum(axis=1, keepdims=True)


def _of_class(problem, f):
    return jnp.log(_probabilities(f)[jnp.arange(len(f)), labels(problem)])


def _yes(f):
    return 1 / (1 + jnp.exp(-f))


def _of_answer(problem, f):
    return jnp.sum(jnp.log(jnp.where(problem.y > 0, _yes(f), 1 - _yes(f))), axis=1)


def _of_student(problem, f):
    t, half = (problem.y - f) / problem.bnn.noise_std, (DEGREES + 1) / 2
    log_c = gammaln(half) - gammaln(DEGREES / 2) - jnp.log(jnp.pi * DEGREES) / 2
    return jnp.sum(log_c - jnp.log(problem.bnn.noise_std) - half * jnp.log(1 + t**2 / DEGREES), axis=1)


class Poisson(wb.targets.Likelihood):
    """One of a user's own: counts, whose mean is exp F."""

    def log_prob(self, y, f):
        return y * f - jnp.exp(f) - gammaln(y + 1)

    def mean(self, f):
        return jnp.exp(f)

    variance = mean

    def draw(self, rng_key, f):
        return jax.random.poisson(rng_key, jnp.exp(f))


def counts(problem):
    return np.floor(2 * np.exp(problem.y))


def _of_count(problem, f):
    return jnp.sum(poisson.logpmf(counts(problem), jnp.exp(f)), axis=1)


LIKELIHOODS = {
    "softmax": Likelihood(
        lambda tiny, **options: wb.targets.categorical(tiny.bnn, tiny.x, labels(tiny), **options),
        _of_class,
        _probabilities,
        lambda f: _probabilities(f) * (1 - _probabilities(f)),
    ),
    "bernoulli": Likelihood(
        lambda tiny, **options: wb.targets.binary(tiny.bnn, tiny.x, tiny.y > 0, **options),
        _of_answer,
        _yes,
        lambda f: _yes(f) * (1 - _yes(f)),
    ),
    "student": Likelihood(
        lambda tiny, **options: wb.targets.student_t(tiny.bnn, tiny.x, tiny.y, DEGREES, **options),
        _of_student,
        lambda f: f,
        lambda f: jnp.full_like(f, 0.4**2 * DEGREES / (DEGREES - 2)),
    ),
    "poisson": Likelihood(
        lambda tiny, **options: wb.targets.non_gaussian(tiny.bnn, tiny.x, counts(tiny), Poisson(), **options),
        _of_count,
        jnp.exp,
        jnp.exp,
    ),
}
