"""The best ELBO against that of its limit: neurons, the ascent, and inequalities that hold at any width."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from widebnn import vi
from widebnn.experiments import curve, maximise, suprema
from widebnn.experiments.variational.suprema import neurons

TINY = dataclasses.replace(suprema.config("smoke"), taus=(0.05,), widths=(4, 16), num_train=(5,), max_atoms=6)


@pytest.mark.slow
def test_neurons_add_up_to_the_network(float64):
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
    rows = []
    for row in suprema(TINY):
        assert not jax.config.jax_enable_x64  # which is for the ascent, and not for who takes a row
        rows.append(row)
        assert 0 <= row["certificate"] < 1e-4 * abs(row["best_limit"])
        assert -row["certificate"] <= row["gap"] < 2 * row["predicted"]
    assert rows[1]["gap"] < rows[0]["gap"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_atoms": 1}, "max_atoms must be at least 2"),
        ({"max_std": 0.01}, "max_std must be above min_std=0.01"),
    ],
)
def test_configurations_that_cannot_run_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        dataclasses.replace(TINY, **change)


def test_ascent_finds_the_maximum_in_a_box(float64):
    found, value = maximise(
        lambda z: -jnp.sum((z["a"] - 2.0) ** 2) - (z["b"] + 1.0) ** 2,
        {"a": jnp.zeros(3), "b": jnp.asarray(0.0)},
        ({"a": np.zeros(3), "b": np.asarray(-5.0)}, {"a": np.ones(3), "b": np.asarray(5.0)}),
    )
    np.testing.assert_allclose(found["a"], 1.0)
    np.testing.assert_allclose(found["b"], -1.0, atol=1e-6)
    np.testing.assert_allclose(value, -3.0)
