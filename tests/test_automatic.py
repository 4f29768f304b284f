"""What `auto` takes for which posterior, and that it runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx
from scipy import stats

import widebnn as wb
from widebnn import automatic
from widebnn.collectors import prepared
from widebnn.targets._marginal import Marginal
from widebnn.targets._rotated import Rotated
from widebnn.targets._whitened import Whitened

pytestmark = pytest.mark.usefixtures("float32")

RNG = np.random.default_rng(0)
X, Y = jnp.asarray(RNG.normal(size=(8, 3)), jnp.float32), jnp.asarray(RNG.normal(size=(8, 2)), jnp.float32)


def bnn(width=16, depth=1, features=None):
    features = wb.models.FCN(3, width, depth, rngs=nnx.Rngs(0)) if features is None else features
    return wb.BNN(features, 2, noise_std=0.3)


class Dense(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.tanh(linen.Dense(16)(x))


def scaled():
    bnn = wb.BNN(wb.models.FCN(3, 16, 1, rngs=nnx.Rngs(0)), 2, 1.0)
    return wb.targets.scaled(wb.targets.marginal(bnn, X, Y), noise_std=wb.targets.LogNormal(0.3, 0.5))


def plain():
    params = [jnp.ones((3, 16))]
    return wb.targets.marginal(
        bnn(features=wb.models.from_function(lambda p, x: jnp.tanh(x @ p[0]), params)), X, Y
    )


def mixed():
    params = [jnp.ones((3, 16)), jnp.ones((16, 16))]
    features = wb.models.from_function(
        lambda p, x: jnp.tanh(x @ p[0]) @ p[1] @ jnp.full((16, 4), 1 / 16), params
    )
    return wb.targets.marginal(bnn(features=features), X, Y)


def images():
    x = jnp.asarray(RNG.normal(size=(8, 4, 4, 1)), jnp.float32)
    return wb.targets.marginal(bnn(features=wb.models.CNN(1, 4, rngs=nnx.Rngs(0))), x, Y)


def linen_target():
    return wb.targets.marginal(bnn(features=wb.models.from_linen(Dense(), X)), X, Y)


TARGETS = {
    "one hidden layer, wide": (lambda: wb.targets.marginal(bnn(), X, Y), Rotated, "unit-wise"),
    "the readout too": (lambda: wb.targets.standard(bnn(), X, Y), Rotated, "unit-wise"),
    "one hidden layer, not twice as wide": (
        lambda: wb.targets.marginal(bnn(15), X, Y),
        Rotated,
        "HMC, tuned to an acceptance of 0.8, on rotated inputs, the readout integrated out",
    ),
    "two hidden layers": (lambda: wb.targets.marginal(bnn(depth=2), X, Y), Whitened, "HMC"),
    "rotated already": (
        lambda: wb.targets.rotated(wb.targets.marginal(bnn(depth=2), X, Y)),
        Rotated,
        "the target as it is",
    ),
    "features that mix the units": (mixed, Marginal, "HMC"),
    "images": (images, Marginal, "the weights, the readout"),
    "Linen": (linen_target, Rotated, "rotated inputs"),
    "parameters of no known layers": (plain, Marginal, "the weights, the readout"),
    "scales": (scaled, wb.targets.Scaled, "its scales, which start at their posterior in the limit"),
    "labels": (lambda: wb.targets.categorical(bnn(), X, np.arange(8) % 2), wb.targets.Target, "as it is"),
    "a potential": (
        lambda: wb.targets.from_potential(lambda u: jnp.sum(u**4), jnp.zeros(3)),
        wb.targets.Target,
        "as it is",
    ),
}


@pytest.mark.slow
@pytest.mark.usefixtures("mixed_dtypes")
@pytest.mark.parametrize("name", TARGETS)
def test_what_is_taken_is_said(name):
    make, kind, words = TARGETS[name]
    target, _, reason = wb.auto(make())
    assert isinstance(target, kind) and words in reason and "\n" not in reason


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one hidden layer, wide", "scales", "labels"])
def test_a_posterior_and_a_key_are_enough(name, capsys, tmp_path):
    """Predictions after the run, from some positions, are near those that were streamed at every draw."""
    posterior, x_new = TARGETS[name][0](), RNG.normal(size=(5, 3))
    draws = wb.sample(jax.random.key(0), posterior, predict_at=x_new)
    assert "on " in capsys.readouterr().out and draws.stopped == "converged"
    streamed = draws.streamed["prediction"]
    assert streamed.effective_sample_size.min() >= 400 and streamed.rhat.max() <= 1.01
    table = draws.summary()
    assert list(table.index) == ["potential", "prediction"] and "4 chains" in table._repr_html_()
    assert (table.loc["prediction", "ESS"], table.loc["prediction", "R̂"]) == (
        round(streamed.effective_sample_size.min()),
        round(streamed.rhat.max(), 3),
    )
    kept = jax.tree.leaves(draws.positions)[0].shape[1]
    assert 32 <= kept <= 64
    mean, std = draws.predict(x_new)
    assert (np.abs(mean - streamed.mean) < 6 * streamed.std / np.sqrt(kept)).all()
    noise = 0 if name == "labels" else 0.1
    assert (std > noise).all() and (std < 3).all()
    draws.save(tmp_path / "run")
    for target in (posterior, draws.target):  # as it was given, and in the coordinates of the run
        back = wb.Draws.load(tmp_path / "run", target)
        assert np.array_equal(back.predict(x_new).mean, mean)


@pytest.mark.slow
def test_functions_are_collected_in_the_coordinates_that_are_chosen():
    """A function of one's own is given the target that is sampled."""
    x_new = RNG.normal(size=(5, 3))
    collect = {
        "ll": wb.log_likelihood,
        "f": wb.output(x_new),
        "at the data": wb.output(),
        "own": lambda target, position: target.potential(position),
        "potential": wb.potential,
        "σ": wb.collectors.scale("noise_std"),
    }
    until = wb.Until(ess=100, rhat=1.1, names=["f"])
    draws = wb.sample(
        jax.random.key(0), scaled(), collect=collect, predict_at=x_new, until=until, progress=False
    )
    assert np.array_equal(draws["own"], draws["potential"])
    streamed, f = draws.streamed["prediction"], draws["f"]
    error = 6 * f.std(axis=(0, 1)) / np.sqrt(wb.diagnostics.convergence(f).ess)
    assert (np.abs(f.mean(axis=(0, 1)) - streamed.mean) < error).all()
    sigma = draws["σ"][..., None]
    # the readout of the log likelihood is another draw, so that both have one mean and no more
    wanted = stats.norm.logpdf(np.asarray(Y), draws["at the data"], np.expand_dims(sigma, -1)).sum(axis=-1)
    error = 6 * np.hypot(*(x.std(axis=(0, 1)) / np.sqrt(100) for x in (wanted, draws["ll"])))
    assert (np.abs(wanted.mean(axis=(0, 1)) - draws["ll"].mean(axis=(0, 1))) < error).all()


@pytest.mark.parametrize("make", [lambda t: t, wb.targets.rotated], ids=["marginal", "rotated"])
def test_collectors_hold_new_inputs_and_nothing_else(make):
    """The data lie in memory once, with the target."""
    target = make(wb.targets.marginal(bnn(), X, Y))
    x_new = jnp.ones((6, 3), jnp.float32)
    collect = [wb.potential, wb.log_likelihood, wb.output(), wb.predictive_mean(), wb.output(x_new)]
    held = [prepared(function, target) for function in collect]
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(held)) <= x_new.nbytes


def test_what_goes_wrong_is_not_hidden(monkeypatch):
    """A fault of the package is no sign that layers cannot be reduced."""

    def broken(target):
        raise TypeError("a fault")

    monkeypatch.setattr(automatic, "whitened", broken)
    with pytest.raises(TypeError, match="a fault"):
        wb.auto(wb.targets.marginal(bnn(depth=2), X, Y))
