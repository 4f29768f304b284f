"""The proposals q(u → ·) of the reversible samplers as the theory has them, and chains of any of them."""

import math
from typing import NamedTuple

import jax

from widebnn.samplers import accept
from widebnn.samplers._base import Kernel
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


class State(NamedTuple):
    position: jax.Array
    potential: jax.Array
    gradient: jax.Array


def metropolis(potential, law, prior):
    """Proposals of `law`, accepted with U(u) − U(v) − `prior` · (½‖v‖² − ½‖u‖²), right or wrong.

    The ratio is right with prior = 1 for symmetric proposals and with prior = 0 for those that leave N(0, I)
    where it is; with a drift it lacks the proposal densities.
    """

    def init(position, rng_key=None):
        return State(position, *jax.value_and_grad(potential)(position))

    def step(rng_key, old):
        noise_key, accept_key = jax.random.split(rng_key)
        mean, std = law(old.position, old.gradient)
        new = init(mean + std * normal_like(noise_key, old.position))
        prior_ratio = half_square_difference(new.position, old.position)
        return accept(accept_key, old.potential - new.potential - prior * prior_ratio, old, new)

    return Kernel(init, step)
