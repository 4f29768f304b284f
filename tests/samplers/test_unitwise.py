"""The unit-wise sampler: each block's ΔU against recomputation, and exact answers on tiny networks."""

from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import widebnn as wb
from widebnn.samplers import _unitwise, unitwise
from widebnn.targets._marginal import marginal

from ..exact.networks import problem
from ..exact.planted import caught
from ..exact.units import assert_changes_of_potential


@pytest.mark.slow
@pytest.mark.parametrize(
    ("block_size", "n", "out_features", "bias_std"),
    [(2, 4, 3, 0.0), (6, 20, 1, 0.1)],
)
def test_every_block_is_accepted_with_its_change_of_the_potential(block_size, n, out_features, bias_std):
    tiny = problem(widths=(5, 6), out_features=out_features, n=n, bias_std=bias_std)
    assert_changes_of_potential(marginal(tiny.bnn, tiny.x, tiny.y), block_size)


@pytest.mark.slow
def test_noise_has_the_floor_of_the_potential():
    """In float32 at n = 256 and σ = .01, where 4ε tr ΨΨᵀ is ten times σ², against float64 at that noise.

    Rounding leaves a few hundredths; with σ² itself the first ΔU would be 6 where −15 is right.
    """
    rng = np.random.default_rng(0)
    x = np.float32(rng.normal(size=(256, 4)))
    y = np.float32(np.sin(x[:, :1]) + 0.05 * rng.normal(size=(256, 1)))

    def network(noise_std):
        return wb.BNN(wb.models.FCN(4, 320, rngs=nnx.Rngs(0)), 1, noise_std, weight_std=3.0)

    with jax.enable_x64(False):
        target = marginal(network(0.01), x, y)
        floor = float(target.readout_posterior(target.draw_prior(jax.random.key(0))).reg)
    assert floor > 9 * 0.01**2
    exact = marginal(network(floor**0.5), x.astype(float), y.astype(float))

    def potential(position):
        with jax.enable_x64(True):
            return float(exact.potential(jax.tree.map(lambda leaf: leaf.astype(float), position)))

    with jax.enable_x64(False):
        assert_changes_of_potential(target, 40, potential, tolerance=0.1)


@pytest.mark.slow
def test_with_fewer_units_than_rows_float32_is_right_or_refused():
    rng = np.random.default_rng(0)
    x, y = np.float32(rng.normal(size=(256, 4))), np.float32(rng.normal(size=(256, 1)))

    def target(noise_std, dtype=np.float32):
        bnn = wb.BNN(wb.models.FCN(4, 64, rngs=nnx.Rngs(0)), 1, noise_std, weight_std=3.0)
        return marginal(bnn, x.astype(dtype), y.astype(dtype))

    exact = jax.jit(target(0.3, np.float64).potential)

    def potential(position):
        with jax.enable_x64(True):
            return float(exact(jax.tree.map(lambda leaf: leaf.astype(float), position)))

    with jax.enable_x64(False):
        assert_changes_of_potential(target(0.3), 4, potential, tolerance=0.02)
        with pytest.raises(ValueError, match="noise_std must be at least 0.1.* in float32"):
            unitwise().prepare(target(0.01))


@pytest.mark.slow
def test_only_top_layer_moves_and_embedding_is_kept_in_step():
    tiny = problem(widths=(5, 6), n=4)
    target = marginal(tiny.bnn, tiny.x, tiny.y)
    sampler = unitwise().bind(target)
    start = sampler.init(target.draw_prior(jax.random.key(0)))
    sweeps = jax.jit(jax.vmap(sampler.step, (0, None)))
    states, infos = sweeps(jax.random.split(jax.random.key(1), 20), start)
    assert 0 < infos.acceptance_rate.mean() < 1
    embeddings = jax.jit(jax.vmap(target.embedding))(states.position)
    assert np.allclose(states.embedding, embeddings, atol=1e-13)
    before, after = (jax.tree.map(np.asarray, state.position["layers"]) for state in (start, states))
    (before_lower, before_top), (lower, top) = ((layers[0], layers[1]) for layers in (before, after))
    assert (lower["kernel"] == before_lower["kernel"][None]).all()
    columns_moved = np.asarray((top["kernel"] != before_top["kernel"][None]).any(axis=1))
    assert columns_moved.any() and not columns_moved.all()
    assert np.array_equal(columns_moved, np.asarray(top["bias"] != before_top["bias"][None]))


class Convolution(nnx.Module):
    """Two convolutions in NTK parametrisation and a mean over pixels."""

    def __init__(self, rngs):
        self.first = nnx.Param(jax.random.normal(rngs.params(), (3, 3, 1, 4)))
        self.kernel = nnx.Param(jax.random.normal(rngs.params(), (3, 3, 4, 6)))

    def __call__(self, x):
        h = x[..., None]
        for kernel in (self.first, self.kernel):
            w = kernel[...] / np.sqrt(np.prod(kernel.shape[:-1]))
            h = jax.nn.relu(
                jax.lax.conv_general_dilated(
                    h, w.astype(h.dtype), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
                )
            )
        return h.mean(axis=(1, 2))


@pytest.mark.slow
def test_channels_of_the_last_convolution_are_units():
    rng = np.random.default_rng(0)
    x, y = jnp.asarray(rng.normal(size=(5, 4, 4))), jnp.asarray(rng.normal(size=(5, 2)))
    target = marginal(wb.BNN(Convolution(nnx.Rngs(0)), 2, 0.3), x, y)
    assert target.units.is_unit == {"first": False, "kernel": True}
    assert_changes_of_potential(target, 2)


# Bugs.


def units_with(name, broken, block_size=2, **options):
    """The unit-wise sampler with one of its functions broken: `broken(right)` in its place."""
    tiny = problem(**({"widths": (3, 6), "out_features": 2, "n": 4} | options))
    target = wb.targets.marginal(tiny.bnn, tiny.x, tiny.y)
    with mock.patch.object(_unitwise, name, broken(getattr(_unitwise, name))):
        assert_changes_of_potential(target, block_size)


def without_log_det(right):
    return lambda m: (right(m)[0], jnp.zeros(()))


def without_inverse(right):
    return lambda m: (jnp.eye(len(m)), right(m)[1])


def of_wrong_noise(right):
    return lambda psi, noise_std: right(psi, jnp.sqrt(2) * noise_std)


UNITS = {
    "log |det M| left out": lambda: units_with("_inverse", without_log_det),
    "M taken for the identity": lambda: units_with("_inverse", without_inverse, n=20),
    "inverse at another σ": lambda: units_with("_inverse_of_kernel", of_wrong_noise, n=20),
}

test_bug_is_caught = caught(("unit", "change .* is right", UNITS))
