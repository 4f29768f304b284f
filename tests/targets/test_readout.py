"""The readout's posterior in both spaces against dense formulas and the eigendecomposition form."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from widebnn.targets import DataSpace, FeatureSpace, readout_posterior

CASES = [(4, 7, 0.3), (7, 4, 2.0), (1, 3, 0.01), (6, 1, 10.0)]
"""n, p, λ."""


def data(n, p, d_out=2):
    rng = np.random.default_rng(n + 10 * p)
    return rng.normal(size=(n, p)), rng.normal(size=(n, d_out))


@jax.jit
def answers(psi, y, reg, new, phi):
    """What both spaces answer, by one program for each shape."""

    def of_space(posterior):
        def column(e):
            return posterior.transform(jnp.tile(e[:, None], (1, 2)))[:, 0] - posterior.mean()[:, 0]

        return {
            "mean": posterior.mean(),
            "quadratic": posterior.quadratic(),
            "log_det": posterior.log_det(),
            "covariance": posterior.covariance(new),
            "log_jacobian": posterior.log_jacobian(),
            "root": jax.vmap(column, out_axes=1)(jnp.eye(psi.shape[1])),
            "there and back": posterior.inverse(posterior.transform(phi)),
            "back and there": posterior.transform(posterior.inverse(phi)),
            "jacobian": jax.jacobian(posterior.transform)(phi).reshape(phi.size, phi.size),
        }

    return {kind.__name__: of_space(kind(psi, y, reg)) for kind in (DataSpace, FeatureSpace)}


@functools.cache
def solved(n, p, reg):
    (psi, y), new = data(n, p), data(3, p)[0]
    phi = np.random.default_rng(5).normal(size=(p, 2))
    return psi, y, reg, new, phi, jax.device_get(answers(psi, y, reg, new, phi))


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return solved(*request.param)


@pytest.fixture(params=["DataSpace", "FeatureSpace"])
def space(request):
    return request.param


def test_moments_and_root_are_the_dense_ones(case, space):
    """μ, Σ and K̂_λ as the theory prints them."""
    psi, y, reg, new, _, found = case
    sigma = np.linalg.inv(np.eye(psi.shape[1]) + psi.T @ psi / reg)
    k = psi @ psi.T + reg * np.eye(len(psi))
    assert_allclose(found[space]["mean"], sigma @ psi.T @ y / reg, atol=1e-11)
    assert_allclose(found[space]["quadratic"], np.trace(y.T @ np.linalg.inv(k) @ y), rtol=1e-11)
    assert_allclose(found[space]["log_det"], np.linalg.slogdet(k)[1], rtol=1e-11, atol=1e-11)
    assert_allclose(found[space]["covariance"], new @ sigma @ new.T, atol=1e-11)
    assert_allclose(found[space]["root"] @ found[space]["root"].T, sigma, atol=1e-11)


def test_eigendecomposition_form(case, space):
    """Hron et al. 2022, App. B, with the inverses that its print lacks: μ, ½ log det Σ, Σ by its root."""
    psi, y, reg, new, _, found = case
    n, p = psi.shape
    values, q = np.linalg.eigh(psi @ psi.T + reg * np.eye(n))
    inner = np.diag(1 / (np.sqrt(values) * (np.sqrt(reg) + np.sqrt(values))))
    root = np.eye(p) - psi.T @ q @ inner @ (q.T @ psi)
    assert_allclose(found[space]["mean"], psi.T @ q @ np.diag(1 / values) @ q.T @ y, atol=1e-11)
    half_log_det = n * np.log(reg) / 2 - np.sum(np.log(values)) / 2
    assert_allclose(found[space]["log_jacobian"], y.shape[1] * half_log_det, rtol=1e-11)
    assert_allclose(found[space]["covariance"], new @ root @ root.T @ new.T, atol=1e-11)


def test_inverse_and_jacobian(case, space):
    *_, phi, found = case
    for way in ("there and back", "back and there"):
        assert_allclose(found[space][way], phi, atol=1e-9)
    sign, log_det = np.linalg.slogdet(found[space]["jacobian"])
    assert sign == 1
    assert_allclose(found[space]["log_jacobian"], log_det, rtol=1e-10)


@pytest.mark.parametrize(
    ("n", "p", "space", "kind"),
    [
        (3, 8, "auto", DataSpace),
        (8, 3, "auto", FeatureSpace),
        (4, 4, "auto", DataSpace),
        (3, 8, "feature", FeatureSpace),
        (8, 3, "data", DataSpace),
    ],
)
def test_auto_takes_the_smaller_matrix(n, p, space, kind):
    psi, y = map(jnp.asarray, data(n, p))
    assert isinstance(readout_posterior(psi, y, 0.5, space), kind)


@jax.jit
def left_out(psi, y, reg):
    return [kind(psi, y, reg).left_out(psi) for kind in (DataSpace, FeatureSpace)]


def test_rows_that_decide_their_own_predictions_are_left_out_to_single_precision(float32):
    """1 − h_i near 4·10⁻⁶: the difference itself has no digit left in float32."""
    psi, y = data(40, 30)
    psi[3] *= 300
    reg = 1.0
    inverse = np.linalg.inv(psi @ psi.T + reg * np.eye(len(psi)))
    assert reg * np.diag(inverse).min() < 5e-6
    exact = inverse @ y / np.diag(inverse)[:, None], 1 / np.diag(inverse)
    for found in left_out(*(np.asarray(a, np.float32) for a in (psi, y, reg))):
        for mine, wanted in zip(found, exact, strict=True):
            assert_allclose(mine, wanted, rtol=1e-2, atol=1e-2 * np.abs(y).max())
