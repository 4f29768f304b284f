"""Bad inputs of infinite width."""

import flax.linen as nn
import jax.numpy as jnp

import widebnn as wb

from .rows import KEY, RNGS, X_NAN, Images, X, Y, alike, bnn, fcn, refused


class TwiceFCN(wb.models.FCN):
    """Computes something else than its parent."""

    def __call__(self, x):
        return 2 * super().__call__(x)


def linen():
    return wb.models.from_linen(nn.Dense(4, param_dtype=X.dtype), X)


def linear_kernel(x1, x2=None):
    return x1 @ (x1 if x2 is None else x2).T


def gaussian_process(**options):
    options = {"kernel": wb.nngp.nngp_kernel(bnn()), "x": jnp.eye(4, 3), "y": Y, "noise_std": 0.1} | options
    return wb.nngp.gaussian_process(*options.values())


def evidence_slope(**options):
    options = {"bnn": bnn(), "x": X, "y": Y} | options
    return wb.nngp.evidence_slope(**options)


ROWS = [
    *refused(
        "nngp.evidence_slope",
        ({"bnn": bnn(features=fcn(depth=2))}, "bnn…one hidden layer…2 of them"),
        ({"bnn": bnn(features=Images())}, "x…does not fit"),
        ({"bnn": bnn(noise_std=jnp.ones(2))}, "bnn…one noise_std for all outputs"),
        call=lambda options: evidence_slope(**options),
    ),
    *alike(
        "nngp",
        ("nngp_kernel", "ntk_kernel"),
        (Images, (), "bnn…FCN, CNN…widebnn.models…Images…stax_kernel"),
        (lambda: TwiceFCN(3, 4, rngs=RNGS), (), "bnn…FCN, CNN…TwiceFCN"),
        (linen, (), "bnn…FCN, CNN…flax.linen"),
        (fcn, (X[:, :2],), "x1…(n, 3)…(4, 2)"),
        (fcn, (X[0],), "x1…(n, 3)…(3,)"),
        (fcn, (X[:0],), "x1…n ≥ 1…(0, 3)"),
        (fcn, (X, X[:, :2]), "x2…(n, 3)…(4, 2)"),
        call=lambda kernel, f, x: kernel(bnn(features=f()))(*x),
    ),
    *refused("nngp.stax_kernel", ((1, 2, 3), TypeError, "kernel_fn…(1, 2, 3)")),
    *refused(
        "nngp.stax_kernel",
        ((X, X[:, :2]), "x2…like those of x1, (3,)…(2,)"),
        call=lambda x: wb.nngp.stax_kernel(lambda x1, x2, kind: linear_kernel(x1, x2))(*x),
    ),
    *refused(
        "nngp.gaussian_process",
        ("x", X[:0], "x…n ≥ 1…(0, 3)"),
        ("x", X[:, :2], "x1…(n, 3)…(4, 2)"),
        ("noise_std", -0.1, "noise_std…0 or above…-0.1"),
        ("kernel", jnp.eye(4), TypeError, "kernel…a function of (x1, x2=None)"),
        ("kernel", lambda x1, x2=None: x1, "kernel…(4, 4)…(4, 3)"),
        ("kernel", lambda x1, x2=None: jnp.full((4, 4), jnp.nan), "kernel…finite"),
        call=lambda k, v: gaussian_process(**{k: v}),
    ),
    *refused(
        "nngp.gaussian_process",
        (lambda: gaussian_process(x=X, noise_std=0.0), "noise_std…larger…0.0…singular in float"),
    ),
    *refused(
        "nngp.GaussianProcess",
        (lambda: gaussian_process().mean(X[:, :2]), "x…(m, 3,)…(4, 2)"),
        (lambda: gaussian_process().sample(KEY, X_NAN), "x…finite"),
        (lambda: gaussian_process(noise_std=0.0, x=jnp.eye(3), y=Y[:3]).kl_from_prior(), "noise_std…above 0"),
    ),
]
