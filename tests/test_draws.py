"""Draws that are put away come back bit for bit."""

import functools
from dataclasses import field, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import widebnn as wb
from widebnn import _archive
from widebnn.driver import Draws

TEMPLATE = {"b": (jnp.zeros(()), [jnp.zeros((3, 2))]), "a": jnp.zeros(4)}


def potential(position):
    return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(position)) / 2


TARGET = wb.targets.from_potential(potential, TEMPLATE)


@functools.cache
def run():
    """Of a nested position, with names that are no names of files."""
    return wb.sample(
        jax.random.key(0),
        TARGET,
        wb.samplers.tuned(wb.samplers.pcn(0.1), 0.5),
        num_samples=70,
        thin=2,
        burn_in=20,
        num_chains=3,
        collect={"../b": lambda _, p: p["b"][1][0], "U": wb.potential, "sign": lambda _, p: p["a"] > 0},
        stream={
            "U": wb.potential,
            "c/d": lambda _, p: p["a"],
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
    trees = [replace(draws, collected={"U": draws["U"]}).to_datatree() for draws in (back, run())]
    assert trees[0].equals(trees[1])
    assert [entry.name for entry in tmp_path.iterdir()] == ["deep"]


def test_without_a_target_positions_go_by_their_paths(tmp_path):
    run().save(tmp_path / "draws")
    position = Draws.load(tmp_path / "draws").position
    assert list(position) == ["['a']", "['b'][0]", "['b'][1][0]"]
    assert_same_bits(position["['b'][1][0]"], run().position["b"][1][0])


def test_arrays_of_any_kind_come_back(tmp_path):
    arrays = {
        "odd numbers": np.array([[np.nan, -0.0, np.inf, 5e-324]]),
        "none": np.zeros((2, 0, 3), np.float32),
        "integers": np.array([[1, 2**40]]),
        "bfloat16": np.asarray(jnp.array([[1.1, -3.0]], jnp.bfloat16)),
    }
    Draws(arrays, {}, {}, arrays, None, 1, 0, 0.1 + 0.2, "interrupted", "half of it").save(tmp_path / "x")
    back = Draws.load(tmp_path / "x")
    assert list(back.collected) == list(arrays)
    assert_same_bits(back.collected, arrays)
    assert_same_bits(list(back.position.values()), [arrays[name] for name in sorted(arrays)])
    assert (back.seconds, back.stopped, back.reason) == (0.1 + 0.2, "interrupted", "half of it")
    assert (back.step_size, back.streamed) == (None, {})


def network(**options):
    """Another network of the same shapes, unless nothing is given."""
    scale = {"noise_std": options.pop("noise_std", 0.1)}
    rngs = nnx.Rngs(0)
    return wb.BNN(wb.models.FCN(3, 4, rngs=rngs, **options), 1, **scale)


RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 1))
OTHERS = {
    "y permuted": lambda: wb.targets.marginal(network(), X, Y[::-1]),
    "units": lambda: wb.targets.marginal(network(), 1.01 * X, Y),
    "noise": lambda: wb.targets.marginal(network(noise_std=0.11), X, Y),
    "rows": lambda: wb.targets.marginal(network(), X[:5], Y[:5]),
    "activation": lambda: wb.targets.marginal(network(activation="relu"), X, Y),
    "σ_W": lambda: wb.targets.marginal(network(weight_std=1.3), X, Y),
}


@functools.cache
def saved():
    target = wb.targets.marginal(network(), X, Y)
    return wb.sample(
        jax.random.key(0),
        target,
        wb.samplers.pcn(0.3),
        num_samples=5,
        burn_in=0,
        num_chains=1,
        num_positions=2,
        progress=False,
    )


@pytest.mark.slow
def test_another_target_of_the_same_shapes_is_refused(tmp_path):
    saved().save(tmp_path / "run")
    back = Draws.load(tmp_path / "run", wb.targets.marginal(network(), X.tolist(), Y[:, 0]))
    assert_same_bits(back.predict(X[:2]), saved().predict(X[:2]))
    for make in OTHERS.values():
        with pytest.raises(ValueError, match=r"target must be the one .* the potential \S+ at the last one"):
            Draws.load(tmp_path / "run", make())
    with pytest.raises(ValueError, match=r"target must be the one .* with positions of shapes {"):
        Draws.load(tmp_path / "run", TARGET)


