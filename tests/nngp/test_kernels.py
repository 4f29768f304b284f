"""Kernels of infinitely wide dense networks: against neural-tangents, integrals, and finite networks."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import widebnn as wb
from widebnn.models import ACTIVATIONS, BNN, FCN
from widebnn.nngp.activations import EXPECTATIONS

from ..exact.kernels import assert_kernel, assert_tangent_kernel, inputs, network

KERNELS = {"nngp": wb.nngp.nngp_kernel, "ntk": wb.nngp.ntk_kernel}


def stax_twin(bnn):
    """The same network in neural-tangents."""
    stax = wb.nngp.neural_tangents().stax
    psi = {"relu": stax.Relu(), "erf": stax.Erf(), "gelu": stax.Gelu()}[bnn.features.module.activation]
    hidden = [part for layer in bnn.features.module.layers for part in (stax_dense(layer), psi)]
    kernel_fn = stax.serial(*hidden, stax_dense(bnn))[2]
    return [wb.nngp.stax_kernel(kernel_fn, kind) for kind in KERNELS]


def stax_dense(layer):
    stax = wb.nngp.neural_tangents().stax
    return stax.Dense(1, W_std=layer.weight_std, b_std=layer.bias_std, parameterization="ntk")


@pytest.mark.parametrize(
    "activation, depth, dtype, tolerance",
    [
        ("gelu", 0, jnp.float64, 1e-12),
        ("gelu", 1, jnp.float32, 1e-5),
        ("gelu", 4, jnp.float64, 1e-12),
        ("erf", 4, jnp.float64, 1e-12),
        ("relu", 4, jnp.float64, 1e-12),
    ],
)
def test_agrees_with_neural_tangents(mixed_dtypes, activation, depth, dtype, tolerance):
    bnn = network(depth=depth, activation=activation, in_features=5)
    x1, x2 = (jnp.asarray(x, dtype) for x in np.split(inputs(10, 5), [4]))
    for kernel, twin in zip((make(bnn) for make in KERNELS.values()), stax_twin(bnn)):
        for args in [(x1,), (x1, x2)]:
            found, exact = np.array(kernel(*args)), np.array(twin(*args))
            assert found.dtype == dtype
            if activation == "relu" and len(args) == 1:  # at their cusp compiled kernels of stax lose half
                assert np.allclose(np.diag(found), np.diag(exact), rtol=0, atol=1e-7)
                np.fill_diagonal(found, np.diag(exact))
            assert np.allclose(found, exact, rtol=0, atol=tolerance * np.abs(exact).max())


def covariances(num=50):
    """(a, c, b) of Gaussian pairs, scales from 0.1 to 10, correlations over (−1, 1)."""
    rng = np.random.default_rng(1)
    a, b = np.exp(rng.uniform(math.log(0.1), math.log(10), (2, num)))
    return tuple(v[:, None] for v in (a, rng.uniform(-0.99, 0.99, num) * np.sqrt(a * b), b))


@pytest.mark.parametrize("activation", EXPECTATIONS)
def test_second_expectation_is_the_derivative_of_the_first(activation):
    """Price's theorem: ∂_c E[ψ(u)ψ(v)] = E[ψ′(u)ψ′(v)]."""

    @jax.jit
    def both(a, c, b):
        _, derivative = jax.jvp(lambda c: EXPECTATIONS[activation](a, c, b)[0], (c,), (jnp.ones_like(c),))
        return EXPECTATIONS[activation](a, c, b)[1], derivative

    np.testing.assert_allclose(*both(*covariances()), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("activation", EXPECTATIONS)
def test_expectations_are_continuous_where_inputs_meet(activation):
    """u = ±v as the limit of correlations h below it; under ReLU E[ψ′ψ′] has a cusp there, √(2h)/2π."""
    h, q = 1e-10, np.array([[0.1], [1.0], [30.0]])
    expectations = jax.jit(EXPECTATIONS[activation])
    for sign in (1, -1):
        limits, near = expectations(q, sign * q, q), expectations(q, sign * (1 - h) * q, q)
        for at, close, gap in zip(limits, near, (30 * h, math.sqrt(h))):
            assert np.isfinite(at).all() and np.allclose(at, close, rtol=0, atol=gap)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["erf", "gelu"])
