"""The Jacobian reparametrisation R: one step towards the data, by the empirical tangent kernel."""

from collections.abc import Callable
from dataclasses import field
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float, Key

from widebnn._arrays import Inputs, Observations, Tabular
from widebnn._check import Number, at_least, positive
from widebnn._compile import jitted
from widebnn._pytree import STATIC
from widebnn.models import BNN, Parameters
from widebnn.targets._network import BNNTarget, checked, required

Flat = Float[Array, " d"]
Outputs = Callable[[Flat], Float[Array, " n"]]
"""f_φ(X), all observations and outputs in one vector, as a function of all parameters in one."""


class _Step(NamedTuple):
    """R(φ) and what it was made of: J, r̃, and the Cholesky factor of Θ̂_λ."""

    theta: Flat
    j: Float[Array, "n d"]
    residual: Float[Array, " n"]
    factor: Float[Array, "n n"]


class Jacobian(BNNTarget):
    """φ with θ = R(φ) = φ + Jᵀr̃, r̃ = Θ̂_λ⁻¹(y − f_φ(X)), Θ̂_λ = JJᵀ + λI.

    U(φ) = −log p(y | R(φ)) + ½‖R(φ)‖² − ½‖φ‖² − log |det ∂R/∂φ|. With H the Hessian of φ ↦ ⟨r̃, f_φ(X)⟩ at
    fixed r̃, and B the derivative of J in the direction Jᵀr̃, the determinant is

        det ∂R/∂φ = det(λ Θ̂_λ⁻¹) det(I + H − JᵀB/λ),

    eq. (12) of Hron et al. 2022 with its first factor taken out. Their eq. (13) leaves out JᵀB/λ and takes
    the first factor for a constant. Here both forms keep that factor, since Θ̂_λ is factorised anyway: the
    estimate is then exact where f is linear, and as λ → ∞.

    There is no `from_parameters`: R has no closed-form inverse, and where det ∂R/∂φ changes sign no inverse
    at all. Start a chain from a φ.
    """

    reg: Number = field(kw_only=True)
    num_probes: int | None = field(metadata=STATIC, kw_only=True, default=None)
    order: int = field(metadata=STATIC, kw_only=True, default=2)
    rng_key: Key[Array, ""] | None = field(kw_only=True, default=None)

    @jitted
    def potential(self, position: Parameters) -> Float[Array, ""]:
        f, phi, _ = self._flat(position)
        step = self._step(f, phi)
        misfit = jnp.sum((self.y.ravel() - f(step.theta)) ** 2) / (2 * self.bnn.noise_std**2)
        prior = jnp.sum((step.theta - phi) * (step.theta + phi)) / 2
        return misfit + prior - self._log_jacobian(f, phi, step)

    @jitted
    def log_jacobian(self, position: Parameters) -> Float[Array, ""]:
        """log |det ∂R/∂φ|, exact or estimated: what the potential takes for it."""
        f, phi, _ = self._flat(position)
        return self._log_jacobian(f, phi, self._step(f, phi))

    @jitted
    def orientation(self, position: Parameters) -> Float[Array, ""]:
        """The sign of det ∂R/∂φ, always exact; R is not injective where prior draws show both signs."""
        f, phi, _ = self._flat(position)
        return self._second_factor(f, phi, self._step(f, phi))[0]

    @jitted
    def to_parameters(self, position: Parameters, rng_key=None) -> Parameters:
        """θ = R(φ)."""
        f, phi, unravel = self._flat(position)
        return unravel(self._step(f, phi).theta)

    def inner(self, position: Parameters):
        return self.to_parameters(position).inner

    def readout(self, position: Parameters, rng_key=None) -> Float[Array, "p d_out"]:
        return self.to_parameters(position).readout

    def _flat(self, position):
        phi, unravel = ravel_pytree(position)
        return lambda phi, x=self.x: self.bnn(unravel(phi), x).ravel(), phi, unravel

    def _jacobian(self, f, phi: Flat) -> Float[Array, "n d"]:
        # input by input: the outputs at one depend on no other, and all rows at once would cost n times more
        rows = jax.vmap(lambda x: jax.jacrev(f)(phi, jax.tree.map(lambda a: a[None], x)))(self.x)
        return rows.reshape(-1, len(phi))

    def _step(self, f, phi: Flat) -> _Step:
        j = self._jacobian(f, phi)
        factor = jnp.linalg.cholesky(j @ j.T + self.reg * jnp.eye(len(j), dtype=j.dtype))
        residual = cho_solve((factor, True), self.y.ravel() - f(phi))
        return _Step(phi + j.T @ residual, j, residual, factor)

    def _second_factor(self, f, phi: Flat, step: _Step):
        """Sign and logarithm of |det(I + H − JᵀB/λ)|."""
        h = jax.hessian(lambda phi: step.residual @ f(phi))(phi)
        b = jax.jvp(lambda phi: self._jacobian(f, phi), (phi,), (step.theta - phi,))[1]
        return jnp.linalg.slogdet(jnp.eye(len(phi), dtype=phi.dtype) + h - step.j.T @ b / self.reg)

    def _log_jacobian(self, f, phi: Flat, step: _Step) -> Float[Array, ""]:
        first = len(step.factor) * jnp.log(self.reg) - 2 * jnp.sum(jnp.log(jnp.diag(step.factor)))
        if self.num_probes is None:
            return first + self._second_factor(f, phi, step)[1]
        rng_key = required(self.rng_key, "the probes")
        return first + hessian_log_det(f, phi, step.residual, self.num_probes, self.order, rng_key)


