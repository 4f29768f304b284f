"""Bad inputs of variational inference."""

import functools

import jax
import jax.numpy as jnp
import optax

import widebnn as wb

from .rows import KEY, RNGS, Images, X, Y, refused


def fit(model=None, x=X, y=Y, **options):
    model = (
        wb.models.Dense(3, 2, scale=1, bias_std=0, initial_std=0.01, rngs=RNGS) if model is None else model
    )
    defaults = {"loss": wb.vi.square, "optimiser": optax.adam(0.1), "num_epochs": 1, "batch_size": 2}
    options = {"rng_key": KEY, "progress": False} | defaults | options
    key, loss, optimiser = (options.pop(name) for name in ("rng_key", "loss", "optimiser"))
    return wb.vi.fit(key, model, x, y, loss, optimiser, **options)


@functools.cache
def fitted():
    return fit()


def a_two_layer_posterior():
    weights = wb.vi.network(wb.vi.TwoLayer(3, 4, 2, rngs=RNGS), X, KEY).weights
    return wb.vi.mean_field(weights, 0.1)


def a_posterior():
    return wb.vi.mean_field({"w": jnp.ones(2)}, 0.1)


def sum_of_weights(weights):
    return weights["w"].sum()


ROWS = [
    *refused(
        "vi.fit",
        ({"batch_size": 5}, "batch_size…at most 4…5"),
        ({"prior_variance": {"a": 1.0}}, "prior_variance…each leaf…'a'"),
        *[
            ({"y": jnp.array([0, 1, 2, 0]), "loss": loss}, "y…labels 0 to 1…0 to 2")
            for loss in (wb.vi.cross_entropy, jax.jit(wb.vi.cross_entropy))
        ],
        ({"y": X[:, 0], "loss": wb.vi.cross_entropy}, TypeError, "y…integers or booleans…1.0 in float"),
        ({"x": X[:0], "y": Y[:0]}, "x and y…n ≥ 1…(0, 3)"),
        ({"loss": lambda f, y: jnp.sum(f - y)}, "loss…each of 2…()"),
        call=lambda o: fit(**o),
    ),
    *refused(
        "vi.network",
        (Images(), "model…(4, d_out)…(4, 3, 1)"),
        call=lambda model: wb.vi.network(model, X, KEY),
    ),
    *refused(
        "vi.predict",
        (X[:, :1], {}, "x…(m, 3,)…(4, 1)"),
        call=lambda x, o: wb.vi.predict(KEY, fitted(), x, **o),
    ),
    *refused(
        "vi.kl_divergence",
        ({"w": 0.2, "b": 0.2}, "prior_variance…each leaf"),
        call=lambda v: wb.vi.kl_divergence(a_posterior(), v),
    ),
    *refused(
        "vi.cross_entropy",
        (X, jnp.array([0, 1, 2, 3]), "labels…0 to 2…0 to 3"),
        (X, [0, None, 1, 2], "labels…no missing entries…1 of 4"),
    ),
    *refused("vi.square", (X, Y, "y…(4, 3)…(4, 2)")),
    *refused("vi.relu_moments", (jnp.ones(2), jnp.ones(3), "variance…(2,)…(3,)")),
    *refused(
        "vi.output_moments",
        (lambda: wb.vi.output_moments(a_posterior(), X), "posterior…TwoLayer…hidden"),
        (lambda: wb.vi.output_moments(a_two_layer_posterior(), X[:, :2]), "x…(n, 3)…(4, 2)"),
    ),
    *refused("vi.square_elbo", (lambda: wb.vi.square_elbo(a_two_layer_posterior(), X, X), "y…(4, 2)…(4, 3)")),
]
