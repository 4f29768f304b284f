"""Inputs that are no floating-point numbers: a column of integers must not cut new inputs to integers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import widebnn as wb

X = np.arange(-5, 6)[:, None]
X_NEW = np.array([[-0.7], [0.2], [0.7]])
Y = np.sin(X)


def network(out_features=1):
    return wb.BNN(wb.models.FCN(1, width=8, depth=1, rngs=nnx.Rngs(0)), out_features, noise_std=0.3)


def predictions(kind, x):
    """Of each model, at new inputs with fractions."""
    bnn = network(2 if kind == "categorical" else 1)
    if kind == "gaussian_process":
        return wb.nngp.gaussian_process(wb.nngp.nngp_kernel(bnn), x, Y, 0.3).mean(X_NEW)
    if kind == "categorical":
        target = wb.targets.categorical(bnn, x, (np.asarray(X) > 0).astype(int)[:, 0])
        return target.predictive_probabilities(X_NEW)(target.draw_prior(jax.random.key(0)))
    if kind == "rotated":
        target = wb.targets.rotated(wb.targets.marginal(bnn, x, Y))
    else:
        target = getattr(wb.targets, kind)(bnn, x, Y)
    return target.predictive_mean(X_NEW)(target.draw_prior(jax.random.key(0)))


KINDS = ["standard", "repriorised", "marginal", "rotated", "jacobian", "categorical", "gaussian_process"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_integer_inputs_predict_as_floats_do(kind):
    expected = predictions(kind, X.astype(float))
    assert len(np.unique(np.asarray(expected))) == expected.size  # the three inputs are told apart
    assert jnp.allclose(predictions(kind, X), expected, atol=1e-5)
    assert jnp.allclose(predictions(kind, jnp.asarray(X, jnp.int8)), expected, atol=1e-5)


@pytest.mark.parametrize("dtype", [bool, np.uint8])
def test_boolean_and_byte_inputs(dtype):
    bits = np.array([[0], [1], [1]])
    at = [network(), bits.astype(dtype), Y[:3]]
    target = wb.targets.marginal(*at)
    u = target.draw_prior(jax.random.key(0))
    expected = wb.targets.marginal(network(), bits.astype(float), Y[:3]).predictive_mean(X_NEW)(u)
    assert jnp.allclose(target.predictive_mean(X_NEW)(u), expected, atol=1e-5)


def test_complex_inputs_are_refused():
    with pytest.raises(TypeError, match="x must hold real numbers; got complex64"):
        wb._arrays.floating(x=X.astype(np.complex64))
