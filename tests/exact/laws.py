"""The proposals q(u → ·) of the reversible samplers as the theory has them, and chains of any of them."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax

from widebnn.samplers import GradientState, Sampler, accept
from widebnn.tree import half_square_difference, normal_like


class Law(NamedTuple):
    """v = keep · u − drift · ∇U(u) + noise · ξ; as a function (u, ∇U(u)) ↦ mean, deviation."""

    keep: float
    drift: float
    noise: float

    def __call__(self, u, g):
        return self.keep * u - self.drift * g, self.noise


def rwm(beta):
    return Law(1.0, 0.0, beta)


def pcn(beta):
    return Law(math.sqrt(1 - beta**2), 0.0, beta)


def mala(eps):
    return Law(1 - eps**2 / 2, eps**2 / 2, eps)


def pcnl(beta):
    delta = 2 * (1 - math.sqrt(1 - beta**2)) / (1 + math.sqrt(1 - beta**2))
    return Law((2 - delta) / (2 + delta), 2 * delta / (2 + delta), math.sqrt(8 * delta) / (2 + delta))


@dataclass(frozen=True, eq=False)
class metropolis(Sampler):
    """Proposals of `law`, accepted with U(u) − U(v) − `prior` · (½‖v‖² − ½‖u‖²), right or wrong.

    The ratio is right with prior = 1 for symmetric proposals and with prior = 0 for those that leave N(0, I)
    where it is; with a drift it lacks the proposal densities.
    """

    law: Law
    prior: float

    def init(self, target, position, rng_key=None):
        return GradientState(position, *jax.value_and_grad(target.potential)(position))

    def step(self, target, rng_key, state):
        noise_key, accept_key = jax.random.split(rng_key)
        mean, std = self.law(state.position, state.gradient)
        new = self.init(target, mean + std * normal_like(noise_key, state.position))
        prior_ratio = half_square_difference(new.position, state.position)
        log_ratio = state.potential - new.potential - self.prior * prior_ratio
        return accept(accept_key, log_ratio, state, new)
