"""Hamiltonian Monte Carlo: leapfrog steps of H = U + ½‖u‖² + ½‖m‖², the momentum drawn afresh each time.

Neal, "MCMC using Hamiltonian dynamics", Handbook of Markov Chain Monte Carlo (2011), §2–3. One step is MALA:
Roberts & Tweedie, "Exponential convergence of Langevin distributions and their discrete approximations",
Bernoulli 2 (1996).
"""

from collections.abc import Callable

import jax
import jax.core
from jaxtyping import Array, Float, Int

from widebnn._check import Number, at_least, positive
from widebnn.samplers._base import GradientState, Potential, Sampler, accept
from widebnn.tree import Position, half_square_difference, normal_like


def leapfrog(
    potential: Potential, step_size: Number, num_steps: int | Int[Array, ""]
) -> Callable[[GradientState, Position], tuple[GradientState, Position, Float[Array, ""]]]:
    """Half a kick $−(ε/2)(u + ∇U)$, a drift $ε m$, half a kick; `num_steps` times.

    Parameters
    ----------
    potential
        $U$, minus the log density relative to $N(0, I)$; takes a pytree of arrays, returns a scalar.
    step_size
        $ε > 0$.
    num_steps
        Number of steps.

    Returns
    -------
    Callable
        $(state, m) ↦ (state′, m′, ΔH)$ with $H = U + ½‖u‖² + ½‖m‖²$. It is reversible: from
        $(state′, −m′)$ it leads back to $(state, −m)$.
    """
    if not callable(potential):
        hint = ": give target.potential" if hasattr(potential, "potential") else ""
        raise TypeError(f"potential must be a function of a position; got {type(potential).__name__}{hint}")
    _check(step_size, num_steps)

    def kick(m, u, g):
        return m - step_size / 2 * (u + g)

    def integrate(state, m):
        def one_step(_, carry):
            state, m = carry
            m = jax.tree.map(kick, m, state.position, state.gradient)
            u = jax.tree.map(lambda u, m: u + step_size * m, state.position, m)
            state = GradientState(u, *jax.value_and_grad(potential)(u))
            return state, jax.tree.map(kick, m, u, state.gradient)

        new, new_m = jax.lax.fori_loop(0, num_steps, one_step, (state, m))
        kinetic = half_square_difference(new_m, m)
        prior = half_square_difference(new.position, state.position)
        return new, new_m, new.potential - state.potential + prior + kinetic

    return integrate


class hmc(Sampler):
    """HMC for a density proportional to $exp(−½‖u‖² − U(u))$.

    The momentum is drawn afresh for each proposal, which is accepted with probability $min(1, exp(−ΔH))$,
    $H = U + ½‖u‖² + ½‖m‖²$.

    Parameters
    ----------
    step_size
        $ε > 0$ of the leapfrog; at $U = 0$ it is stable below 2.
    num_steps
        Leapfrog steps of a proposal, one gradient each.
    """

    step_size: Number
    num_steps: int | Int[Array, ""]

    def __post_init__(self):
        _check(self.step_size, self.num_steps)

    def init(self, target, position, rng_key=None):
        return GradientState(position, *jax.value_and_grad(target.potential)(position))

    def step(self, target, rng_key, state):
        integrate = leapfrog(target.potential, self.step_size, self.num_steps)
        momentum_key, accept_key = jax.random.split(rng_key)
        proposal, _, energy_change = integrate(state, normal_like(momentum_key, state.position))
        return accept(accept_key, -energy_change, state, proposal)


def mala(step_size: Number) -> hmc:
    """MALA for a density proportional to $exp(−½‖u‖² − U(u))$: it proposes $v = u − (ε²/2)(u + ∇U(u)) + εξ$.

    That is HMC with one leapfrog step.

    Parameters
    ----------
    step_size
        $ε > 0$, the coefficient of the noise.
    """
    return hmc(step_size, 1)


def _check(step_size: Number, num_steps: int | Int[Array, ""]) -> None:
    positive(step_size=step_size)
    if not isinstance(num_steps, jax.core.Tracer):
        at_least(1, num_steps=num_steps)
