"""The posterior of one network given images: as a whole, and as far as the data inform it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, Key

from book.experiments.networks import network
from widebnn import collectors, data, samplers, targets
from widebnn._pytree import as_pytree
from widebnn.collectors import Collector
from widebnn.driver import Draws, sample
from widebnn.models import BNN, Parameters


@dataclass(frozen=True)
class Posterior:
    """The posterior of a network given images in all targets that sample it, each made when it is wanted."""

    bnn: BNN
    dataset: data.Dataset

    @cached_property
    def repriorised(self) -> targets.NetworkTarget:
        """The target on all of φ."""
        return targets.repriorised(self.bnn, self.dataset.x_train, self.dataset.y_train)

    @cached_property
    def marginal(self) -> targets.NetworkTarget:
        """The target without the readout."""
        return targets.marginal(self.bnn, self.dataset.x_train, self.dataset.y_train)

    @cached_property
    def rotated(self) -> Any:
        """The target on QᵀW¹ and all other inner parameters, for networks whose first layer is dense."""
        return targets.rotated(self.marginal)

    @property
    def informed(self) -> Any:
        """The target on the least that the data inform: rotated where the first layer is dense."""
        return self.rotated if self.dataset.x_train.ndim == 2 else self.marginal

    @cached_property
    def seen(self) -> Float[np.ndarray, "test ..."]:
        """New images; of flat ones the part that lies in the span of the data, and sees no fresh weights."""
        x = self.dataset.x_test
        if x.ndim > 2:
            return x
        basis = self.rotated.basis
        return (x @ basis @ basis.T).astype(x.dtype)

    def collect(
        self, target: targets.NetworkTarget, project: Callable[..., Float[Array, " num"]]
    ) -> dict[str, Collector]:
        """The potential, projections of the rotated weights and Rao–Blackwellised predictions at `seen`.

        They are the same functions of a posterior, whichever target is sampled; `project` is of `rotated`.
        """
        of = Partial(_informed, self.rotated, None if target is self.rotated else target)
        predict = collectors.prepared(collectors.predictive_mean(self.seen), self.rotated)
        return {
            "potential": Partial(_potential_of, target),
            "weights": Partial(_weights, project, of),
            "predictions": Partial(_predicted, predict, self.rotated, of),
        }

    def equilibrium(self, rng_key: Key[Array, ""], burn_in: int, num_chains: int = 1) -> Draws:
        """Positions of `rotated` after HMC, ten leapfrog steps tuned to an acceptance of 0.8."""
        return sample(
            rng_key,
            self.rotated,
            samplers.tuned(samplers.hmc(0.1, num_steps=10), 0.8),
            num_samples=1,
            burn_in=burn_in,
            num_chains=num_chains,
        )


def _informed(rotated, target, position):
    if target is None:
        return position
    unused = jnp.zeros((0, 0))  # the weights below it do not depend on the readout
    return rotated.from_parameters(Parameters(target.inner(position), unused))


def _potential_of(target, _, position):
    return target.potential(position)


def _weights(project, informed, target, position):
    return project(target, informed(position))


def _predicted(predict, rotated, informed, _, position, rng_key):
    return predict(rotated, informed(position), rng_key)


def _langevin(posterior: Posterior, step_size: float, damping: float) -> samplers.Sampler:
    num_flat = size(posterior.repriorised) - size(posterior.informed)  # coordinates of φ that are left out
    return samplers.langevin(step_size, damping, num_flat=num_flat)


SAMPLERS: Mapping[str, Callable[[Posterior, float], samplers.Sampler]] = {
    "pCN": lambda posterior, step_size: samplers.pcn(step_size),
    "pCNL": lambda posterior, step_size: samplers.pcnl(step_size),
    "Langevin": partial(_langevin, damping=1.0),
    "Langevin, γ = 0.01": partial(_langevin, damping=0.01),
}
"""By name, on `informed`; `step_size` is the coefficient of the noise for pCN and pCNL, and of Langevin with
γ = 1, which draws its momentum afresh. The published code has γ = 0.01, with a leapfrog step of that size.
"""

LMC = {"LMC": "Langevin", "LMC with γ = 0.01": "Langevin, γ = 0.01"}
"""By what claims call it, the name of Langevin in `SAMPLERS`."""


def of_parameters(functions: Mapping[str, Collector]) -> dict[str, Collector]:
    """Functions of (target, θ) as functions of its positions."""
    return {name: Partial(_at_parameters, as_pytree(function)) for name, function in functions.items()}


def _at_parameters(function, target, position):
    return function(target, target.to_parameters(position))


def _kernel(target, position):
    psi = target.embedding(position)[:4]
    return (psi @ psi.T)[jnp.triu_indices(4)]


def _potential(target, position):
    return target.readout_posterior(position).potential()


WATCHED: Mapping[str, Collector] = {"kernel": _kernel, "potential": _potential}
"""Functions of the network, whatever a chain moves on: ten entries of ΨΨᵀ, and U without the readout."""


def dense(dataset: data.Dataset, width: int, depth: int, noise_std: float, seed: int = 0) -> Posterior:
    """The posterior of a network with `depth` hidden layers of `width` units, given flat images."""
    return Posterior(network("dense", dataset, width, depth, noise_std, seed), dataset)


def prior(template: Any) -> targets.Target:
    """N(0, I): the target whose U is 0."""
    return targets.from_potential(_zero, template)


def _zero(position):
    return jnp.zeros(())


def size(target: targets.Target) -> int:
    """How many numbers a position of a target has."""
    return sum(leaf.size for leaf in jax.tree.leaves(target.template))
