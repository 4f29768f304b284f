"""The law of the published pCNL: the closed form against brute force (chapter 19 runs its chains)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widebnn as wb
from book.experiments.published_pcnl import _shifts, published_marginal, published_potential

from ..exact.networks import problem


@pytest.mark.parametrize(("make", "is_right"), [(published_marginal, True), (lambda of: of.potential, False)])
def test_the_readout_integrated_out_of_the_published_law(float64, make, is_right):
    """−log ∫ exp(−½‖φ_W‖² − Φ) dφ_W up to a constant, Φ being quadratic in φ_W; the posterior is another."""
    tiny = problem(out_features=2, bias_std=0.1)
    whole = wb.targets.repriorised(tiny.bnn, tiny.x, tiny.y)
    misfit = published_potential(whole)
    potential = make(wb.targets.marginal(tiny.bnn, tiny.x, tiny.y))

    @jax.jit
    @jax.vmap
    def both(key):
        phi = whole.draw_prior(key)
        zero = jnp.zeros(phi.readout.size)

        def exponent(w):
            return misfit(phi._replace(readout=w.reshape(phi.readout.shape))) + w @ w / 2

        slope, curvature = jax.grad(exponent)(zero), jax.hessian(exponent)(zero)
        least = exponent(zero) - slope @ jnp.linalg.solve(curvature, slope) / 2
        return least + jnp.linalg.slogdet(curvature)[1] / 2, potential(phi.inner)

    exact, found = map(np.asarray, both(jax.random.split(jax.random.key(0), 4)))
    assert np.ptp(exact) > 0.1
    assert (np.ptp(found - exact) < 1e-9) == is_right


def made_up(rng, shift, scale, variance):
    means = (shift + scale * rng.standard_normal((2, 4_000, 2, 3))).astype(np.float32)
    return {"means": means, "variance": np.full((2, 4_000, 2), variance, np.float32)}


def test_summaries_of_a_known_shift():
    rng = np.random.default_rng(0)
    right, published = made_up(rng, 0.0, 0.6, 0.64), made_up(rng, 0.5, 0.3, 0.16)
    found = _shifts(right, published, slice(None))
    # posterior N(0, 0.36 + 0.64); published N(0.5, 0.09 + 0.16)
    assert abs(found["mean_shift"] - 0.5) < 5 * found["mean_shift_error"]
    assert abs(found["std_ratio"] - 0.5) < 5 * found["std_ratio_error"]
