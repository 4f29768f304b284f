"""The convolution and its derivatives are what JAX makes of the same formula."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from widebnn.models.convolution import convolve


def plain(x, kernel, stride, padding):
    low = (kernel.shape[0] - 1) // 2
    layout = ("NHWC", "HWIO", "NHWC")
    padding = "SAME" if padding == "same" else 2 * [(low, low)]
    return jax.lax.conv_general_dilated(x, kernel, 2 * (stride,), padding, dimension_numbers=layout)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(8, 8), (7, 6), (5, 9)])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("padding", ["centred", "same"])
def test_derivatives_are_those_of_autodiff(size, stride, k, padding):
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (2, *size, 3))
    kernel = jax.random.normal(keys[1], (k, k, 3, 4))
    value, pullback = jax.vjp(lambda x, kernel: convolve(x, kernel, stride, padding), x, kernel)
    expected, of_autodiff = jax.vjp(lambda x, kernel: plain(x, kernel, stride, padding), x, kernel)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    g = jax.random.normal(keys[2], value.shape)
    for ours, theirs in zip(pullback(g), of_autodiff(g), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_images_and_kernel_of_two_precisions_meet_in_the_finer():
    """Each gets its derivative in its own precision."""
    x, kernel = jnp.ones((2, 4, 4, 1)) / 3, jnp.ones((3, 3, 1, 2), jnp.float32)
    with jax.numpy_dtype_promotion("standard"):
        value, pullback = jax.vjp(convolve, x, kernel)
        expected = convolve(x, kernel.astype(x.dtype))
    assert value.dtype == jnp.float64 and jnp.array_equal(value, expected)
    assert [g.dtype for g in pullback(value)] == [jnp.float64, jnp.float32]


def test_draws_of_the_kernel_lie_side_by_side():
    x, kernels = jnp.ones((2, 4, 4, 1)), jnp.arange(18.0).reshape(2, 3, 3, 1, 1)
    gradient = jax.vmap(jax.grad(lambda kernel: jnp.sum(convolve(x, kernel) ** 2)))(kernels)
    alone = jnp.stack([jax.grad(lambda k: jnp.sum(convolve(x, k) ** 2))(kernel) for kernel in kernels])
    np.testing.assert_allclose(gradient, alone, rtol=1e-5)


@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None)])
@pytest.mark.parametrize("stride", [1, 2])
def test_chains_have_the_convolutions_that_they_have_alone(axes, stride):
    """With images, kernels or both of their own, and with more chains in each."""
    keys = jax.random.split(jax.random.key(0), 2)
    x = jax.random.normal(keys[0], (3, 2, 5, 6, 2) if axes[0] == 0 else (2, 5, 6, 2))
    kernel = jax.random.normal(keys[1], (3, 3, 3, 2, 4) if axes[1] == 0 else (3, 3, 2, 4))

    def gradients(convolution):
        together = jax.vmap(lambda x, kernel: convolution(x, kernel, stride, "same"), axes)
        return jax.grad(lambda x, kernel: jnp.sum(jnp.sin(together(x, kernel))), argnums=(0, 1))

    for ours, theirs in zip(gradients(convolve)(x, kernel), gradients(plain)(x, kernel), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
    twice = jnp.stack([kernel, 2 * kernel])
    nested = jax.vmap(jax.vmap(convolve, axes), (None, 0))(x, twice)
    np.testing.assert_allclose(nested[1], 2 * nested[0], rtol=1e-10)


def test_other_devices_get_the_chains_at_once():
    x, kernels = jnp.ones((2, 4, 4, 3)), jnp.ones((5, 3, 3, 3, 4))
    traced = jax.jit(jax.vmap(convolve, (None, 0))).trace(x, kernels)
    assert "stablehlo.while" in traced.lower(lowering_platforms=("cpu",)).as_text()
    of_a_gpu = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "stablehlo.while" not in of_a_gpu and of_a_gpu.count("stablehlo.convolution") == 1


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", ["centred", "same"])
def test_derivatives_beyond_the_gradient_are_those_of_autodiff(stride, padding):
    """Forward over reverse, reverse over both, and several kernels side by side."""
    keys = jax.random.split(jax.random.key(0), 3)
    x, kernels, direction = (
        jax.random.normal(key, shape)
        for key, shape in zip(keys, [(2, 5, 4, 2), (3, 3, 3, 2, 2), (3, 3, 2, 2)], strict=True)
    )

    def derivatives(convolution):
        def energy(x, kernel):
            return jnp.sum(jnp.sin(convolution(x, kernel, stride, padding)))

        def along(kernel):
            return jax.jvp(lambda k: jax.grad(energy, (0, 1))(x, k), (kernel,), (direction,))[1]

        def beyond(kernel):
            of_x, of_kernel = along(kernel)
            return jnp.sum(of_x**2) + jnp.sum(of_kernel**3)

        return jax.jit(jax.vmap(lambda kernel: (along(kernel), jax.grad(beyond)(kernel))))(kernels)

    for ours, theirs in zip(*map(jax.tree.leaves, map(derivatives, (convolve, plain))), strict=True):
        assert jnp.abs(theirs).min() > 0
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
