"""Data as people have them, and targets as records: tables go in, targets print shortly and travel."""

import pickle

import jax
import jaxtyping
import numpy as np
import pandas as pd
import polars
import pytest
from flax import nnx

import widebnn as wb

X = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, -1.0], [2.0, 1.0]])
Y = np.array([0.1, 0.2, -0.3, 0.4])


def network(out_features=1, in_features=2):
    return wb.BNN(wb.models.FCN(in_features, 4, rngs=nnx.Rngs(0)), out_features, noise_std=0.3)


FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1].astype(int)})
MIXED = pd.DataFrame({"a": X[:, 0] * 2, "b": X[:, 1] > 0})


@pytest.mark.parametrize(
    "x, y",
    [
        (FRAME, pd.Series(Y)),
        (FRAME, pd.DataFrame({"y": Y})),
        (polars.DataFrame(X), polars.Series("y", Y)),
        (X.tolist(), Y.tolist()),
        (X, Y),
        (np.ma.array(X), Y[:, None]),
    ],
    ids=["pandas", "one column", "polars", "lists", "arrays", "masked without a mask"],
)
def test_tables_are_arrays(x, y):
    kinds = (getattr(wb.targets, kind) for kind in ("marginal", "standard", "repriorised", "jacobian"))
    made = [kind(network(), x, y) for kind in kinds]
    made.append(wb.nngp.gaussian_process(wb.nngp.nngp_kernel(network()), x, y, 0.3))
    for one in made:
        np.testing.assert_allclose(one.x, X, rtol=1e-6)
        np.testing.assert_allclose(one.y, Y[:, None], rtol=1e-6)


def test_columns_of_polars_may_have_several_types_and_miss_entries():
    frame = polars.DataFrame({"a": X[:, 0], "b": X[:, 1].astype(int), "c": X[:, 0] > 0.4})
    target = wb.targets.marginal(network(in_features=3), frame, polars.DataFrame({"y": Y}))
    np.testing.assert_allclose(target.x, np.column_stack([X, X[:, 0] > 0.4]), rtol=1e-6)
    position = target.draw_prior(jax.random.key(0))
    missing = polars.DataFrame({"a": [1.0, None], "b": [1, 2], "c": [True, False]})
    with pytest.raises(ValueError, match="x must be finite"):
        wb.predictive_mean(missing)(target, position)
    with pytest.raises(TypeError, match="x must hold real numbers; got 'red'"):
        wb.predictive_mean(missing.with_columns(b=polars.lit("red")))(target, position)


def test_columns_of_booleans_beside_numbers_and_new_inputs_in_a_table():
    assert MIXED.to_numpy().dtype == object
    target = wb.targets.standard(network(), MIXED, Y)
    x = np.stack([X[:, 0] * 2, X[:, 1] > 0], axis=1)
    np.testing.assert_allclose(target.x, x, rtol=1e-6)
    one, other = jax.jit(lambda u: [wb.output(new)(target, u) for new in (MIXED, x)])(
        target.draw_prior(jax.random.key(0))
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_inputs_that_are_no_floats_do_not_cut_new_ones():
    bits, new = np.array([[0, 1], [1, 1], [1, 0]]), X + 0.3
    target, floats = (wb.targets.marginal(network(), bits.astype(kind), Y[:3]) for kind in (int, float))
    means = jax.jit(lambda u: [wb.predictive_mean(new)(one, u) for one in (target, floats)])
    found, expected = means(target.draw_prior(jax.random.key(0)))
    assert len(np.unique(expected)) == expected.size  # new inputs are told apart
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("column", [pd.Series, polars.Series], ids=["pandas", "polars"])
def test_classes_may_be_a_column(column):
    target = wb.targets.categorical(network(3), FRAME, column([0, 1, 2, 1]))
    assert np.asarray(target.y).argmax(axis=1).tolist() == [0, 1, 2, 1]


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
def test_targets_travel_whole_and_print_no_data(float32):
    for make in TARGETS.values():
        target = make()
        position = target.draw_prior(jax.random.key(0))
        # As processes of an executor receive it; the bytes are its own, made in the same line.
        assert pickle.loads(pickle.dumps(target)).potential(position) == target.potential(position)
        assert repr(target).startswith(f"{type(target).__name__}(") and len(repr(target)) < 500
        assert f"{target.x.dtype}[4, " in repr(target) and "0.1," not in repr(target)
