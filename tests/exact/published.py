"""The law of the published pCNL by brute force: φ_W integrated out of exp(−½‖φ‖² − Φ) as a Gaussian."""

import jax
import jax.numpy as jnp
import numpy as np

import widebnn as wb

from .networks import log_evidence, log_joint


def misfit(problem, target, phi):
    """−log p(y | T(φ)) up to a constant, from the joint density of θ = T(φ)."""
    theta = target.to_parameters(phi)
    squares = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(theta))
    return -log_joint(problem, theta) - squares / 2


def integrated(problem, target, phi):
    """−log ∫ exp(−½‖φ_W‖² − Φ) dφ_W; the exponent is quadratic in φ_W."""

    def exponent(w):
        return misfit(problem, target, phi._replace(readout=w.reshape(phi.readout.shape))) + w @ w / 2

    zero = jnp.zeros(phi.readout.size)
    slope, curvature = jax.grad(exponent)(zero), jax.hessian(exponent)(zero)
    least = exponent(zero) - slope @ jnp.linalg.solve(curvature, slope) / 2
    return least + jnp.linalg.slogdet(curvature)[1] / 2


def log_weight(half, whole, inner):
    """log of p(y | θ^{≤L}) at half the noise variance over the same at the whole."""
    return log_evidence(half, inner) - log_evidence(whole, inner)


def assert_integrates(problem, make_potential, space="auto", num=4):
    """`make_potential(marginal target)` is the integral by brute force up to one constant."""
    whole = wb.targets.repriorised(problem.bnn, problem.x, problem.y, space=space)
    potential = make_potential(wb.targets.marginal(problem.bnn, problem.x, problem.y, space=space))

    @jax.jit
    @jax.vmap
    def both(key):
        phi = whole.draw_prior(key)
        return integrated(problem, whole, phi), potential(phi.inner)

    exact, found = map(np.asarray, both(jax.random.split(jax.random.key(0), num)))
    assert np.ptp(exact) > 0.1, "the positions do not differ"
    error = (found - found[0]) - (exact - exact[0])
    assert np.allclose(error, 0, atol=1e-9), f"{found} where {exact} is right"
