"""Data as people have them, and targets as records: tables go in, targets print shortly and travel."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from operator import methodcaller

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pandas as pd
import pytest
from flax import nnx

import widebnn as wb

X = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, -1.0], [2.0, 1.0]])
Y = np.array([0.1, 0.2, -0.3, 0.4])


class Polars:
    """As much of a frame of polars as is used."""

    def __init__(self, array):
        self.array = array

    def to_numpy(self):
        return self.array


def network(out_features=1, in_features=2):
    return wb.BNN(wb.models.FCN(in_features, 4, rngs=nnx.Rngs(0)), out_features, noise_std=0.3)


FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1].astype(int)})
MIXED = pd.DataFrame({"a": X[:, 0] * 2, "b": X[:, 1] > 0})


@pytest.mark.parametrize(
    "x, y",
    [
        (FRAME, pd.Series(Y)),
        (FRAME, pd.DataFrame({"y": Y})),
        (Polars(X), Polars(Y)),
        (X.tolist(), Y.tolist()),
        (X, Y),
        (np.ma.array(X), Y[:, None]),
    ],
    ids=["pandas", "one column", "polars", "lists", "arrays", "masked without a mask"],
)
@pytest.mark.parametrize("kind", ["marginal", "standard", "repriorised", "jacobian", "process"])
def test_tables_are_arrays(kind, x, y):
    def potential(x, y):
        if kind == "process":
            return wb.nngp.gaussian_process(wb.nngp.nngp_kernel(network()), x, y, 0.3).mean(X)
        target = getattr(wb.targets, kind)(network(), x, y)
        assert target.y.shape == (4, 1)
        return target.potential(target.draw_prior(jax.random.key(0)))

    expected = potential(jnp.asarray(X), jnp.asarray(Y)[:, None])
    assert jnp.allclose(potential(x, y), expected, atol=1e-6)


def test_frames_of_polars_are_arrays():
    """Columns of three types, y as a column, missing entries."""
    import polars

    frame = polars.DataFrame({"a": X[:, 0], "b": X[:, 1].astype(int), "c": X[:, 0] > 0.4})
    x = np.column_stack([X[:, 0], X[:, 1], X[:, 0] > 0.4])
    for y in (polars.Series("y", Y), polars.DataFrame({"y": Y})):
        target = wb.targets.marginal(network(in_features=3), frame, y)
        assert jnp.allclose(target.x, x) and jnp.allclose(target.y, Y[:, None])
    position = target.draw_prior(jax.random.key(0))
    mean = target.predictive_mean
    assert jnp.array_equal(mean(frame.head(2))(position), mean(x[:2])(position))
    labels = wb.targets.categorical(network(3, in_features=3), frame, polars.Series([0, 1, 2, 1]))
    assert jnp.array_equal(labels.likelihood.onehot.argmax(axis=1), jnp.array([0, 1, 2, 1]))
    missing = polars.DataFrame({"a": [1.0, None], "b": [1, 2], "c": [True, False]})
    with pytest.raises(ValueError, match="x must be finite"):
        mean(missing)
    with pytest.raises(TypeError, match="x must hold real numbers; got 'red'"):
        mean(missing.with_columns(b=polars.lit("red")))


def test_columns_of_booleans_beside_numbers():
    assert MIXED.to_numpy().dtype == object
    target = wb.targets.marginal(network(), MIXED, Y)
    assert jnp.allclose(target.x, np.stack([X[:, 0] * 2, X[:, 1] > 0], axis=1))


def test_new_inputs_may_be_a_table():
    target = wb.targets.standard(network(), FRAME, Y)
    position = target.draw_prior(jax.random.key(0))
    assert jnp.array_equal(target.output(FRAME)(position), target.output(X)(position))


def test_classes_may_be_a_column():
    target = wb.targets.categorical(network(3), FRAME, pd.Series([0, 1, 2, 1]))
    assert jnp.array_equal(target.likelihood.onehot.argmax(axis=1), jnp.array([0, 1, 2, 1]))


def test_missing_entry_is_named(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    missing = FRAME.astype("Int64", errors="ignore").astype(object).mask(FRAME > 1, pd.NA)
    with pytest.raises(TypeError, match="x must hold real numbers; got <NA> in object"):
        wb.targets.marginal(network(), missing, Y)


TARGETS = {
    "marginal": lambda: wb.targets.marginal(network(), X, Y),
    "rotated": lambda: wb.targets.rotated(wb.targets.marginal(network(), np.outer(Y, [1.0, 2.0]), Y)),
    "standard": lambda: wb.targets.standard(network(), X, Y),
    "repriorised": lambda: wb.targets.repriorised(network(), X, Y, reg=0.5),
    "jacobian": lambda: wb.targets.jacobian(network(), X, Y),
    "linear": lambda: wb.targets.linear(X, Y, 0.3),
} | {
    map: lambda map=map: wb.targets.categorical(network(2), X, np.array([0, 1, 1, 0]), map)
    for map in ("identity", "gaussian", "laplace")
}


@pytest.mark.slow
def test_another_process_gets_targets_whole(float32):
    """It starts anew, so that all it knows of a target is what it is sent."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        for kind, make in TARGETS.items():
            target = make()
            potential = methodcaller("potential", target.draw_prior(jax.random.key(0)))
            there = executor.submit(potential, target).result()
            assert jnp.array_equal(there, potential(target)), kind


@pytest.mark.slow
@pytest.mark.parametrize("kind", TARGETS)
def test_targets_print_no_data(kind):
    target = TARGETS[kind]()
    assert repr(target).startswith(f"{type(target).__name__}(") and len(repr(target)) < 500
    assert f"{target.x.dtype}[4, " in repr(target) and "0.1," not in repr(target)


def test_repr_of_a_target():
    float = jnp.zeros(()).dtype
    assert repr(wb.targets.marginal(network(), X, Y)) == (
        "Marginal(bnn=BNN(FCN, out_features=1, noise_std=0.3, weight_std=1.0, bias_std=0.1), "
        f"x={float}[4, 2], y={float}[4, 1], space='auto', block_size=None)"
    )
    assert repr(wb.targets.from_potential(jnp.sum, jnp.zeros(2))) == "_FromPotential()"