def test_expectations_are_their_integrals(activation):
    """Gauss–Hermite quadrature in two dimensions; what a third fewer nodes change is its error."""
    a, c, b = (v[::10] for v in covariances())

    @jax.jit
    def products(u, v):
        slope = jnp.vectorize(jax.grad(ACTIVATIONS[activation]))
        return [f(u) * f(v) for f in (ACTIVATIONS[activation], slope)]

    def integrals(nodes):
        z, w = np.polynomial.hermite_e.hermegauss(nodes)
        weights = np.outer(w, w).ravel() / (2 * math.pi)
        z1, z2 = (m.ravel()[None, :] for m in np.meshgrid(z, z))
        both = products(np.sqrt(a) * z1, c / np.sqrt(a) * z1 + np.sqrt(b - c**2 / a) * z2)
        return [(np.asarray(values) @ weights)[:, None] for values in both]

    expectations = jax.jit(EXPECTATIONS[activation])(a, c, b)
    for exact, fewer, found in zip(integrals(180), integrals(120), expectations):
        error = np.abs(exact - fewer)
        assert error.max() < 1e-3, "the quadrature has not converged"
        assert np.all(np.abs(found - exact) <= 2 * error + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("check", [assert_kernel, assert_tangent_kernel])
def test_kernels_are_means_over_finite_networks(check):
    check("gelu")


def images(scale):
    """Digits beside near-duplicates of some of them."""
    x = wb.data.digits(num_train=256).x_train
    return (scale * np.concatenate([x, x[:8] * (1 + 1e-4)])).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize(("activation", "scale"), [("relu", 1.0), ("erf", 100.0)])
def test_float32_holds_the_kernel(float32, activation, scale):
    """Relative to the largest entry: 1e-6 of the kernel, and √ε of ReLU's tangent kernel at its cusp.

    erf saturates on inputs of norm 1,000: it becomes a step, whose angles have the same cusp in the kernel
    itself, blunted by 1 + 2a: there float32 holds √ε/10.
    """
    bnn, x = network(depth=2, activation=activation, in_features=64), images(scale)
    eps = np.finfo(np.float32).eps
    tolerance = {kind: 20 * eps for kind in KERNELS}
    if activation == "relu" or scale > 1:
        tolerance["ntk"] = 4 * math.sqrt(eps)
    if activation == "erf" and scale > 1:
        tolerance = {"nngp": math.sqrt(eps) / 4, "ntk": 40 * math.sqrt(eps)}
    for kind, make in KERNELS.items():
        single = np.asarray(make(bnn)(jnp.asarray(x)), np.float64)
        with jax.enable_x64(True):
            double = np.asarray(make(bnn)(jnp.asarray(x, jnp.float64)))
        error = np.abs(single - double).max() / np.abs(double).max()
        assert error < tolerance[kind], f"{kind}: {error:.1e}"


def test_a_kernel_is_one_program_per_shape(caplog):
    """Whatever the scales, the width and which of the two kernels is asked for."""
    x = jnp.ones((3, 11), jnp.float32)
    bnns = [BNN(FCN(11, width, 2, weight_std=width, rngs=nnx.Rngs(0)), 1, 0.1) for width in (2, 3)]
    with jax.log_compiles():
        kernels = [make(bnn)(x) for make in KERNELS.values() for bnn in bnns]
    assert len({float(np.sum(k)) for k in kernels}) == 4
    assert sum("Finished XLA compilation" in record.getMessage() for record in caplog.records) == 1