def test_no_file_is_written_over_unless_asked_for_and_others_are_refused(tmp_path):
    saved().save(tmp_path / "run")
    with pytest.raises(FileExistsError, match="run exists: overwrite=True replaces it"):
        saved().save(tmp_path / "run")
    run().save(tmp_path / "run", overwrite=True)
    assert "U" in Draws.load(tmp_path / "run").collected
    with pytest.raises(FileNotFoundError, match="there is no run at"):
        Draws.load(tmp_path / "nothing")
    _archive.write(tmp_path / "other", "checkpoint", {}, {})
    with pytest.raises(ValueError, match="must hold a run; it holds a checkpoint"):
        Draws.load(tmp_path / "other")
    _archive.write(tmp_path / "later", "run", {"format": 99, "widebnn": "9.9"}, {})
    with pytest.raises(ValueError, match="written by widebnn 9.9: install that version or a newer one"):
        Draws.load(tmp_path / "later")


def test_a_run_shows_shapes_and_no_numbers():
    assert repr(saved()).startswith("Draws(num_samples: 5 of 5 draws of each chain; potential float64[1, 5]")
    assert "c/d streamed [3, 4]" in repr(run())


@pytest.mark.slow
def test_each_position_draws_the_weights_that_new_inputs_alone_look_at():
    """Three inputs in 40 dimensions: whatever the key, as streamed and as where positions hold all weights.

    With one key for all positions, means and deviations vary between keys as single networks do.
    """
    x, y, x_new = (RNG.normal(size=shape) for shape in ((3, 40), (3, 1), (4, 40)))
    bnn = wb.BNN(wb.models.FCN(40, 5, depth=2, rngs=nnx.Rngs(0)), 1, noise_std=0.1)
    marginal = wb.targets.marginal(bnn, x, y)
    sampler = wb.samplers.tuned(wb.samplers.function_space_hmc(0.1, jitter=0.2), 0.8, 1.5)
    options = {"num_samples": 400, "burn_in": 200, "num_chains": 4, "num_positions": 128, "progress": False}
    draws, wanted = (
        wb.sample(jax.random.key(1), target, sampler, **options, predict_at=x_new)
        for target in (wb.targets.whitened(marginal), marginal)
    )
    streamed, std = draws.streamed["prediction"], wanted.predict(x_new).std
    for key in jax.random.split(jax.random.key(0), 4):
        found = draws.predict(x_new, key)
        assert (np.abs(found.mean - streamed.mean) < 0.25 * std).all()
        assert (np.abs(found.std / std - 1) < 0.4).all()


class Own(wb.targets.Target):
    """No decorator, a field in the place of an abstract property, and one prediction."""

    template: jax.Array
    centre: jax.Array
    power: int = field(default=2, metadata={"static": True})

    def potential(self, position):
        return jnp.sum((position - self.centre) ** self.power) / 2

    def predictive_mean(self, position, x, rng_key):
        return x @ position[:, None]


class Walk(wb.samplers.Sampler):
    size: float
    times: int = field(default=1, metadata={"static": True})

    def init(self, target, position, rng_key=None):
        return wb.samplers.pcn(self.size).init(target, position)

    def step(self, target, rng_key, state):
        for _ in range(self.times):
            state, info = wb.samplers.pcn(self.size).step(target, rng_key, state)
        return state, info


def test_targets_and_samplers_of_ones_own_need_no_decorator_and_predict():
    target, x_new = Own(jnp.zeros(2), jnp.array([1.0, -1.0])), np.eye(2)
    assert len(jax.tree.leaves((target, Walk(0.3, times=2)))) == 3
    shown = "Own(template=float64[2], centre=float64[2], power=2)", "Walk(size=0.3, times=1)"
    assert (repr(target), repr(Walk(0.3))) == shown
    options = {"num_samples": 50, "burn_in": 0, "num_chains": 1, "num_positions": 8, "progress": False}
    draws = wb.sample(jax.random.key(0), target, Walk(0.3, times=2), predict_at=x_new, **options)
    positions = draws.positions[0]
    mean, std = draws.predict(x_new)
    assert np.allclose(mean[:, 0], positions.mean(axis=0)) and np.allclose(std[:, 0], positions.std(axis=0))
