"""The ELBO and its limit: rows, and inequalities that hold at any width."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from widebnn import vi
from widebnn.experiments import CONCENTRATION, MEAN_FIELD_GAP, SUPREMA, concentration, mean_field_gap, suprema
from widebnn.experiments.variational.ascent import curve, maximise
from widebnn.experiments.variational.mean_field_limit import neurons

GAP = dataclasses.replace(
    MEAN_FIELD_GAP["smoke"], widths=(8, 128), num_train=10, num_posteriors=3, num_samples=400
)
TINY = dataclasses.replace(SUPREMA["smoke"], taus=(0.05,), widths=(4, 16), num_train=5, max_atoms=6)


@pytest.mark.slow
def test_gap_falls_as_one_over_the_width_in_one_scaling_alone():
    seen = []
    rows = mean_field_gap(GAP, on_row=seen.append)
    assert rows == seen
    for loss in GAP.losses:
        for scaling, ratio in [("mean-field", 16), ("ntk", 1)]:
            narrow, wide = (
                [r for r in rows if (r["loss"], r["scaling"], r["width"]) == (loss, scaling, w)]
                for w in GAP.widths
            )
            assert all(r["gap"] > 5 * r["gap_error"] for r in narrow + wide)
            assert (
                ratio / 2
                < np.mean([r["gap"] for r in narrow]) / np.mean([r["gap"] for r in wide])
                < 2 * ratio
            )


@pytest.mark.slow
def test_neurons_add_up_to_the_network(x64):
    x, _ = curve(5)
    theta = np.random.default_rng(0).normal(size=(7, 6))
    phi, variance, kl = neurons(jnp.asarray(theta), x, 0.3)
    weights = vi.network(vi.TwoLayer(2, 7, 1, rngs=nnx.Rngs(0)), x, jax.random.key(0)).weights
    columns = [theta[:, :2].T, theta[:, 4:5]], [theta[:, 2:4].T, theta[:, 5:]]
    q = vi.MeanField(*(jax.tree.unflatten(jax.tree.structure(weights), map(jnp.asarray, c)) for c in columns))
    mean, total = vi.output_moments(q, x)
    np.testing.assert_allclose(phi.mean(axis=1), mean[:, 0])
    np.testing.assert_allclose(variance.sum(axis=1) / 49, total[:, 0])
    np.testing.assert_allclose(kl.sum(), vi.kl_divergence(q, 0.3))


@pytest.mark.slow
def test_suprema_are_ordered_and_certified():
    seen = []
    rows = suprema(TINY, on_row=seen.append)
    assert rows == seen
    for row in rows:
        assert 0 <= row["certificate"] < 1e-4 * abs(row["best_limit"])
        assert -row["certificate"] <= row["gap"] < 2 * row["predicted"]
    assert rows[1]["gap"] < rows[0]["gap"]


def test_ascent_finds_the_maximum_in_a_box(x64):
    found, value = maximise(
        lambda z: -jnp.sum((z["a"] - 2.0) ** 2) - (z["b"] + 1.0) ** 2,
        {"a": jnp.zeros(3), "b": jnp.asarray(0.0)},
        ({"a": np.zeros(3), "b": np.asarray(-5.0)}, {"a": np.ones(3), "b": np.asarray(5.0)}),
    )
    np.testing.assert_allclose(found["a"], 1.0)
    np.testing.assert_allclose(found["b"], -1.0, atol=1e-6)
    np.testing.assert_allclose(value, -3.0)


def test_bound_holds_and_deviations_are_those_of_means():
    config = dataclasses.replace(CONCENTRATION["smoke"], num_train=(10, 40))
    seen = []
    rows = concentration(config, on_row=seen.append)
    assert rows == seen
    for row in rows:
        assert abs(row["rms"] - row["std"] / np.sqrt(row["num_train"])) < 5 * row["rms_error"]
        allowed = row["delta"] + 4 * np.sqrt(row["delta"] / config.num_replicates)
        assert row["exceedance"] <= allowed
        assert 0 < row["quantile"] < row["bound"]
