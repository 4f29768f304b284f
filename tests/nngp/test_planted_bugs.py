"""Bugs planted in kernels: what checks them must see every one."""

import contextlib
from unittest import mock

import jax.numpy as jnp

from widebnn.nngp import kernels
from widebnn.nngp.activations import EXPECTATIONS

from ..exact.kernels import assert_kernel, assert_tangent_kernel
from ..exact.planted import caught, passed


@contextlib.contextmanager
def traced_anew():
    """The compiled recursion is not that of before, and is not kept."""
    kernels._limit.clear_cache()
    try:
        yield
    finally:
        kernels._limit.clear_cache()


def wrong_expectations(name, first, second, check):
    """E[ψψ] and E[ψ′ψ′] changed by functions of what they are."""
    right = EXPECTATIONS[name]

    def wrong(a, c, b):
        values, slopes = right(a, c, b)
        return first(values), second(slopes)

    with mock.patch.dict(EXPECTATIONS, {name: wrong}), traced_anew():
        check(name)


def wrong_layer(weight, bias, check=assert_kernel):
    """A layer with other scales: functions of σ_W and σ_b."""
    right = kernels._dense

    def wrong(layer, weight_std, bias_std):
        return right(layer, weight(weight_std), bias(bias_std))

    with mock.patch.object(kernels, "_dense", wrong), traced_anew():
        check("gelu")


def same(value):
    return value


def tangent_forgets_first_layers(check=assert_tangent_kernel):
    right = kernels._dense

    def wrong(layer, weight_std, bias_std):
        return right(layer._replace(tangent=jnp.zeros_like(layer.tangent)), weight_std, bias_std)

    with mock.patch.object(kernels, "_dense", wrong), traced_anew():
        check("gelu")


KERNELS = {
    "erf: 1/π for 2/π": lambda: wrong_expectations("erf", lambda k: k / 2, same, assert_kernel),
    "σ_W not squared": lambda: wrong_layer(jnp.sqrt, same),
    "σ_b forgotten": lambda: wrong_layer(same, lambda bias_std: 0.0),
    "tangent kernel without E[ψ′ψ′]": lambda: wrong_expectations(
        "gelu", same, jnp.ones_like, assert_tangent_kernel
    ),
    "tangent kernel of the readout alone": tangent_forgets_first_layers,
}


test_bug_is_caught = caught(("kernel", "kernel off by .* standard errors", KERNELS))

test_right_one_of_the_same_make_passes = passed(
    expectations=lambda: wrong_expectations("erf", same, same, assert_kernel),
    layer=lambda: wrong_layer(same, same, assert_tangent_kernel),
)
