"""Data are copied, and no conversion takes from them in silence what distinguishes their rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from flax import nnx

import widebnn as wb

N = 40
Y = np.sin(np.arange(N) / 5)


def network(out_features=1):
    return wb.BNN(wb.models.FCN(2, 4, rngs=nnx.Rngs(0)), out_features, noise_std=0.3)


def on_a_boundary(values):
    """A copy on a boundary of 64 bytes, whose memory `jax.device_put` takes over."""
    values = np.asarray(values)
    memory = np.empty(values.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    array = memory[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    array[...] = values
    return array


def mapped(values, folder):
    np.save(folder / "x.npy", values)
    return np.load(folder / "x.npy", mmap_mode="r+")


WAYS = {
    "aligned": lambda x, folder: (on_a_boundary(x),) * 2,
    "memory map": lambda x, folder: (mapped(x, folder),) * 2,
    "pandas": lambda x, folder: ((a := on_a_boundary(x)), pd.DataFrame(a, copy=False)),
    "JAX": lambda x, folder: ((a := on_a_boundary(x)), jax.device_put(a)),
}
"""An array of the caller, and what is handed over of it."""

KEEPERS = {
    "marginal": lambda x, y: wb.targets.marginal(network(), x, y),
    "linear": lambda x, y: wb.targets.linear(x, y, 0.3),
    "student_t": lambda x, y: wb.targets.student_t(network(), x, y),
    "categorical": lambda x, y: wb.targets.categorical(network(1), x, y),  # of one class, as one-hot rows
    "process": lambda x, y: wb.nngp.gaussian_process(wb.nngp.nngp_kernel(network()), x, y, 0.3),
    "new inputs": lambda x, y: wb.targets.marginal(network(), X, Y).prepared(x),
}

X = np.random.default_rng(0).normal(size=(N, 2)).astype(np.float32)


CASES = [("aligned", keeper) for keeper in KEEPERS]
CASES += [(way, "marginal") for way in WAYS if way != "aligned"]


@pytest.mark.parametrize(("way", "keeper"), CASES)
def test_what_the_caller_writes_later_changes_nothing(way, keeper, tmp_path, float32):
    x, given = WAYS[way](X, tmp_path)
    y = on_a_boundary(np.ones((N, 1), np.float32))
    kept = KEEPERS[keeper](given, y)
    before = [np.array(leaf) for leaf in jax.tree.leaves(kept)]
    x[...], y[...] = 7, 7
    for leaf, was in zip(jax.tree.leaves(kept), before, strict=True):
        np.testing.assert_array_equal(leaf, was)


def test_memory_is_shared_without_a_copy(float32):
    """Or the test above could not fail."""
    x = on_a_boundary(X)
    shared = jax.device_put(x)
    x[...] = 7
    assert (np.asarray(shared) == 7).all()


def inputs(column):
    """Beside a column that is no trouble."""
    return np.column_stack([column, np.linspace(-1, 1, len(column))])


ROWS = np.arange(N)
DAY = 86_400.0
LOST = {
    "all seconds of an hour": 1.7e9 + np.arange(3_600),
    "integers above 2²⁴": 2**24 + ROWS,
    "large offset": 1e8 + Y,
    "too small": 1e-50 * (1 + ROWS),
}
KEPT = {
    "stamps of days": 1.7e9 + DAY * ROWS,
    "constant up to rounding": 0.1 * 3 + np.where(ROWS % 2, 0.0, 5e-17),
    "exact in float32": 2.0**24 + 2 * ROWS,
    "kelvin": 293.15 + 0.01 * Y,
    "many between 0 and 1": np.random.default_rng(1).uniform(size=300_000),
    "close neighbours": np.repeat(Y, 2) * (1 + 1e-9 * np.tile([0, 1], N)),
    "heavy tail": np.random.default_rng(1).standard_cauchy(1_000) ** 5,
}


@pytest.mark.parametrize("case", LOST)
def test_columns_that_float32_does_not_hold_are_refused(case, float32):
    column = LOST[case]
    bnn, y = network(), np.resize(Y, len(column))
    refused = {
        "x": [
            lambda: wb.targets.marginal(bnn, inputs(column), y),
            lambda: wb.nngp.gaussian_process(wb.nngp.nngp_kernel(bnn), inputs(column), y, 0.3),
        ],
        "y": [lambda: wb.targets.standard(bnn, inputs(y), column)],
    }
    for name, calls in refused.items():
        of_column = "column 0 of x" if name == "x" else "those of y"
        for call in calls:
            with pytest.raises(
                ValueError, match=f"{name} must keep .* float32.*{of_column}.*subtract the mean"
            ):
                call()
    with jax.enable_x64(True):  # the same data, whole
        np.testing.assert_array_equal(wb.targets.linear(inputs(column), y, 0.3).x[:, 0], column)


@pytest.mark.parametrize("case", KEPT)
def test_columns_that_merely_round_are_taken(case, float32):
    column = KEPT[case]
    target = wb.targets.standard(network(), inputs(column), np.resize(column, len(column)))
    assert target.x.dtype == jnp.float32 and len(target.y) == len(column)


def test_integers_beyond_float64_are_refused():
    with pytest.raises(ValueError, match="x must keep its differences in float64"):
        wb.targets.linear(2**60 + ROWS[:, None], Y, 0.3)


def test_new_inputs_may_lie_close_to_one_another(float32):
    """Their span is that of a few rows, and says nothing of the data's."""
    target = wb.targets.marginal(network(), X, Y)
    target.prepared(np.array([[0.3, 1.0], [0.3 + 1e-9, 1.0]]))


def test_a_process_is_a_pytree():
    """One over a grid of σ and of σ_W, at once, is each of them."""
    noise, weight = jnp.array([0.1, 0.5]), jnp.array([1.0, 2.0])
    x, y = jnp.asarray(X[:8], float), jnp.asarray(Y[:8])

    def process(noise_std, weight_std):
        bnn = wb.BNN(wb.models.FCN(2, 4, rngs=nnx.Rngs(0)), 1, noise_std, weight_std=weight_std)
        return wb.nngp.gaussian_process(wb.nngp.nngp_kernel(bnn), x, y, noise_std)

    stacked = jax.jit(jax.vmap(process))(noise, weight)
    found = jax.jit(jax.vmap(lambda one: (one.log_marginal_likelihood(), one.mean(x))))(stacked)
    for i in range(2):
        one = process(float(noise[i]), float(weight[i]))
        np.testing.assert_allclose(found[0][i], one.log_marginal_likelihood(), rtol=1e-9)
        np.testing.assert_allclose(found[1][i], one.mean(x), rtol=1e-7, atol=1e-9)
