"""Bad inputs of networks."""

import flax.linen as nn
import jax.numpy as jnp
from flax import nnx

import widebnn as wb
from widebnn._check import brief

from .rows import RNGS, Images, Pair, X, bnn, fcn, kw, refused

ROWS = [
    *refused(
        "models.Dense", (3, 4, kw(scale=1, weight_std=1.0, rngs=RNGS), "weight_std…left out…scale…1.0 and 1")
    ),
    *refused(
        "models.WideResNet20",
        ({"channels": (4, 4)}, "channels…three…(4, 4)"),
        ({"channels": (4, 0, 4)}, "channels…at least 1…0"),
        call=lambda o: wb.models.WideResNet20(**o, rngs=RNGS),
    ),
    *refused(
        "models.FCN",
        (3, 4, -1, kw(rngs=RNGS), "depth…at least 0…-1"),
        (3, (4, 5), 3, kw(rngs=RNGS), "depth…2…got 3"),
        (3, 4, kw(rngs=0), TypeError, "rngs…nnx.Rngs(0)…got 0"),
        (lambda: fcn(weight_std=jnp.array([1.0, -1.0, 1.0])), "weight_std…above 0…-1.0"),
        (lambda: fcn(weight_std=jnp.ones(2)), "weight_std…shape (3,); got the shape (2,)"),
        (lambda: fcn(weight_std=jnp.ones(3), depth=2), "weight_std…sequence…got an array for 2 layers"),
        (lambda: fcn(bias_std=[0.1, 0.2]), "bias_std…per hidden layer, 1; got 2"),
    ),
    *refused(
        "models.BNN",
        (lambda: bnn(noise_std=jnp.array([0.1, -0.2, 0.3])), "noise_std…above 0…-0.2"),
        (lambda: bnn(noise_std=jnp.ones((2, 3))), "noise_std…one axis; got the shape (2, 3)"),
        (lambda: bnn(noise_std=jnp.ones((4, 2))), "noise_std…one axis; got the shape (4, 2)"),
        *[
            (lambda v=v: bnn(noise_std=v), TypeError, f"noise_std…above 0…{brief(v)}")
            for v in ("0.1", None, True)
        ],
        (lambda: bnn(features=Images()).embedding({}, X), "features…(n, d_L)…(4, 3, 1)"),
        (lambda: bnn(features=Pair()).embedding({}, X), "features…one array (n, d_L)…tuple"),
        (lambda: bnn(features=nn.Dense(3)), TypeError, "features…Linen module Dense…from_linen(module, x)"),
    ),
    *refused("models.Embedding", (3, {"w": X}, TypeError, "apply…function…3")),
    *refused(
        "models.from_nnx",
        (nn.Dense(3), TypeError, "features…nnx.Module…Linen module Dense…from_linen"),
        (nnx.Dropout(0.5, rngs=RNGS), "features…Dropout…the module itself"),
    ),
    *refused(
        "models.from_function",
        (3, X, TypeError, "apply…function…3"),
        (jnp.dot, {"w": X, "n": 3}, TypeError, "parameters…floating-point…n is 3"),
    ),
    *refused(
        "models.from_linen",
        (lambda: wb.models.from_linen(fcn(), X), TypeError, "module…linen.Module"),
        (
            nn.BatchNorm(use_running_average=False),
            jnp.ones((2, 3), jnp.float32),
            "features…batch_stats…BatchNorm",
        ),
    ),
]
