"""More than one step towards the data: the Jacobian map iterated, and gradient descent (Hron et al., E.2)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from operator import itemgetter

import jax
import jax.numpy as jnp
from flax import nnx
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial

from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.tuned_chains import effective_samples, gain, share_folded
from widebnn import data, targets
from widebnn._pytree import STATIC, as_pytree
from widebnn.diagnostics import random_projections
from widebnn.models import BNN, FCN
from widebnn.tables import Results, Row

BODY_MASS, TRIGLYCERIDES = 2, 8
MOST_REVERSED = 0.01  # of prior draws, by a map that is taken for a bijection


@dataclass(frozen=True, eq=False, repr=False)
class Iterated(targets.Target):
    """φ with θ = S(S(…S(φ))) for a smooth map S of all parameters, whose determinant is computed exactly.

    U(φ) = −log p(y | θ) + ½‖θ‖² − ½‖φ‖² − Σ log |det ∂S|, where the sum is over the iterates.
    """

    of_theta: targets.Target
    step: Partial  # S
    iterations: int = field(metadata=STATIC)

    @property
    def template(self):
        return self.of_theta.template

    def potential(self, position):
        theta, _, log_det = self._moved(position)
        (old, _), (new, _) = ravel_pytree(position), ravel_pytree(theta)
        return self.of_theta.potential(theta) + (new - old) @ (new + old) / 2 - log_det

    def to_parameters(self, position):
        return self._moved(position)[0]

    def orientation(self, position):
        """The sign of det ∂θ/∂φ."""
        return self._moved(position)[1]

    def _moved(self, position):
        """θ, and the sign and the logarithm of |det ∂θ/∂φ|."""
        phi, unravel = ravel_pytree(position)

        def step(phi):
            return ravel_pytree(self.step(unravel(phi)))[0]

        def one(carry, _):
            phi, sign, log_det = carry
            new_sign, new_log_det = jnp.linalg.slogdet(jax.jacfwd(step)(phi))
            return (step(phi), sign * new_sign, log_det + new_log_det), None

        start = (phi, jnp.ones((), phi.dtype), jnp.zeros((), phi.dtype))
        theta, sign, log_det = jax.lax.scan(one, start, length=self.iterations)[0]
        return unravel(theta), sign, log_det


@experiment(SETTINGS["iterated_maps"], parts="iterations")
def iterated_maps(
    *, noise_std, seed, num_train, width, iterations, regs, rates, num_prior, num_projections, **chains
) -> Iterator[Row]:
    """Maps of the weights that take several steps: θ = M(φ), M being R or φ ↦ φ + α Jᵀ(y − f_φ(X)), iterated.

    Yields
    ------
    Rows with map ("R" or "gradient descent"), iterations, and size, λ of R and α of gradient descent;
    acceptance; step_size as tuned; effective samples per step of projections of θ, the mean and its standard
    error from the scatter over chains, and `rhat_projections`, the mean; folded, the share of prior draws
    with det ∂M/∂φ < 0, where M is not a bijection and its chain does not sample the posterior.
    """
    bnn, x, y = diabetes_patients(num_train, width, noise_std, seed)
    keys = jax.random.split(jax.random.key(seed), 3)
    quantities = {"projections": random_projections(keys[0], bnn.template(x), num=num_projections)}
    of_theta = targets.standard(bnn, x, y)
    maps = [("R", reg, as_pytree(targets.jacobian(bnn, x, y, reg).to_parameters)) for reg in regs]
    maps += [("gradient descent", rate, Partial(_descent, of_theta, rate)) for rate in rates]
    for (name, size, step), k in product(maps, iterations):
        target = Iterated(of_theta, step, k)
        yield (
            {"map": name, "iterations": k, "size": size}
            | {"folded": share_folded(keys[2], target, num_prior)}
            | effective_samples(keys[1], target, quantities, **chains)
        )


def _descent(of_theta, rate, position):
    """A step down ½‖y − f‖²."""
    slope = jax.grad(lambda phi: jnp.sum((of_theta.y - of_theta.bnn(phi, of_theta.x)) ** 2) / 2)
    return jax.tree.map(lambda phi, g: phi - rate * g, position, slope(position))


@iterated_maps.claim("H-AE2")
def one_step_is_enough(results: Results) -> Iterator[Finding]:
    bijections = [row for row in results.rows if row["folded"] < MOST_REVERSED]
    found = [_finding(results, bijections, name) for name in ("several steps of R", "gradient descent")]
    greatest = max(found, key=lambda finding: finding.value)
    yield from (replace(one, decides=one is greatest) for one in found)
    yield _finding(results, results.rows, "several steps of R", ", with maps that fold")


def _finding(results: Results, rows: Iterable[Row], name: str, which: str = "") -> Finding:
    """The best of these maps against the best single step of R."""

    def best(name: str) -> Row:
        return max((row for row in rows if _called(row) == name), key=itemgetter("ess_projections"))

    what = f"ESS of projections, best of {name} ÷ best single step of R{which}"
    return gain(results, what, best(name), best("one step of R"), below=1.5)


def _called(row: Row) -> str:
    if row["map"] != "R":
        return row["map"]
    return "one step of R" if row["iterations"] == 1 else "several steps of R"


def diabetes_patients(num_train, width, noise_std, seed):
    """A network with one hidden layer, and two measurements of patients to fit it to: x (n, 2), y (n, 1)."""
    patients = data.diabetes()
    x = jnp.asarray(patients.x_train[:num_train, (BODY_MASS, TRIGLYCERIDES)])
    y = jnp.asarray(patients.y_train[:num_train])
    return (BNN(FCN(x.shape[1], width, rngs=nnx.Rngs(seed)), 1, noise_std), x, y)
