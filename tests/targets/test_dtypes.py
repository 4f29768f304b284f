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


MODELS = {
    "standard": lambda x: wb.targets.standard(network(), x, Y),
    "repriorised": lambda x: wb.targets.repriorised(network(), x, Y),
    "marginal": lambda x: wb.targets.marginal(network(), x, Y),
    "jacobian": lambda x: wb.targets.jacobian(network(), x, Y),
    "rotated": lambda x: wb.targets.rotated(wb.targets.marginal(network(), x, Y)),
    "categorical": lambda x: wb.targets.categorical(network(2), x, (X > 0).astype(int)[:, 0]),
    "linear": lambda x: wb.targets.linear(x, Y, 0.3),
    "gaussian_process": lambda x: wb.nngp.gaussian_process(wb.nngp.nngp_kernel(network()), x, Y, 0.3),
}


@pytest.mark.parametrize("kind", MODELS)
def test_integer_inputs_are_floating_point_numbers(kind):
    """New inputs take their type."""
    expected = MODELS[kind](X.astype(float)).x
    for x in (X, jnp.asarray(X, jnp.int8)):
        found = MODELS[kind](x).x
        assert jnp.issubdtype(found.dtype, jnp.floating)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [int, np.int8, bool, np.uint8])
def test_predictions_are_those_of_floats(dtype):
    bits = np.array([[0], [1], [1]])
    target, floats = (wb.targets.marginal(network(), bits.astype(dtype), Y[:3]) for dtype in (dtype, float))
    means = jax.jit(lambda u: [wb.predictive_mean(X_NEW)(one, u) for one in (target, floats)])
    found, expected = means(target.draw_prior(jax.random.key(0)))
    assert len(np.unique(expected)) == expected.size  # the three inputs are told apart
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_complex_inputs_are_refused():
    with pytest.raises(TypeError, match="x must hold real numbers; got .* in complex64"):
        wb._arrays.floating(x=X.astype(np.complex64))
