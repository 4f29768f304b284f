"""The convolution and its derivatives are what JAX makes of the same formula."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from widebnn.models.convolution import PADDINGS, convolve


def plain(x, kernel, stride, padding):
    low = (kernel.shape[0] - 1) // 2
    layout = ("NHWC", "HWIO", "NHWC")
    padding = "SAME" if padding == "same" else 2 * [(low, low)]
    return jax.lax.conv_general_dilated(x, kernel, 2 * (stride,), padding, dimension_numbers=layout)


SIZES = [(7, 6), (8, 9)]  # which leave every remainder at strides of 2 and 3


@pytest.mark.parametrize("stride", [1, 3])
def test_derivatives_are_those_of_autodiff(stride):
    shapes = [
        (padding, (2, *SIZES[i % 2], 3), (k, k, 3, 4))
        for padding in PADDINGS
        for i, k in enumerate((1, 2, 3, 5), start=stride)
    ]

    @jax.jit
    def both(rng_key):
        found = []
        for padding, *sizes in shapes:
            keys = jax.random.split(rng_key, 3)
            operands = [jax.random.normal(key, size) for key, size in zip(keys, sizes)]
            for convolution in (convolve, plain):
                value, pullback = jax.vjp(lambda *a: convolution(*a, stride, padding), *operands)  # noqa: B023
                found.append((value, pullback(jax.random.normal(keys[2], value.shape))))
        return found

    found = both(jax.random.key(0))
    assert len(found) == 16
    for ours, theirs in zip(found[::2], found[1::2], strict=True):
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_images_and_kernel_of_two_precisions_meet_in_the_finer():
    """Each gets its derivative in its own precision."""
    x, kernel = jnp.ones((2, 4, 4, 1)) / 3, jnp.ones((3, 3, 1, 2), jnp.float32)
    with jax.numpy_dtype_promotion("standard"):
        value, pullback = jax.vjp(convolve, x, kernel)
        expected = convolve(x, kernel.astype(x.dtype))
    assert value.dtype == jnp.float64 and jnp.array_equal(value, expected)
    assert [g.dtype for g in pullback(value)] == [jnp.float64, jnp.float32]


@pytest.mark.parametrize("axes, stride", [((0, 0), 2), ((0, None), 2)])
def test_chains_have_the_convolutions_that_they_have_alone(axes, stride):
    """With images, kernels or both of their own, and with more chains in each."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 2, 5, 6, 2) if axes[0] == 0 else (2, 5, 6, 2))
    kernel = rng.normal(size=(3, 3, 3, 2, 4) if axes[1] == 0 else (3, 3, 2, 4))

    @functools.partial(jax.jit, static_argnums=0)
    def gradients(convolution, x, kernel):
        together = jax.vmap(lambda x, kernel: convolution(x, kernel, stride, "same"), axes)
        return jax.grad(lambda x, kernel: jnp.sum(jnp.sin(together(x, kernel))), argnums=(0, 1))(x, kernel)

    for ours, theirs in zip(gradients(convolve, x, kernel), gradients(plain, x, kernel), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
    nested = jax.jit(jax.vmap(jax.vmap(convolve, axes), (None, 0)))(x, np.stack([kernel, 2 * kernel]))
    np.testing.assert_allclose(nested[1], 2 * nested[0], rtol=1e-10)


def test_other_devices_get_the_chains_at_once():
    x, kernels = jnp.ones((2, 4, 4, 3)), jnp.ones((5, 3, 3, 3, 4))
    traced = jax.jit(jax.vmap(convolve, (None, 0))).trace(x, kernels)
    assert "stablehlo.while" in traced.lower(lowering_platforms=("cpu",)).as_text()
    of_a_gpu = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "stablehlo.while" not in of_a_gpu and of_a_gpu.count("stablehlo.convolution") == 1


def test_derivatives_beyond_the_gradient_are_those_of_autodiff():
    """Forward over reverse, reverse over both, and several kernels side by side."""
    keys = jax.random.split(jax.random.key(0), 3)
    x, kernels, direction = (
        jax.random.normal(key, shape)
        for key, shape in zip(keys, [(2, 5, 4, 2), (3, 3, 3, 2, 2), (3, 3, 2, 2)], strict=True)
    )

    def derivatives(convolution):
        def energy(x, kernel):
            return jnp.sum(jnp.sin(convolution(x, kernel, 2, "same")))

        def along(kernel):
            return jax.jvp(lambda k: jax.grad(energy, (0, 1))(x, k), (kernel,), (direction,))[1]

        def beyond(kernel):
            of_x, of_kernel = along(kernel)
            return jnp.sum(of_x**2) + jnp.sum(of_kernel**3)

        return jax.jit(jax.vmap(lambda kernel: (along(kernel), jax.grad(beyond)(kernel))))(kernels)

    for ours, theirs in zip(*map(jax.tree.leaves, map(derivatives, (convolve, plain))), strict=True):
        assert jnp.abs(theirs).min() > 0
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
