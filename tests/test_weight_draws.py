"""Draws that are put away: predictions later are those of the run."""

import functools
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import widebnn as wb
from widebnn import _folder, weight_draws
from widebnn.models import Embedding, Parameters
from widebnn.weight_draws import WeightDraws

X = np.linspace(-1.0, 1.0, 24, dtype=np.float32).reshape(8, 3)
Y = np.sin(X[:, :2])
X_NEW = np.cos(np.arange(21, dtype=np.float32)).reshape(7, 3)
with jax.enable_x64(False):
    FEATURES = wb.models.FCN(3, (6, 5), activation="erf", bias_std=0.3, rngs=nnx.Rngs(0))
    BNN = wb.BNN(FEATURES, 2, noise_std=0.2)

pytestmark = pytest.mark.usefixtures("float32")


@functools.cache
def drawn(kind="standard"):
    """A run, and what it kept: weights, and outputs at inputs that it was told of beforehand."""
    target = getattr(wb.targets, kind)(BNN, X, Y) if kind != "rotated" else rotated()
    collect = {"theta": wb.collectors.weights}
    if kind != "rotated":  # where the readout is drawn anew each time
        collect["f"] = wb.output(X_NEW)
    sampler = wb.samplers.pcn(0.3)
    options = {"num_samples": 6, "burn_in": 0, "num_chains": 2, "collect": collect, "progress": False}
    return wb.sample(jax.random.key(1), target, sampler, **options)


def rotated():
    return wb.targets.rotated(wb.targets.marginal(BNN, X, Y))


def kept():
    return WeightDraws(BNN, drawn()["theta"], X.shape[1:])


def direct(theta, bnn=BNN, x=X_NEW):
    """The formula, draw by draw."""
    shapes = bnn.template(jnp.asarray(x))
    unravel = jax.flatten_util.ravel_pytree(jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes))[1]
    return np.asarray(jax.jit(jax.vmap(jax.vmap(lambda row: bnn(unravel(row), x))))(theta))


@pytest.mark.slow
def test_predictions_are_those_of_the_run():
    run = drawn("repriorised")
    f = WeightDraws(BNN, run["theta"], (3,)).outputs(X_NEW)
    assert f.shape == (2, 6, 7, 2)
    assert np.allclose(f, run["f"], atol=1e-6)
    assert np.ptp(f, axis=(0, 1)).min() > 1e-3  # draws differ


@pytest.mark.slow
def test_weights_that_no_position_holds_are_drawn():
    target, run = rotated(), drawn("rotated")
    assert np.allclose(WeightDraws(BNN, run["theta"], (3,)).outputs(X_NEW), direct(run["theta"]), atol=1e-6)
    readouts = run["theta"][..., -12:]
    assert len(np.unique(readouts)) == readouts.size  # also where a proposal was rejected
    last = jax.tree.map(lambda leaf: leaf[0], run.position)
    posterior = target.readout_posterior(last)
    keys = jax.random.split(jax.random.key(5), 4_000)
    many = np.asarray(jax.jit(jax.vmap(lambda key: wb.collectors.weights(target, last, key)[-12:]))(keys))
    error = many.std(axis=0) / np.sqrt(4_000)
    assert np.all(np.abs(many.mean(axis=0) - posterior.mean().ravel()) < 5 * error)


@pytest.mark.slow
@pytest.mark.parametrize("batch_size, num_draws", [(1, 0), (3, 5), (100, 1_000)])
def test_batches_do_not_change_predictions(batch_size, num_draws, monkeypatch):
    expected = direct(drawn()["theta"])
    monkeypatch.setattr(weight_draws, "MAX_DRAWS_BYTES", max(1, num_draws * drawn()["theta"][0, 0].nbytes))
    predicted = kept()
    assert np.allclose(predicted.outputs(X_NEW, batch_size), expected, atol=1e-6)
    mean, std = predicted.mean_and_std(X_NEW, batch_size)
    assert np.allclose(mean, expected.mean(axis=(0, 1)), atol=1e-6)
    assert np.allclose(std, expected.std(axis=(0, 1)), atol=1e-6)


def test_moments_of_a_function():
    expected = jax.nn.softmax(direct(drawn()["theta"]))
    mean, std = kept().mean_and_std(X_NEW, 2, jax.nn.softmax)
    assert np.allclose(mean, expected.mean(axis=(0, 1)), atol=1e-6)
    assert np.allclose(std, expected.std(axis=(0, 1)), atol=1e-6)


def test_a_program_is_compiled_once():
    """For all draws of one shape; the last batch of three has two, one and no row of its own."""
    weight_draws._outputs.clear_cache()
    for num_inputs in (7, 6, 5):
        kept().outputs(X_NEW[:num_inputs], batch_size=3)
    assert weight_draws._outputs._cache_size() == 1


