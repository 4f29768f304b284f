"""More than one step towards the data: the Jacobian map iterated, and gradient descent (Hron et al., E.2)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from book.experiments.chain_summaries import behind, is_resolved
from book.experiments.configuration import Count, Counts, Positives
from book.experiments.experiment import experiment
from book.experiments.findings import Finding
from book.experiments.tuned_chains import TunedChains, effective_samples, share_folded
from flax import nnx
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from widebnn import data, targets
from widebnn.diagnostics import random_projections
from widebnn.models import BNN, FCN, Parameters
from widebnn.tables import Measure, Results, Row

__all__ = ["Iterated", "IteratedMaps", "iterated_maps"]

Flat = Float[Array, " d"]
BODY_MASS, TRIGLYCERIDES = 2, 8
MOST_REVERSED = 0.01  # of prior draws, by a map that is taken for a bijection


class IteratedMaps(TunedChains):
    """Maps of two measurements (body mass, triglycerides) of patients of the diabetes data."""

    num_train: Annotated[Count, "Patients."] = 8
    width: Annotated[Count, "Units of the one hidden layer."] = 8
    iterations: Annotated[Counts, "How often a map is iterated: part of the grid."] = (1, 4)
    regs: Annotated[Positives, "λ of R."] = (3.0, 10.0, 30.0, 100.0)
    rates: Annotated[Positives, "α of gradient descent."] = (0.003, 0.01, 0.03)
    num_prior: Annotated[Count, "Prior draws at which the sign of the determinant is computed."] = 2_000


class _Map(NamedTuple):
    """A map of all parameters, by what is iterated, how often, and λ of R or α of gradient descent."""

    name: str
    iterations: int
    size: float


def _maps(config: IteratedMaps) -> list[_Map]:
    """The grid."""
    sizes = [("R", reg) for reg in config.regs] + [("gradient descent", rate) for rate in config.rates]
    return [_Map(name, k, size) for name, size in sizes for k in config.iterations]


@dataclass(frozen=True, eq=False, repr=False)
class Iterated(targets.Target):
    """φ with θ = S(S(…S(φ))) for a smooth map S of all parameters, whose determinant is computed exactly.

    U(φ) = −log p(y | θ) + ½‖θ‖² − ½‖φ‖² − Σ log |det ∂S|, where the sum is over the iterates.
    """

    of_theta: targets.Target
    step: Callable[[Flat], Flat]
    iterations: int

    @property
    def template(self):
        """That of θ."""
        return self.of_theta.template

    def potential(self, position: Parameters) -> Float[Array, ""]:
        """U(φ)."""
        phi, unravel = ravel_pytree(position)
        theta, _, log_det = self._moved(phi)
        return self.of_theta.potential(unravel(theta)) + (theta - phi) @ (theta + phi) / 2 - log_det

    def to_parameters(self, position: Parameters) -> Parameters:
        """θ."""
        phi, unravel = ravel_pytree(position)
        return unravel(self._moved(phi)[0])

    def orientation(self, position: Parameters) -> Float[Array, ""]:
        """The sign of det ∂θ/∂φ."""
        return self._moved(ravel_pytree(position)[0])[1]

    def _moved(self, phi: Flat) -> tuple[Flat, Float[Array, ""], Float[Array, ""]]:
        """θ, and the sign and the logarithm of |det ∂θ/∂φ|."""

        def one(carry, _):
            phi, sign, log_det = carry
            new_sign, new_log_det = jnp.linalg.slogdet(jax.jacfwd(self.step)(phi))
            return (self.step(phi), sign * new_sign, log_det + new_log_det), None

        start = (phi, jnp.ones((), phi.dtype), jnp.zeros((), phi.dtype))
        return jax.lax.scan(one, start, length=self.iterations)[0]


@experiment(
    "maps of the weights that take several steps",
    scales={
        "smoke": IteratedMaps(
            num_chains=4,
            num_steps=300,
            burn_in=200,
            iterations=(1,),
            regs=(100.0,),
            rates=(0.003,),
            num_prior=200,
        ),
        "laptop": IteratedMaps(seed=1),
        "colab": IteratedMaps(num_steps=300_000),
        "paper": IteratedMaps(num_steps=3_000_000),
    },
    parts="iterations",
)
def iterated_maps(config: IteratedMaps) -> Iterator[Row]:
    """Langevin on φ with θ = M(φ), where M is R or φ ↦ φ + α Jᵀ(y − f_φ(X)), iterated.

    Yields
    ------
    Rows with map ("R" or "gradient descent"), iterations, and size, λ of R and α of gradient descent;
    acceptance; step_size as tuned; effective samples per step of projections of θ, the mean and its standard
    error from the scatter over chains, and `rhat_projections`, the mean; folded, the share of prior draws
    with det ∂M/∂φ < 0, where M is not a bijection and its chain does not sample the posterior.
    """
    bnn, x, y = diabetes_patients(config.num_train, config.width, config.noise_std, config.seed)
    keys = jax.random.split(jax.random.key(config.seed), 3)
    quantities = {"projections": random_projections(keys[0], bnn.template(x), num=config.num_projections)}
    of_theta = targets.standard(bnn, x, y)
    unravel = ravel_pytree(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), bnn.template(x)))[1]

    def descend(phi: Flat, rate: float) -> Flat:
        return phi - rate * jax.grad(lambda phi: jnp.sum((y - bnn(unravel(phi), x)) ** 2) / 2)(phi)

    def once(name: str, size: float) -> Callable[[Flat], Flat]:
        if name == "gradient descent":
            return lambda phi: descend(phi, size)
        step = targets.jacobian(bnn, x, y, size)
        return lambda phi: ravel_pytree(step.to_parameters(unravel(phi)))[0]

    for one in _maps(config):
        target = Iterated(of_theta, once(one.name, one.size), one.iterations)
        yield (
            {"map": one.name, "iterations": one.iterations, "size": one.size}
            | {"folded": share_folded(keys[2], target, config.num_prior)}
            | effective_samples(keys[1], target, config, quantities)
        )


@iterated_maps.claim(
    "H-AE2",
    where="Appendix E.2",
    claim="Neither several steps of the Jacobian map nor gradient descent mixes significantly better than "
    "one step of the map.",
    paper="neither worked significantly better than one step; no numbers",
    rule="By effective samples per step of projections of θ, of maps whose determinant is negative at less "
    "than one prior draw in a hundred. The best of several steps of R, or of one step or more of gradient "
    "descent, ÷ the best single step of R decides: it has to be below 1.5, from where on we call a gain "
    "significant. Resolved are 150 effective samples of all chains, which stand for a hundred. Errors are "
    "judged by Student's t. On eight diabetes patients and width 8, where determinants are exact; γ = 2ε "
    "(Theorem 9.1) for all.",
    would_change="Chains long enough to converge; subsets of CIFAR-10, on which the paper compares the maps.",
    page="17-other-maps",
)
def one_step_is_enough(results: Results) -> Iterator[Finding]:
    kept = [row for row in results.rows if row["folded"] < MOST_REVERSED]
    groups = {
        "one step of R": [row for row in kept if row["map"] == "R" and row["iterations"] == 1],
        "several steps of R": [row for row in kept if row["map"] == "R" and row["iterations"] > 1],
        "gradient descent": [row for row in kept if row["map"] == "gradient descent"],
    }
    best = {name: max(rows, key=itemgetter("ess_projections")) for name, rows in groups.items() if rows}
    single, total = (
        best.pop("one step of R"),
        results.settings["num_chains"] * results.settings["num_steps"],
    )
    greatest = max(best.values(), key=itemgetter("ess_projections"))
    for name, row in best.items():
        gain = Measure.of(row, "ess_projections") / Measure.of(single, "ess_projections")
        ess = [one["ess_projections"] * total for one in (row, single)]
        yield Finding(
            f"ESS of projections, best of {name} ÷ best single step of R",
            gain,
            below=1.5,
            degrees=results.settings["num_chains"] - 1,
            decides=row is greatest,
            resolved=is_resolved(*ess),
            chains=behind(ess, (one["rhat_projections"] for one in (row, single))),
        )


def diabetes_patients(
    num_train: int, width: int, noise_std: float, seed: int
) -> tuple[BNN, Float[Array, "data 2"], Float[Array, "data 1"]]:
    """A network with one hidden layer, and two measurements of patients to fit it to: x (n, 2), y (n, 1)."""
    patients = data.diabetes()
    x = jnp.asarray(patients.x_train[:num_train, (BODY_MASS, TRIGLYCERIDES)])
    y = jnp.asarray(patients.y_train[:num_train])
    return (BNN(FCN(x.shape[1], width, rngs=nnx.Rngs(seed)), 1, noise_std), x, y)
