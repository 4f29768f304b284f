"""Bayes by Backprop: where it converges, what its minibatches add up to, and that it can be interrupted."""

import functools
import itertools
import signal

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from tqdm.auto import tqdm

import widebnn as wb
from widebnn.vi.fit import _check_data

from ..exact.variational import LOSS, VARIANCE, X, Y, assert_optimum, linear

LABELS = (Y[:, 0] > 0).astype(np.int32)
STAY = optax.set_to_zero()


def fit(model, num_epochs, optimiser=STAY, **options):
    defaults = {"y": Y, "loss": LOSS, "batch_size": 16, "prior_variance": VARIANCE, "initial_std": 0.1}
    options = defaults | options
    y, loss = options.pop("y"), options.pop("loss")
    return wb.vi.fit(
        jax.random.key(1), model, X, y, loss, optimiser, num_epochs=num_epochs, progress=False, **options
    )


@pytest.mark.slow
def test_fit_of_a_linear_model_is_the_known_optimum():
    assert_optimum(temperature=10.0)


class Everything(nnx.Module):
    """Weights, a point estimate, running statistics and chance."""

    def __init__(self):
        rngs = nnx.Rngs(0)
        options = {"scale": 1, "bias_std": 0, "initial_std": 0.01, "rngs": rngs}
        self.first = wb.models.Dense(3, 8, **options)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.second = wb.models.Dense(8, 2, **options)

    def __call__(self, x):
        return self.second(self.dropout(nnx.relu(self.norm(self.first(x)))))


of_classes = functools.partial(
    fit, y=LABELS, loss=wb.vi.cross_entropy, optimiser=optax.adam(1e-2), num_samples=2
)


def same(a, b):
    leaves = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(bool(jnp.all(x == y)) for x, y in leaves)


@pytest.mark.usefixtures("float32")
@pytest.mark.slow
def test_fit_that_is_stopped_is_returned(monkeypatch, sigint):
    whole = of_classes(Everything(), 5)
    count = itertools.count(1)
    monkeypatch.setattr(tqdm, "update", lambda *_: next(count) == 2 and signal.raise_signal(signal.SIGINT))
    with pytest.warns(
        wb.ChainWarning, match="the fit was interrupted after 2 of 5 epochs, which are returned"
    ):
        found = of_classes(Everything(), 5)
    np.testing.assert_array_equal(found.elbo.value, whole.elbo.value[:2])


@pytest.mark.usefixtures("float32")
def test_state_and_point_estimates_move_with_training_and_have_no_divergence():
    module = Everything()
    before = nnx.to_pure_dict(nnx.state(module))
    found = of_classes(module, 3)
    assert found.point["norm"].keys() == {"scale", "bias"}
    assert not same(found.point, found.network.point)
    assert not same(found.state["norm"], found.network.state["norm"])
    assert set(found.posterior.mean) == {"first", "second"}
    assert same(before, nnx.to_pure_dict(nnx.state(module))), "the user's own module must stay as it was"


def test_the_elbo_is_that_of_all_minibatches_which_are_augmented():
    blank = fit(linear(), 1, augment=lambda key, x: jnp.zeros_like(x))
    wanted = -np.sum(Y**2) / (2 * 0.5**2) - len(Y) * np.log(0.5 * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(blank.elbo.log_likelihood, wanted, rtol=1e-5)
    kl = wb.vi.kl_divergence(blank.posterior, VARIANCE)
    np.testing.assert_allclose(blank.elbo.kl_divergence, kl, rtol=1e-5)


def test_steps_that_are_too_large_are_reported():
    with pytest.raises(FloatingPointError, match="the ELBO is (nan|-inf) after epoch .* steps"):
        fit(linear(), 50, optimiser=optax.sgd(1e4))


def test_a_batch_is_no_larger_than_the_data():
    for n, size in ((40, 40), (200, 128)):
        assert _check_data(np.ones((n, 2)), np.ones((n, 1)), None)[2] == size