@pytest.mark.slow
def test_memory_is_that_of_a_batch(monkeypatch):
    """Neither all inputs nor all draws: the program's own memory knows only of a batch and a chunk."""
    monkeypatch.setattr(weight_draws, "MAX_DRAWS_BYTES", 4 * drawn()["theta"][0, 0].nbytes)
    many = np.tile(drawn()["theta"], (1, 20, 1))
    shapes = []

    def watched(program):
        def call(*of):
            *_, theta, _, x = of
            memory = program.lower(*of).compile().memory_analysis()
            shapes.append((theta.shape[0], x.shape[0], memory.peak_memory_in_bytes))
            return program(*of)

        return call

    monkeypatch.setattr(weight_draws, "_outputs", watched(weight_draws._outputs))
    for num_inputs, draws in [(7, drawn()["theta"]), (70, many)]:
        WeightDraws(BNN, draws, (3,)).mean_and_std(np.tile(X_NEW, (num_inputs // 7, 1)), batch_size=4)
    assert len(set(shapes)) == 1 and shapes[0][:2] == (4, 4)


@pytest.mark.slow
def test_noise_of_an_observation():
    scales = {"noise_std": np.array([[0.1] * 6, [3.0] * 6], np.float32)}
    noisy = WeightDraws(BNN, drawn()["theta"], (3,), scales)
    x = np.tile(X_NEW, (100, 1))
    f, y = noisy.outputs(x), noisy.predictive_draws(jax.random.key(0), x, batch_size=33)
    for chain, std in enumerate((0.1, 3.0)):
        noise = (y - f)[chain] / std
        assert abs(noise.mean()) < 5 / np.sqrt(noise.size)
        assert abs(noise.var() - 1) < 5 * np.sqrt(2 / noise.size)
    again = noisy.predictive_draws(jax.random.key(0), x, batch_size=700)
    assert np.allclose(again, y, atol=1e-5)


def test_parameters_are_the_weights_by_name():
    parameters = kept().parameters
    assert isinstance(parameters, Parameters)
    assert parameters.inner["layers"][1]["kernel"].shape == (2, 6, 6, 5)
    assert np.array_equal(parameters.readout, drawn()["theta"][..., -12:].reshape(2, 6, 6, 2))


def test_more_draws_are_appended():
    first, rest = drawn()["theta"][:, :2], drawn()["theta"][:, 2:]
    whole = WeightDraws(BNN, first, (3,)).extended(rest)
    assert np.array_equal(whole.weights, drawn()["theta"])
    assert repr(whole) == "WeightDraws(2 chains of 6 draws: 71 weights)"
    scales = {"noise_std": np.full((2, 2), 0.3, np.float32)}
    learned = WeightDraws(BNN, first, (3,), scales).extended(first, scales)
    assert learned.scales["noise_std"].shape == (2, 4)


LATER = """
import sys
import numpy as np
import widebnn as wb

loaded = wb.WeightDraws.load(sys.argv[1])
np.save(sys.argv[2], loaded.outputs(np.load(sys.argv[3]), batch_size=4))
"""


@pytest.mark.slow
def test_another_process_predicts_without_script_and_data(tmp_path):
    kept().save(tmp_path / "posterior")
    np.save(tmp_path / "x.npy", X_NEW)
    files = [str(tmp_path / name) for name in ("posterior", "outputs.npy", "x.npy")]
    subprocess.run([sys.executable, "-c", LATER, *files], check=True, cwd=tmp_path)
    assert np.array_equal(np.load(tmp_path / "outputs.npy"), kept().outputs(X_NEW, batch_size=4))


@pytest.mark.parametrize(
    "features, shape",
    [
        (lambda rngs: wb.models.FCN(3, 4, depth=0, rngs=rngs), (3,)),
        (lambda rngs: wb.models.FCN(3, 4, depth=2, activation="relu", weight_std=1.3, rngs=rngs), (3,)),
        (lambda rngs: wb.models.CNN(2, 3, depth=2, weight_std=0.9, bias_std=0, rngs=rngs), (4, 4, 2)),
        (lambda rngs: wb.models.WideResNet20(1, (2, 3, 4), offset=2, rngs=rngs), (8, 8, 1)),
    ],
    ids=["linear", "relu", "CNN", "WideResNet20"],
)
@pytest.mark.slow
def test_networks_of_the_package_are_built_again(features, shape, tmp_path):
    bnn = wb.BNN(features(nnx.Rngs(0)), 2, jnp.asarray(0.3), weight_std=1.5, bias_std=0.2)
    x = jnp.ones((1, *shape)) / 2
    draws = jax.vmap(lambda key: jax.flatten_util.ravel_pytree(wb.tree.normal_like(key, bnn.template(x)))[0])
    theta = np.asarray(jax.jit(draws)(jax.random.split(jax.random.key(0), 2)))[None]
    saved = WeightDraws(bnn, theta, shape)
    saved.save(tmp_path / "posterior")
    loaded = WeightDraws.load(tmp_path / "posterior")
    assert np.allclose(loaded.outputs(x), saved.outputs(x), atol=1e-6)


def learned(noise_std, inside):
    return wb.BNN(
        wb.models.FCN(3, 5, weight_std=inside, rngs=nnx.Rngs(0)), 2, noise_std, weight_std=inside**2
    )


@pytest.mark.slow
def test_scales_that_were_drawn_go_with_their_draws(tmp_path):
    theta = drawn()["theta"][:, :2, : 3 * 5 + 5 + 6 * 2]
    rng = np.random.default_rng(0)
    scales = {name: rng.uniform(0.5, 2.0, (2, 2)).astype(np.float32) for name in ("noise_std", "inside")}
    saved = WeightDraws(learned, theta, (3,), scales)
    f = saved.outputs(X_NEW, batch_size=3)
    for chain in range(2):
        for draw in range(2):
            bnn = learned(*(float(scales[name][chain, draw]) for name in scales))
            assert np.allclose(f[chain, draw], direct(theta[chain : chain + 1, [draw]], bnn)[0, 0], atol=1e-5)
    saved.save(tmp_path / "posterior")
    loaded = WeightDraws.load(tmp_path / "posterior")
    assert set(loaded.scales) == {"noise_std", "features.weight_std", "weight_std"}
    assert np.allclose(loaded.outputs(X_NEW), f, atol=1e-5)
    key = jax.random.key(3)
    assert np.allclose(loaded.predictive_draws(key, X_NEW), saved.predictive_draws(key, X_NEW, 2), atol=1e-5)
    loaded.save(tmp_path / "again")
    assert np.allclose(WeightDraws.load(tmp_path / "again").outputs(X_NEW), f, atol=1e-5)


def own(activation=jnp.tanh, width=5):
    """A user's network, of no module at all."""
    template = {"w": jax.ShapeDtypeStruct((3, width), jnp.float32)}
    return wb.BNN(Embedding(lambda inner, x: activation(x @ inner["w"]), template), 1, 0.1)


def own_draws():
    return WeightDraws(own(), drawn()["theta"][:, :, : 3 * 5 + 6], (3,))


@pytest.mark.slow
def test_users_own_network_is_handed_over_again(tmp_path):
    folder = tmp_path / "posterior"
    own_draws().save(folder)
    loaded = WeightDraws.load(folder, network=own())
    assert np.array_equal(loaded.outputs(X_NEW), own_draws().outputs(X_NEW))
    with pytest.raises(TypeError, match=r"network is required.*not of widebnn\.models"):
        WeightDraws.load(folder)
    with pytest.raises(ValueError, match=r"network does not fit.*inner/w is \(3, 5\) there, and \(3, 4\) in"):
        WeightDraws.load(folder, network=own(width=4))
    with pytest.raises(ValueError, match="network must be the one.*other outputs"):
        WeightDraws.load(folder, network=own(jnp.sin))
    noisier = wb.BNN(own().features, 1, 0.2)
    with pytest.raises(ValueError, match=r"noise_std 0\.1.*got 0\.2"):
        WeightDraws.load(folder, network=noisier)
    with pytest.raises(ValueError, match="network does not fit.*inner/w is .* there, and absent in"):
        WeightDraws.load(folder, network=wb.BNN(FEATURES, 1, 0.1))
    kept().save(tmp_path / "fcn")
    with pytest.raises(TypeError, match="network must be left out.*FCN"):
        WeightDraws.load(tmp_path / "fcn", network=BNN)


def test_module_that_was_changed_is_the_users_own(tmp_path):
    features = wb.models.FCN(3, (6, 5), activation="erf", bias_std=0.3, rngs=nnx.Rngs(0))
    features.layers[0].weight_std = 3.0
    changed = wb.BNN(features, 2, 0.2)
    WeightDraws(changed, drawn()["theta"], (3,)).save(tmp_path / "posterior")
    with pytest.raises(TypeError, match="network is required"):
        WeightDraws.load(tmp_path / "posterior")
    WeightDraws.load(tmp_path / "posterior", network=changed)


def test_record_tells_of_the_network(tmp_path):
    kept().save(tmp_path)
    assert np.array_equal(np.load(tmp_path / "weights.npy", allow_pickle=False), drawn()["theta"])
    record = json.loads((tmp_path / "posterior.json").read_text())
    assert record["network"]["features"] == "FCN" and record["network"]["arguments"]["activation"] == "erf"
    assert record["weights"][0] == ["inner/layers/0/bias", [6]]
    assert record["files"]["weights.npy"]["shape"] == [2, 6, 71]
    assert isinstance(WeightDraws.load(tmp_path).weights, np.memmap)


def test_network_that_cannot_be_built_is_named(tmp_path):
    kept().save(tmp_path)
    record = json.loads((tmp_path / "posterior.json").read_text())
    record["network"] = {"features": "Transformer", "arguments": {}}
    del record["sha256"]
    record["sha256"] = _folder._digest(record)
    (tmp_path / "posterior.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match="cannot be built"):
        WeightDraws.load(tmp_path)
