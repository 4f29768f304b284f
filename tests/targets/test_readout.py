"""The readout's posterior in both spaces against dense formulas and the eigendecomposition form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from widebnn.targets import DataSpace, FeatureSpace, readout_posterior

CASES = [(4, 7, 0.3), (7, 4, 0.3), (5, 5, 2.0), (1, 3, 0.01), (6, 1, 10.0)]
"""n, p, λ."""


def data(n, p, d_out=2):
    rng = np.random.default_rng(n + 10 * p)
    return jnp.asarray(rng.normal(size=(n, p))), jnp.asarray(rng.normal(size=(n, d_out)))


def dense(psi, y, reg):
    """μ, Σ and K̂_λ as the theory prints them."""
    sigma = jnp.linalg.inv(jnp.eye(psi.shape[1]) + psi.T @ psi / reg)
    return sigma @ psi.T @ y / reg, sigma, psi @ psi.T + reg * jnp.eye(len(psi))


@pytest.fixture(params=CASES, ids=str)
def case(request):
    n, p, reg = request.param
    psi, y = data(n, p)
    return psi, y, reg


@pytest.fixture(params=[DataSpace, FeatureSpace])
def space(request):
    return request.param


def test_mean_quadratic_determinant_covariance(case, space):
    psi, y, reg = case
    posterior = space(psi, y, reg)
    mu, sigma, k = dense(psi, y, reg)
    new = data(3, psi.shape[1])[0]
    assert jnp.allclose(posterior.mean(), mu, atol=1e-11)
    assert jnp.allclose(posterior.quadratic(), jnp.trace(y.T @ jnp.linalg.inv(k) @ y), rtol=1e-11)
    assert jnp.allclose(posterior.log_det(), jnp.linalg.slogdet(k)[1], rtol=1e-11, atol=1e-11)
    assert jnp.allclose(posterior.covariance(new), new @ sigma @ new.T, atol=1e-11)


def test_eigendecomposition_form(case, space):
    """Hron et al. 2022, App. B, with the inverses that its print lacks: μ, ½ log det Σ, Σ by its root."""
    psi, y, reg = case
    posterior = space(psi, y, reg)
    n, p = psi.shape
    values, q = jnp.linalg.eigh(psi @ psi.T + reg * jnp.eye(n))
    root = jnp.eye(p) - psi.T @ q @ jnp.diag(1 / (jnp.sqrt(values) * (jnp.sqrt(reg) + jnp.sqrt(values)))) @ (
        q.T @ psi
    )
    assert jnp.allclose(posterior.mean(), psi.T @ q @ jnp.diag(1 / values) @ q.T @ y, atol=1e-11)
    half_log_det = n * jnp.log(reg) / 2 - jnp.sum(jnp.log(values)) / 2
    assert jnp.allclose(posterior.log_jacobian(), y.shape[1] * half_log_det, rtol=1e-11)
    new = data(3, p)[0]
    assert jnp.allclose(posterior.covariance(new), new @ root @ root.T @ new.T, atol=1e-11)


def test_transform_is_a_root_of_the_covariance(case, space):
    psi, y, reg = case
    posterior = space(psi, y, reg)
    mu, sigma, _ = dense(psi, y, reg)
    p = psi.shape[1]
    columns = [posterior.transform(jnp.tile(e[:, None], (1, 2)))[:, 0] - mu[:, 0] for e in jnp.eye(p)]
    root = jnp.stack(columns, axis=1)
    assert jnp.allclose(root @ root.T, sigma, atol=1e-11)


def test_inverse_and_jacobian(case, space):
    psi, y, reg = case
    posterior = space(psi, y, reg)
    phi = jnp.asarray(np.random.default_rng(5).normal(size=(psi.shape[1], y.shape[1])))
    assert jnp.allclose(posterior.inverse(posterior.transform(phi)), phi, atol=1e-9)
    assert jnp.allclose(posterior.transform(posterior.inverse(phi)), phi, atol=1e-9)
    jacobian = jax.jacobian(posterior.transform)(phi).reshape(phi.size, phi.size)
    sign, log_det = jnp.linalg.slogdet(jacobian)
    assert sign == 1
    assert jnp.allclose(posterior.log_jacobian(), log_det, rtol=1e-10)


def test_both_spaces_agree(case):
    """One potential, one prediction; the roots differ."""
    psi, y, reg = case
    data_space, feature_space = DataSpace(psi, y, reg), FeatureSpace(psi, y, reg)
    for question in ("quadratic", "log_det", "mean", "log_jacobian"):
        assert jnp.allclose(getattr(data_space, question)(), getattr(feature_space, question)(), atol=1e-10)
    assert jnp.allclose(data_space.covariance(psi), feature_space.covariance(psi), atol=1e-10)


def test_large_reg_leaves_the_readout_alone(space):
    psi, y = data(4, 6)
    phi = jnp.ones((6, 2))
    assert jnp.allclose(space(psi, y, 1e10).transform(phi), phi, atol=1e-7)
    assert not jnp.allclose(space(psi, y, 1.0).transform(phi), phi, atol=0.1)


def test_auto_takes_the_smaller_matrix():
    for n, p, expected in [(3, 8, DataSpace), (8, 3, FeatureSpace), (4, 4, DataSpace)]:
        assert isinstance(readout_posterior(*data(n, p), reg=0.5), expected)
    assert isinstance(readout_posterior(*data(3, 8), reg=0.5, space="feature"), FeatureSpace)
    assert isinstance(readout_posterior(*data(8, 3), reg=0.5, space="data"), DataSpace)