def hessian_log_det(
    f: Outputs, phi: Flat, r: Float[Array, " n"], num_probes: int, order: int, rng_key: Key[Array, ""]
) -> Float[Array, ""]:
    """An estimate of log |det(I + H)|, H the Hessian of φ ↦ ⟨r, f(φ)⟩ at fixed r.

    (1/S) Σ_i Σ_{j ≤ M} (−1)^{j+1}/j s_iᵀH^j s_i with S = `num_probes` Rademacher vectors and M = `order`
    (Hron et al. 2022, eq. 11); the series converges where ‖H‖ < 1. The probes are the same at every φ.
    """
    _, times_h = jax.linearize(lambda phi: jax.vjp(f, phi)[1](r)[0], phi)

    @jax.checkpoint  # a gradient goes probe after probe, so that memory does not grow with their number
    def of_probe(i):
        key = jax.random.fold_in(rng_key, i)
        powers = [jax.random.rademacher(key, phi.shape, phi.dtype)]
        for _ in range((order + 1) // 2):
            powers.append(times_h(powers[-1]))
        # H is symmetric: sᵀH^j s from two vectors with half the power each
        terms = [(-1) ** (j + 1) / j * powers[j // 2] @ powers[(j + 1) // 2] for j in range(1, order + 1)]
        return sum(terms[1:], terms[0])

    return jnp.mean(jax.lax.map(of_probe, jnp.arange(num_probes)))


def jacobian(
    bnn: BNN,
    x: Inputs | Tabular,
    y: Observations | Tabular,
    reg: Number | None = None,
    num_probes: int | None = None,
    order: int = 2,
    rng_key: Key[Array, ""] | None = None,
) -> Jacobian:
    """The posterior of $φ$ with $θ = R(φ) = φ + Jᵀ(JJᵀ + λI)⁻¹(y − f_φ(X))$, $J$ the Jacobian of $f_φ(X)$.

    The target's method ``to_parameters`` is $R$ (Hron et al. 2022, App. E.2). $R$ is a bijection for large
    $λ$ only: where $det ∂R/∂φ$ changes sign, the density of $φ$ counts every $θ$ as often as it is reached,
    and $θ = R(φ)$ does not follow the posterior. The method ``orientation`` gives that sign.

    Parameters
    ----------
    bnn
        The network.
    x, y
        Inputs $(n, ...)$ and observations $(n, d_out)$, as in `NetworkTarget`. $J$ has $n d_out$ rows, and
        one column per parameter.
    reg
        $λ > 0$; $σ²$ unless given. $λ → ∞$ gives back the standard parametrisation.
    num_probes
        None takes the exact determinant of a $d × d$ matrix, $d$ the number of parameters: for small
        networks. A number $S$ takes the approximation of Hron et al. 2022, eqs. (11) and (13), with $S$
        probes: the chain then samples another density, near the right one where $‖H‖$ and $‖JᵀB‖/λ$ are
        small. $H$ is the Hessian of $⟨r̃, f_φ(X)⟩$ at fixed $r̃ = (JJᵀ + λI)⁻¹(y − f_φ(X))$, and $B$ the
        derivative of $J$ in the direction $Jᵀr̃$.
    order
        $M ≥ 1$, the order of the Taylor series of the approximation.
    rng_key
        Key of the probes.

    Returns
    -------
    A `Target` with the methods of `NetworkTarget` but ``from_parameters``, and with ``log_jacobian`` and
    ``orientation``.
    """
    bnn, x, y, *_ = checked(bnn, x, y)
    if jnp.ndim(bnn.noise_std):
        raise ValueError("bnn must have one noise_std for all of y under the Jacobian map")
    reg = positive(reg=bnn.noise_std**2 if reg is None else reg)
    at_least(1, order=order)
    if num_probes is not None:
        at_least(1, num_probes=num_probes)
        required(rng_key, "the probes")
    return Jacobian(bnn, x, y, reg=reg, num_probes=num_probes, order=order, rng_key=rng_key)
