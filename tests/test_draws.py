"""Draws that are put away come back bit for bit."""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widebnn as wb
from widebnn.sampling import Draws
from widebnn.streaming import Stream

TEMPLATE = {"b": (jnp.zeros(()), [jnp.zeros((3, 2))]), "a": jnp.zeros(4)}


def potential(position):
    return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(position)) / 2


TARGET = wb.targets.from_potential(potential, TEMPLATE)


@functools.cache
def run():
    """Of a nested position, with names that are no names of files, and every kind of stream."""
    return wb.sample(
        jax.random.key(0),
        TARGET,
        wb.samplers.tuned(wb.samplers.pcn(0.1), 0.5),
        num_samples=70,
        thin=2,
        burn_in=20,
        num_chains=3,
        collect={"../b": lambda p: p["b"][1][0], "U": TARGET.potential, "sign": lambda p: p["a"] > 0},
        stream={
            "U": TARGET.potential,
            "a": Stream(lambda p: p["a"], quantiles=False),
            "c/d": Stream(lambda p: p["a"], batches=False),
            "b": Stream(lambda p: p["b"][0], batches=False, quantiles=False),
        },
        progress=False,
    )


def assert_same_bits(found, wanted):
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.shape, one.dtype, one.tobytes()) == (other.shape, other.dtype, other.tobytes())


def content(draws):
    told = {name: getattr(draws, name) for name in ("step_size", "thin", "burn_in", "seconds")}
    streamed = [(name, summary.summary) for name, summary in draws.streamed.items()]
    return [*draws.collected.items()], draws.stats, streamed, draws.position, told


def test_all_of_a_run_comes_back(tmp_path):
    run().save(tmp_path / "deep" / "draws")
    back = Draws.load(tmp_path / "deep" / "draws", TARGET)
    for found, wanted in zip(content(back), content(run()), strict=True):
        assert_same_bits(found, wanted)
    assert (back.stopped, back.reason) == (run().stopped, run().reason)
    assert back.acceptance_rate == run().acceptance_rate and back.step_size is not None
    assert back.streamed["U"].effective_sample_size == run().streamed["U"].effective_sample_size
    assert_same_bits(back.streamed["c/d"].quantile(0.3), run().streamed["c/d"].quantile(0.3))
    trees = [replace(draws, collected={"U": draws["U"]}).to_datatree() for draws in (back, run())]
    assert trees[0].equals(trees[1])
    assert [entry.name for entry in tmp_path.iterdir()] == ["deep"]


def test_without_a_target_positions_go_by_their_paths(tmp_path):
    run().save(tmp_path / "draws")
    position = Draws.load(tmp_path / "draws").position
    assert list(position) == ["['a']", "['b'][0]", "['b'][1][0]"]
    assert_same_bits(position["['b'][1][0]"], run().position["b"][1][0])


@pytest.mark.parametrize(
    "array",
    [
        np.array([[np.nan, -0.0, np.inf, 5e-324]]),
        np.zeros((2, 0, 3), np.float32),
        np.array([[1, 2**40]]),
        np.asarray(jnp.array([[1.1, -3.0]], jnp.bfloat16)),
    ],
    ids=["odd numbers", "none", "integers", "bfloat16"],
)
def test_arrays_of_any_kind_come_back(tmp_path, array):
    Draws({"x": array}, {}, {}, array, None, 1, 0, 0.1 + 0.2, "interrupted", "half of it").save(tmp_path)
    back = Draws.load(tmp_path, wb.targets.from_potential(jnp.sum, jnp.zeros(array.shape[1:])))
    assert_same_bits((back["x"], back.position), (array, array))
    assert (back.seconds, back.stopped, back.reason) == (0.1 + 0.2, "interrupted", "half of it")
    assert (back.step_size, back.streamed) == (None, {})


def test_positions_of_another_target_are_refused(tmp_path):
    run().save(tmp_path)
    other = wb.targets.from_potential(jnp.sum, jnp.zeros(4))
    with pytest.raises(
        ValueError, match=r"target must have positions as those in .*\(3, 2\).*; got .*\(4,\)"
    ):
        Draws.load(tmp_path, other)
