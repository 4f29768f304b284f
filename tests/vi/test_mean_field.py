"""The family, its divergence and its draws, against quadrature, moments and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import widebnn as wb
from widebnn.vi import MeanField

KEY = jax.random.key(0)


def scalar(mean, std):
    return wb.vi.mean_field({"w": jnp.full((1,), mean)}, std)


@pytest.mark.parametrize(("mean", "std", "variance"), [(0.3, 0.2, 0.2), (-1.0, 2.0, 0.04), (0.0, 1e-3, 1.0)])
def test_divergence_agrees_with_quadrature(mean, std, variance):
    q, p = norm(mean, std), norm(0, variance**0.5)
    wanted, _ = quad(lambda w: q.pdf(w) * (q.logpdf(w) - p.logpdf(w)), mean - 12 * std, mean + 12 * std)
    np.testing.assert_allclose(wb.vi.kl_divergence(scalar(mean, std), variance), wanted, rtol=1e-7)


def test_divergence_near_the_prior_keeps_its_digits_in_float32(float32):
    """ε²/4 a weight for σ² = (1 + ε)v, far below the rounding of σ²/v."""
    q = scalar(0.0, float(np.sqrt(0.2 * 1.001)))
    np.testing.assert_allclose(wb.vi.kl_divergence(q, 0.2), 1e-6 / 4, rtol=0.01)


def test_draws_have_their_moments():
    q = MeanField({"w": jnp.array([1.0, -2.0])}, {"w": jnp.array([-1.0, 1.0])})
    draws = np.asarray(jax.jit(jax.vmap(q.draw))(jax.random.split(KEY, 20_000))["w"])
    np.testing.assert_allclose(draws.mean(axis=0), q.mean["w"], atol=0.05)
    np.testing.assert_allclose(draws.std(axis=0), q.std["w"], rtol=0.03)


def test_sampled_steps_are_those_of_algorithm_1():
    """(84) and (85) of Huix et al., the latter with −ρ for its ρ, as printed a control.

    Of log L against the derivative of the package; of log q − log P₀ on average, by three nodes of Gauss and
    Hermite, against the gradient of the KL divergence: of each weight it is a polynomial of degree 2 in z.
    """
    q, variance = wb.vi.mean_field(jnp.linspace(-1.0, 2.0, 5), 0.3), 0.2

    def log_likelihood(w):
        return jnp.sum(jnp.sin(w) * jnp.roll(w, 1))

    def log_ratio(w, q):
        return jnp.sum(w**2 / variance - ((w - q.mean) / q.std) ** 2 - 2 * jnp.log(q.std)) / 2

    def step(g, z, sign):
        by_w, own = jax.grad(g, (0, 1))(q.mean + q.std * z, q)
        return jnp.stack([by_w + own.mean, by_w * z / (1 + jnp.exp(sign * q.rho)) + own.rho])

    @jax.jit
    def answers(sign):
        z = (q.draw(jax.random.split(KEY, 1)[0]) - q.mean) / q.std  # the draw that the package makes
        nodes = [(1 / 6, -(3**0.5)), (2 / 3, 0.0), (1 / 6, 3**0.5)]
        of_kl = sum(weight * step(log_ratio, jnp.full(5, node), sign) for weight, node in nodes)
        return step(lambda w, q: log_likelihood(w), z, sign), of_kl

    of_likelihood = jax.grad(lambda q: wb.vi.elbo(KEY, q, log_likelihood).log_likelihood)(q)
    wanted = [jnp.stack(one) for one in (of_likelihood, jax.grad(wb.vi.kl_divergence)(q, variance))]
    for right, printed, exact in zip(answers(-1.0), answers(1.0), wanted, strict=True):
        np.testing.assert_allclose(right, exact, rtol=1e-9, atol=1e-12)
        assert np.abs(printed - exact).max() > 0.01 * np.abs(exact).max()
