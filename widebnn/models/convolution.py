"""A convolution whose derivatives XLA computes fast on a CPU, inside a loop as outside."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["PADDINGS", "convolve"]

PADDINGS = ("centred", "same")

Images = Float[Array, "n _height _width _channel"]
Kernel = Float[Array, "_k _k _c _d"]
Padding = list[tuple[int, int]]
"""Pixels before and behind an image, along its height and its width."""


def _convolution(x: Images, kernel: Kernel, stride: int, padding: Padding, **dilation) -> Images:
    """A convolution whose kernel may be another one for every chain.

    Under `jax.vmap` that is a grouped convolution, on a CPU two to three times as slow as one chain after
    another; so it is done there.
    """
    grouped = functools.partial(
        jax.lax.conv_general_dilated,
        window_strides=2 * (stride,),
        padding=padding,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        **dilation,
    )
    convolution = jax.custom_batching.custom_vmap(lambda x, kernel: grouped(x, kernel))

    @convolution.def_vmap
    def over_chains(num_chains, is_batched, x, kernel):
        of_chains, has_kernels = is_batched
        if not has_kernels:
            h = convolution(x.reshape(-1, *x.shape[2:]), kernel)
            return h.reshape(num_chains, -1, *h.shape[1:]), True

        def one_by_one(x, kernel):
            return jax.lax.map(
                lambda i: convolution(x[i] if of_chains else x, kernel[i]), jnp.arange(num_chains)
            )

        at_once = jax.vmap(grouped, (0 if of_chains else None, 0))
        return jax.lax.platform_dependent(x, kernel, cpu=one_by_one, default=at_once), True

    # Derivatives beyond the gradient go through here, and JAX has no reverse mode for `custom_vmap`.
    differentiable = jax.custom_jvp(lambda x, kernel: convolution(x, kernel))

    @differentiable.defjvp
    def product_rule(primals, tangents):
        (x, kernel), (dx, dkernel) = primals, tangents
        return differentiable(x, kernel), grouped(dx, kernel) + grouped(x, dkernel)

    return differentiable(x, kernel)


def convolve(x: Images, kernel: Kernel, stride: int = 1, padding: str = "centred") -> Images:
    """x ∗ kernel, padded with zeros so that an image keeps its size at stride 1.

    Its derivatives are convolutions too. JAX states them in layouts that XLA, on a CPU, passes to fast code
    only outside of loops: in a scan over minibatches they took thirty times as long. Here operands are
    transposed first, and layouts are always those of the forward pass.

    Parameters
    ----------
    x
        Images (n, height, width, channels).
    kernel
        (k, k, channels, channels out).
    stride
        Pixels from one output to the next.
    padding
        "centred" for ⌊(k − 1)/2⌋ pixels on every side, as PyTorch users write it, which keeps the size where
        k is odd; "same" for as many as ⌈size/stride⌉ outputs need, one less before than behind where they are
        odd, as TensorFlow, Flax and neural-tangents have it. They can differ at strides above 1.
    """
    dtype = jnp.promote_types(x.dtype, kernel.dtype)  # which `jax.lax` leaves to its caller
    return _convolve(x.astype(dtype), kernel.astype(dtype), stride, padding)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _convolve(x: Images, kernel: Kernel, stride: int, padding: str) -> Images:
    return _convolution(x, kernel, stride, _padding(x, kernel, stride, padding))


def _padding(x: Images, kernel: Kernel, stride: int, padding: str) -> Padding:
    k = len(kernel)
    if padding == "centred":
        return 2 * [((k - 1) // 2, (k - 1) // 2)]
    missing = [max((-(-size // stride) - 1) * stride + k - size, 0) for size in x.shape[1:3]]
    return [(total // 2, total - total // 2) for total in missing]


def _forward(x: Images, kernel: Kernel, stride: int, padding: str):
    # not by _convolve: a derivative of the gradient goes through here in forward mode
    return _convolution(x, kernel, stride, _padding(x, kernel, stride, padding)), (x, kernel)


def _backward(stride: int, padding: str, operands: tuple[Images, Kernel], g: Images) -> tuple[Images, Kernel]:
    x, kernel = operands
    k, spread = len(kernel), 2 * (stride,)
    before = [low for low, _ in _padding(x, kernel, stride, padding)]
    # how far the images reach beyond the first pixel of the last window that is no padding
    beyond = [
        size + low - 1 - (num - 1) * stride for size, num, low in zip(x.shape[1:3], g.shape[1:3], before)
    ]
    flipped = kernel[::-1, ::-1].transpose(0, 1, 3, 2)
    dx = _convolution(
        g, flipped, 1, [(k - 1 - low, rest) for low, rest in zip(before, beyond)], lhs_dilation=spread
    )
    dk = _convolution(
        x.transpose(3, 1, 2, 0),
        g.transpose(1, 2, 0, 3),
        1,
        [(low, k - 1 - rest) for low, rest in zip(before, beyond)],
        rhs_dilation=spread,
    )
    return dx, dk.transpose(1, 2, 0, 3)


_convolve.defvjp(_forward, _backward)
