"""Bad input to every public function: a clear error that names the argument, what was given, what is wanted.

One table. A public function without a row fails `test_every_public_function_has_a_row`.
"""

import dataclasses
import functools
import inspect
import math
import typing
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import optax
import pytest
from flax import nnx

import widebnn as wb
from widebnn import (
    checkpoint,
    estimates,
    experiments,
    landscape,
    metrics,
    sampling,
    scale,
    streaming,
    tuning,
    versions,
)
from widebnn.study import sweep as sweeps

MODULES = {
    "widebnn": wb,
    "checkpoint": checkpoint,
    "data": wb.data,
    "diagnostics": wb.diagnostics,
    "experiments": experiments,
    "landscape": landscape,
    "estimates": estimates,
    "metrics": metrics,
    "models": wb.models,
    "nngp": wb.nngp,
    "plots": wb.plots,
    "samplers": wb.samplers,
    "sampling": sampling,
    "scale": scale,
    "sweep": sweeps,
    "streaming": streaming,
    "targets": wb.targets,
    "tuning": tuning,
    "versions": versions,
    "vi": wb.vi,
}

KEY = jax.random.key(0)
X, Y = jnp.ones((4, 3)), jnp.ones((4, 2))
X_NAN = X.at[0, 0].set(jnp.nan)
RNGS = nnx.Rngs(0)
OVER_MAPS = (experiments.OverMaps(),)
CASE = experiments.ARCHITECTURES["smoke"].cases[0]
RECURRENT = CASE.network._replace(architecture="recurrent")
HALVES = np.full((3, 2), 0.5)


def flat(u):
    return 0.0 * jnp.sum(u)


def fcn(**options):
    return wb.models.FCN(3, 4, rngs=RNGS, **options)


def bnn(**options):
    return wb.BNN(options.pop("features", fcn()), 2, **({"noise_std": 0.1} | options))


@functools.cache
def target(kind="marginal"):
    return getattr(wb.targets, kind)(bnn(), X, Y)


def classifier(x=X, labels=(0, 1, 1, 0), **options):
    return wb.targets.categorical(options.pop("bnn", bnn()), x, np.asarray(labels), **options)


def position(kind="marginal"):
    return target(kind).draw_prior(KEY)


def sample(**options):
    flat_target = wb.targets.from_potential(flat, jnp.zeros(2))
    options = {"sampler": wb.samplers.pcn(flat, 0.5), "target": flat_target, "num_samples": 2} | options
    sampler, problem = options.pop("sampler"), options.pop("target")
    return wb.sample(options.pop("rng_key", KEY), sampler, problem, progress=False, **options)


def mesh(**axes):
    """One on paper, of more devices than there are."""
    return jax.sharding.Mesh(np.resize(jax.devices(), tuple(axes.values())), tuple(axes))


def slice_through(**options):
    flat_target = wb.targets.from_potential(flat, jnp.zeros(2))
    defaults = {"target": flat_target, "corners": [jnp.ones(2), jnp.array([1.0, 0.0])], "resolution": 2}
    return landscape.slice_through(**(defaults | options))


def simplex_map(**options):
    defaults = {"weights": np.eye(3), "values": [0, 1, 2], "levels": [0, 1]}
    return wb.plots.simplex_map(**(defaults | options))


def sweep(function=len, configs=OVER_MAPS, folder="results", executor=None):
    return sweeps.sweep(function, configs, folder, executor, progress=False)


def streamed(**options):
    """The summary of no values."""
    start = streaming.start(jnp.zeros(2), wb.Stream(jnp.sum, **options))
    return wb.Streamed(jax.device_get(start))


class Draws(NamedTuple):
    """Enough of a run for the diagnostics."""

    collected: dict


class Images(nnx.Module):
    """Forgets to flatten."""

    def __call__(self, x):
        return x[..., None]


class TwiceFCN(wb.models.FCN):
    """Computes something else than its parent."""

    def __call__(self, x):
        return 2 * super().__call__(x)


def fit(model=None, x=X, y=Y, **options):
    model = wb.vi.Linear(3, 2, rngs=RNGS) if model is None else model
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


def linen():
    return wb.models.from_linen(nn.Dense(4), X)


def linear_kernel(x1, x2=None):
    return x1 @ (x1 if x2 is None else x2).T


def gaussian_process(**options):
    options = {"kernel": wb.nngp.nngp_kernel(bnn()), "x": jnp.eye(4, 3), "y": Y, "noise_std": 0.1} | options
    return wb.nngp.gaussian_process(*options.values())


class Row(NamedTuple):
    of: str
    call: Callable[[], Any]
    error: type[Exception]
    words: tuple[str, ...]
    """Parts of the message, the argument's name first."""


SCALES_POSITIVE = [0.0, -1.0, math.nan, math.inf]

ROWS = [
    # models
    *(
        Row("models.Dense", lambda v=v: wb.models.Dense(3, 4, weight_std=v, rngs=RNGS), ValueError, words)
        for v in SCALES_POSITIVE
        for words in [("weight_std", "a finite number above 0", str(v))]
    ),
    Row(
        "models.Dense",
        lambda: wb.models.Dense(0, 4, rngs=RNGS),
        ValueError,
        ("in_features", "at least 1", "0"),
    ),
    Row("models.Dense", lambda: wb.models.Dense(3, -2, rngs=RNGS), ValueError, ("out_features", "1", "-2")),
    Row("models.Dense", lambda: wb.models.Dense(3, 2.5, rngs=RNGS), TypeError, ("out_features", "2.5")),
    Row(
        "models.Dense",
        lambda: wb.models.Dense(3, 4, bias_std=-0.1, rngs=RNGS),
        ValueError,
        ("bias_std", "0 or above", "-0.1"),
    ),
    *(
        Row("models.Conv", lambda o=o: wb.models.Conv(*o[0], **o[1], rngs=RNGS), error, words)
        for o, error, words in [
            (((0, 4), {}), ValueError, ("in_channels", "at least 1", "0")),
            (((3, 0), {}), ValueError, ("out_channels", "at least 1", "0")),
            (((3, 4, 0), {}), ValueError, ("kernel_size", "at least 1", "0")),
            (((3, 4, 1.5), {}), TypeError, ("kernel_size", "1.5")),
            (((3, 4), {"stride": 0}), ValueError, ("stride", "at least 1", "0")),
            (((3, 4), {"weight_std": 0.0}), ValueError, ("weight_std", "above 0", "0.0")),
            (((3, 4), {"bias_std": -1.0}), ValueError, ("bias_std", "0 or above", "-1.0")),
        ]
    ),
    *(
        Row(
            "models.CNN",
            lambda o=o: wb.models.CNN(**({"in_channels": 3, "width": 4} | o), rngs=RNGS),
            *wanted,
        )
        for o, wanted in [
            ({"in_channels": 0}, (ValueError, ("in_channels", "at least 1", "0"))),
            ({"width": 0}, (ValueError, ("width", "at least 1", "0"))),
            ({"depth": 0}, (ValueError, ("depth", "at least 1", "0"))),
            ({"activation": "tanh"}, (ValueError, ("activation", "'gelu'", "'tanh'"))),
            ({"weight_std": -1.0}, (ValueError, ("weight_std", "above 0", "-1.0"))),
        ]
    ),
    *(
        Row("models.WideResNet20", lambda o=o: wb.models.WideResNet20(**o, rngs=RNGS), ValueError, words)
        for o, words in [
            ({"in_channels": 0}, ("in_channels", "at least 1", "0")),
            ({"channels": (4, 4)}, ("channels", "three", "(4, 4)")),
            ({"channels": (4, 0, 4)}, ("channels", "at least 1", "0")),
            ({"weight_std": 0.0, "channels": (1, 1, 1)}, ("weight_std", "above 0", "0.0")),
            ({"offset": -1.0, "channels": (1, 1, 1)}, ("offset", "0 or above", "-1.0")),
        ]
    ),
    Row("models.FCN", lambda: wb.models.FCN(0, 4, rngs=RNGS), ValueError, ("in_features", "at least 1", "0")),
    Row("models.FCN", lambda: wb.models.FCN(3, 0, rngs=RNGS), ValueError, ("width", "at least 1", "0")),
    Row("models.FCN", lambda: wb.models.FCN(3, (4, 0), rngs=RNGS), ValueError, ("width", "at least 1", "0")),
    Row("models.FCN", lambda: wb.models.FCN(3, 4, -1, rngs=RNGS), ValueError, ("depth", "at least 0", "-1")),
    Row("models.FCN", lambda: wb.models.FCN(3, (4, 5), 3, rngs=RNGS), ValueError, ("depth", "2", "got 3")),
    Row("models.FCN", lambda: fcn(activation="tanh"), ValueError, ("activation", "'gelu'", "'tanh'")),
    Row("models.FCN", lambda: fcn(weight_std=-1.0), ValueError, ("weight_std", "above 0", "-1.0")),
    *(
        Row("models.BNN", lambda v=v: bnn(noise_std=v), ValueError, words)
        for v in SCALES_POSITIVE
        for words in [("noise_std", "a finite number above 0", str(v))]
    ),
    Row("models.BNN", lambda: wb.BNN(fcn(), 0, 0.1), ValueError, ("out_features", "at least 1", "0")),
    Row("models.BNN", lambda: bnn(bias_std=-1.0), ValueError, ("bias_std", "0 or above", "-1.0")),
    Row("models.BNN", lambda: bnn(weight_std=0.0), ValueError, ("weight_std", "above 0", "0.0")),
    Row("models.BNN", lambda: bnn(features=jnp.tanh), TypeError, ("features", "flax.nnx.Module")),
    Row(
        "models.BNN",
        lambda: bnn(features=Images()).embedding({}, X),
        ValueError,
        ("features", "(n, d_L)", "(4, 3, 1)"),
    ),
    Row(
        "models.from_nnx",
        lambda: wb.models.from_nnx(nn.Dense(3)),
        TypeError,
        ("features", "nnx.Module", "Dense"),
    ),
    Row(
        "models.from_nnx",
        lambda: wb.models.from_nnx(nnx.Dropout(0.5, rngs=RNGS)),
        ValueError,
        ("features", "Dropout", "the module itself"),
    ),
    Row("models.from_linen", lambda: wb.models.from_linen(fcn(), X), TypeError, ("module", "linen.Module")),
    Row(
        "models.from_linen",
        lambda: wb.models.from_linen(nn.BatchNorm(use_running_average=False), X),
        ValueError,
        ("features", "BatchNorm"),
    ),
    # targets
    *(
        Row(
            f"targets.{kind}",
            lambda kind=kind, x=x, y=y, o=o: getattr(wb.targets, kind)(bnn(), x, y, **o),
            *rest,
        )
        for kind in ("standard", "marginal", "repriorised")
        for x, y, o, *rest in [
            (X[:, :2], Y, {}, ValueError, ("x", "does not fit the network", "(4, 2)")),
            (X[:0], Y[:0], {}, ValueError, ("x", "n ≥ 1", "(0, 3)")),
            (X_NAN, Y, {}, ValueError, ("x", "finite")),
            (X, Y.at[0, 0].set(jnp.inf), {}, ValueError, ("y", "finite")),
            (X, Y[:3], {}, ValueError, ("y", "(4, 2)", "(3, 2)")),
            (X, Y[:, :1], {}, ValueError, ("y", "(4, 2)", "(4, 1)")),
            (X, Y, {"space": "dual"}, ValueError, ("space", "'data'", "'dual'")),
            (X, Y, {"block_size": 0}, ValueError, ("block_size", "at least 1", "0")),
            (X, Y, {"block_size": 2.5}, TypeError, ("block_size", "integer", "2.5")),
            (X, Y, {"block_size": 2, "space": "data"}, ValueError, ("block_size", "None", "'data'", "2")),
        ]
    ),
    Row(
        "targets.standard", lambda: wb.targets.standard(fcn(), X, Y), TypeError, ("bnn", "widebnn.BNN", "FCN")
    ),
    *(
        Row("targets.repriorised", lambda v=v: wb.targets.repriorised(bnn(), X, Y, reg=v), ValueError, words)
        for v in SCALES_POSITIVE
        for words in [("reg", "above 0", str(v))]
    ),
    *(
        Row("targets.jacobian", lambda v=v: wb.targets.jacobian(bnn(), X, Y, reg=v), ValueError, words)
        for v in SCALES_POSITIVE
        for words in [("reg", "above 0", str(v))]
    ),
    *(
        Row("targets.jacobian", lambda x=x, y=y, o=o: wb.targets.jacobian(bnn(), x, y, **o), *rest)
        for x, y, o, *rest in [
            (X[:, :2], Y, {}, ValueError, ("x", "does not fit the network", "(4, 2)")),
            (X, Y[:, :1], {}, ValueError, ("y", "(4, 2)", "(4, 1)")),
            (X, Y, {"order": 0}, ValueError, ("order", "at least 1", "0")),
            (X, Y, {"num_probes": 0, "rng_key": KEY}, ValueError, ("num_probes", "at least 1", "0")),
            (X, Y, {"num_probes": 2.5, "rng_key": KEY}, TypeError, ("num_probes", "integer", "2.5")),
            (X, Y, {"num_probes": 4}, TypeError, ("rng_key is required", "the probes")),
        ]
    ),
    *(
        Row("models.BNN", lambda v=v: bnn(noise_std=v), TypeError, ("noise_std", "above 0", repr(v)))
        for v in ("0.1", None, True, np.ones(1))
    ),
    Row(
        "targets.jacobian", lambda: wb.targets.jacobian(fcn(), X, Y), TypeError, ("bnn", "widebnn.BNN", "FCN")
    ),
    Row(
        "targets.rotated",
        lambda: wb.targets.rotated(target("jacobian")),
        TypeError,
        ("target", "with an inverse", "Jacobian"),
    ),
    *(
        Row("targets.categorical", lambda v=v: classifier(labels=v), ValueError, ("labels must be", *words))
        for v, words in [
            ((0, 1, 2, 0), ("integers (4,) from 0 to 1", "values 0, 1, 2")),
            ((0, 1, -1, 0), ("from 0 to 1", "values -1, 0, 1")),
            ((0.0, 1.0, 1.0, 0.0), ("integers", "float64")),
            ((0, 1, 1), ("(4,)", "shape (3,)")),
            (np.full((4, 2), 0.5), ("one-hot rows (4, 2)", "float64 of shape (4, 2)", "0.5")),
            (np.zeros((4, 2)), ("one-hot", "values 0.0")),
            (np.eye(4)[:, :3], ("one-hot rows (4, 2)", "shape (4, 3)")),
            (("a", "b", "a", "b"), ("integers", "<U1")),
            ((), ("integers", "shape (0,)")),
        ]
    ),
    Row(
        "targets.categorical", lambda: classifier(map="probit"), ValueError, ("map", "'laplace'", "'probit'")
    ),
    Row("targets.categorical", lambda: classifier(reg=-1.0), ValueError, ("reg", "above 0", "-1.0")),
    Row(
        "targets.categorical", lambda: classifier(num_newton=0), ValueError, ("num_newton", "at least 1", "0")
    ),
    Row("targets.categorical", lambda: classifier(bnn=fcn()), TypeError, ("bnn", "widebnn.BNN", "FCN")),
    Row("targets.categorical", lambda: classifier(X[:, :2]), ValueError, ("x", "does not fit", "(4, 2)")),
    Row("targets.categorical", lambda: classifier(X_NAN), ValueError, ("x", "finite")),
    Row("targets.categorical", lambda: classifier(X[:0], labels=()), ValueError, ("x", "n ≥ 1", "(0, 3)")),
    Row(
        "targets.categorical",
        lambda: classifier().output(X[:, :2]),
        ValueError,
        ("x", "(m, 3,)", "(4, 2)"),
    ),
    Row("targets.marginal", lambda: target().readout(position()), TypeError, ("rng_key", "the readout")),
    Row(
        "targets.rotated",
        lambda: wb.targets.rotated(wb.targets.rotated(wb.targets.marginal(bnn(), jnp.eye(4, 3), Y))),
        TypeError,
        ("target", "not yet rotated", "Rotated"),
    ),
    Row(
        "targets.rotated",
        lambda: wb.targets.rotated(target(), ("layers", 5, "kernel")),
        ValueError,
        ("kernel", "(3, d_1)", "5"),
    ),
    Row(
        "targets.rotated",
        lambda: wb.targets.rotated(wb.targets.marginal(bnn(), 0 * X, Y)),
        ValueError,
        ("target", "zeros"),
    ),
    Row("targets.NetworkTarget", lambda: target().output(X[:, :2]), ValueError, ("x", "(m, 3,)", "(4, 2)")),
    Row(
        "targets.NetworkTarget", lambda: target().predictive_mean(X[:0]), ValueError, ("x", "m ≥ 1", "(0, 3)")
    ),
    Row("targets.NetworkTarget", lambda: target().predictive_covariance(X_NAN), ValueError, ("x", "finite")),
    Row(
        "targets.NetworkTarget",
        lambda: target("standard").predictive_draw(X)(position("standard")),
        TypeError,
        ("rng_key", "the noise of an observation"),
    ),
    Row("targets.Target", lambda: wb.targets.Target(), TypeError, ("Target", "abstract", "potential")),
    Row("targets.linear", lambda: wb.targets.linear(X_NAN, Y, 0.1), ValueError, ("x", "finite")),
    Row("targets.linear", lambda: wb.targets.linear(X[:0], Y[:0], 0.1), ValueError, ("x", "≥ 1", "(0, 3)")),
    Row(
        "targets.linear", lambda: wb.targets.linear(X, Y[:3], 0.1), ValueError, ("y", "(4, d_out)", "(3, 2)")
    ),
    Row("targets.linear", lambda: wb.targets.linear(X, Y, 0.0), ValueError, ("noise_std", "above 0", "0.0")),
    Row(
        "targets.linear",
        lambda: wb.targets.linear(X, Y, 0.1).repriorised(reg=-2.0),
        ValueError,
        ("reg", "above 0", "-2.0"),
    ),
    Row(
        "targets.readout_posterior",
        lambda: wb.targets.readout_posterior(X, Y, 0.0),
        ValueError,
        ("reg", "above 0"),
    ),
    Row(
        "targets.readout_posterior",
        lambda: wb.targets.readout_posterior(X, Y, 1.0, "dual"),
        ValueError,
        ("space", "'feature'", "'dual'"),
    ),
    Row(
        "targets.DataSpace", lambda: wb.targets.DataSpace(X, Y, -1.0), ValueError, ("reg", "above 0", "-1.0")
    ),
    Row(
        "targets.FeatureSpace",
        lambda: wb.targets.FeatureSpace(X, Y, math.nan),
        ValueError,
        ("reg", "above 0"),
    ),
    Row(
        "targets.from_potential",
        lambda: wb.targets.from_potential(lambda u: u, jnp.zeros(3)),
        ValueError,
        ("potential", "a real scalar", "3"),
    ),
    Row(
        "targets.from_potential",
        lambda: wb.targets.from_potential(lambda u: jnp.sum(u > 0), jnp.zeros(3)),
        ValueError,
        ("potential", "a real scalar", "int"),
    ),
    Row(
        "targets.from_potential",
        lambda: wb.targets.from_potential(3, jnp.zeros(3)),
        TypeError,
        ("potential",),
    ),
    # infinite width
    *(
        Row(f"nngp.{name}", lambda name=name, f=f, x=x: getattr(wb.nngp, name)(bnn(features=f()))(*x), *rest)
        for name in ("nngp_kernel", "ntk_kernel")
        for f, x, *rest in [
            (Images, (), ValueError, ("bnn", "FCN, CNN", "widebnn.models", "Images", "stax_kernel")),
            (lambda: TwiceFCN(3, 4, rngs=RNGS), (), ValueError, ("bnn", "FCN, CNN", "TwiceFCN")),
            (linen, (), ValueError, ("bnn", "FCN, CNN", "flax.linen")),
            (fcn, (X[:, :2],), ValueError, ("x1", "(n, 3)", "(4, 2)")),
            (fcn, (X[0],), ValueError, ("x1", "(n, 3)", "(3,)")),
            (fcn, (X[:0],), ValueError, ("x1", "n ≥ 1", "(0, 3)")),
            (fcn, (X, X[:, :2]), ValueError, ("x2", "(n, 3)", "(4, 2)")),
            (fcn, (X_NAN,), ValueError, ("x1", "finite")),
            (fcn, (X, X_NAN), ValueError, ("x2", "finite")),
        ]
    ),
    Row("nngp.nngp_kernel", lambda: wb.nngp.nngp_kernel(fcn()), TypeError, ("bnn", "widebnn.BNN", "FCN")),
    Row("nngp.stax_kernel", lambda: wb.nngp.stax_kernel((1, 2, 3)), TypeError, ("kernel_fn", "(1, 2, 3)")),
    Row(
        "nngp.stax_kernel",
        lambda: wb.nngp.stax_kernel(linear_kernel, "dual"),
        ValueError,
        ("kind", "'nngp'", "'dual'"),
    ),
    *(
        Row("nngp.gaussian_process", lambda k=k, v=v: gaussian_process(**{k: v}), *rest)
        for k, v, *rest in [
            ("x", X_NAN, ValueError, ("x", "finite")),
            ("x", X[0], ValueError, ("x", "(n, ...)", "(3,)")),
            ("x", X[:0], ValueError, ("x", "n ≥ 1", "(0, 3)")),
            ("x", X[:, :2], ValueError, ("x1", "(n, 3)", "(4, 2)")),
            ("y", Y[:3], ValueError, ("y", "(4, d_out)", "(3, 2)")),
            ("y", Y[:, 0], ValueError, ("y", "(4, d_out)", "(4,)")),
            ("y", jnp.nan * Y, ValueError, ("y", "finite")),
            ("noise_std", -0.1, ValueError, ("noise_std", "0 or above", "-0.1")),
            ("noise_std", math.nan, ValueError, ("noise_std", "finite", "nan")),
            ("kernel", jnp.eye(4), TypeError, ("kernel", "a function of (x1, x2=None)")),
            ("kernel", lambda x1, x2=None: x1, ValueError, ("kernel", "(4, 4)", "(4, 3)")),
            ("kernel", lambda x1, x2=None: jnp.full((4, 4), jnp.nan), ValueError, ("kernel", "finite")),
        ]
    ),
    Row(
        "nngp.gaussian_process",
        lambda: gaussian_process(x=X, noise_std=0.0),
        ValueError,
        ("noise_std", "larger", "0.0", "singular in float32"),
    ),
    *(
        Row("nngp.GaussianProcess", lambda ask=ask, x=x: ask(gaussian_process(), x), ValueError, words)
        for ask in (
            lambda gp, x: gp.mean(x),
            lambda gp, x: gp.covariance(x),
            lambda gp, x: gp.sample(KEY, x),
        )
        for x, words in [
            (X[:, :2], ("x", "(m, 3,)", "(4, 2)")),
            (X[:0], ("x", "m ≥ 1", "(0, 3)")),
            (X_NAN, ("x", "finite")),
        ]
    ),
    Row(
        "nngp.GaussianProcess",
        lambda: gaussian_process().sample(KEY, X, 0),
        ValueError,
        ("num_samples", "at least 1", "0"),
    ),
    Row(
        "nngp.GaussianProcess",
        lambda: gaussian_process(noise_std=0.0, x=jnp.eye(3), y=Y[:3]).kl_from_prior(),
        ValueError,
        ("noise_std", "above 0", "0.0"),
    ),
    # samplers
    *(
        Row(f"samplers.{name}", lambda make=make, v=v: make(v), ValueError, ("step_size", "above 0", str(v)))
        for v in SCALES_POSITIVE
        for name, make in {
            "rwm": lambda v: wb.samplers.rwm(flat, v),
            "mala": lambda v: wb.samplers.mala(flat, v),
            "langevin": lambda v: wb.samplers.langevin(flat, v, 0.5),
            "hmc": lambda v: wb.samplers.hmc(flat, v, 3),
        }.items()
    ),
    *(
        Row(
            f"samplers.{name}",
            lambda make=make, v=v: make(flat, v),
            ValueError,
            ("step_size", "(0, 1]", str(v)),
        )
        for v in [0.0, 1.1, -0.5, math.nan]
        for name, make in {"pcn": wb.samplers.pcn, "pcnl": wb.samplers.pcnl}.items()
    ),
    *(
        Row("samplers.langevin", lambda v=v: wb.samplers.langevin(flat, 0.1, v), ValueError, words)
        for v in [0.0, 1.5, -1.0]
        for words in [("damping", "(0, 1]", str(v))]
    ),
    Row(
        "samplers.langevin",
        lambda: wb.samplers.langevin(flat, 0.1, 0.5).init(jnp.zeros(2)),
        TypeError,
        ("rng_key", "momentum"),
    ),
    Row("samplers.hmc", lambda: wb.samplers.hmc(flat, 0.1, 0), ValueError, ("num_steps", "at least 1", "0")),
    *(
        Row(
            "samplers.function_space_hmc",
            lambda v=v: wb.samplers.function_space_hmc(flat, v, 3),
            ValueError,
            ("step_size", "(0, π/2]", str(v)),
        )
        for v in (0.0, math.nan, 1.6)
    ),
    Row(
        "samplers.function_space_hmc",
        lambda: wb.samplers.function_space_hmc(flat, 0.1, 0),
        ValueError,
        ("num_steps", "at least 1", "0"),
    ),
    Row(
        "samplers.function_space_hmc",
        lambda: wb.samplers.function_space_hmc(flat, 0.1, 3, damping=0.0),
        ValueError,
        ("damping", "(0, 1]", "0.0"),
    ),
    Row(
        "samplers.function_space_hmc",
        lambda: wb.samplers.function_space_hmc(flat, 0.1, 3).init(jnp.zeros(2)),
        TypeError,
        ("rng_key", "momentum"),
    ),
    Row("samplers.elliptical_slice", lambda: wb.samplers.elliptical_slice(0.1), TypeError, ("potential",)),
    Row(
        "samplers.unitwise",
        lambda: wb.samplers.unitwise(target("standard")),
        TypeError,
        ("target", "marginal", "Standard"),
    ),
    Row(
        "samplers.unitwise",
        lambda: wb.samplers.unitwise(wb.targets.rotated(target("standard"))),
        TypeError,
        ("target", "marginal", "Rotated"),
    ),
    Row(
        "samplers.unitwise",
        lambda: wb.samplers.unitwise(target(), 3),
        ValueError,
        ("block_size", "divide", "4", "got 3"),
    ),
    Row(
        "samplers.unitwise",
        lambda: wb.samplers.unitwise(target(), 0),
        ValueError,
        ("block_size", "at least 1", "0"),
    ),
    Row(
        "samplers.alternate",
        lambda: wb.samplers.alternate(wb.samplers.pcn(flat, 0.1), flat),
        TypeError,
        ("second", "a sampler"),
    ),
    Row(
        "tuning.tune",
        lambda: tuning.tune(KEY, {}, target(), budget=100),
        ValueError,
        ("candidates", "at least one"),
    ),
    Row(
        "tuning.tune",
        lambda: tuning.tune(KEY, {"walk": tuning.Candidate(None, 0.5, 0.0)}, target(), budget=100),
        ValueError,
        ("cost", "above 0", "0.0"),
    ),
    Row(
        "tuning.tune",
        lambda: tuning.tune(KEY, {"walk": tuning.Candidate(None, 0.5, 20.0)}, target(), budget=100),
        ValueError,
        ("budget", "eight times", "'walk'", "100"),
    ),
    Row(
        "tuning.tune_block_size",
        lambda: tuning.tune_block_size(KEY, wb.targets.from_potential(flat, jnp.zeros(2))),
        TypeError,
        ("target", "units"),
    ),
    Row(
        "tuning.tune_block_size",
        lambda: tuning.tune_block_size(KEY, target(), target_acceptance=1),
        ValueError,
        ("target_acceptance", "(0, 1)", "1"),
    ),
    # the driver
    Row("sampling.sample", lambda: sample(num_samples=0), ValueError, ("num_samples", "at least 1", "0")),
    Row("sampling.sample", lambda: sample(thin=0), ValueError, ("thin", "at least 1", "0")),
    Row("sampling.sample", lambda: sample(burn_in=-1), ValueError, ("burn_in", "at least 0", "-1")),
    Row("sampling.sample", lambda: sample(num_chains=0), ValueError, ("num_chains", "at least 1", "0")),
    Row("sampling.sample", lambda: sample(rng_key=jnp.zeros(2)), TypeError, ("rng_key", "jax.random.key(0)")),
    *(
        Row("sampling.sample", lambda v=v, b=b: sample(target_acceptance=v, burn_in=b), ValueError, words)
        for v, b in [(0.0, 5), (1.0, 5), (1.7, 5), (0.5, 0)]
        for words in [
            ("target_acceptance", "(0, 1)", "burn_in > 0", f"target_acceptance={v}", f"burn_in={b}")
        ]
    ),
    Row(
        "sampling.sample",
        lambda: sample(target_acceptance=0.5, burn_in=5),
        TypeError,
        ("sampler", "a function from a step size"),
    ),
    Row(
        "sampling.sample",
        lambda: sample(sampler=functools.partial(wb.samplers.pcn, flat)),
        TypeError,
        ("sampler", "a sampler (init, step)"),
    ),
    Row(
        "sampling.sample",
        lambda: sample(
            sampler=functools.partial(wb.samplers.pcn, flat), burn_in=5, target_acceptance=0.5, step_size=2.0
        ),
        ValueError,
        ("step_size", "max_step_size=1.0", "2.0"),
    ),
    Row("sampling.sample", lambda: sample(step_size=-0.1), ValueError, ("step_size", "above 0", "-0.1")),
    Row(
        "sampling.sample", lambda: sample(max_step_size=0.0), ValueError, ("max_step_size", "above 0", "0.0")
    ),
    Row(
        "sampling.sample",
        lambda: sample(initial=jnp.zeros((2, 3)), num_chains=2),
        ValueError,
        ("initial", "(2, 2)", "(2, 3)"),
    ),
    Row(
        "sampling.sample",
        lambda: sample(initial=jnp.zeros((1, 2)), num_chains=3),
        ValueError,
        ("initial", "(3, 2)"),
    ),
    Row(
        "sampling.sample",
        lambda: sample(target=wb.targets.from_potential(lambda u: jnp.log(-jnp.sum(u**2)), jnp.zeros(2))),
        ValueError,
        ("potential", "finite", "nan"),
    ),
    Row("sampling.sample", lambda: sample(collect={"u": 3}), TypeError, ("collect", "3")),
    Row("sampling.sample", lambda: sample(stream={"u": 3}), TypeError, ("stream", "3")),
    Row("sampling.sample", lambda: sample(stream={"u": wb.Stream(lambda u: (u, u))}), TypeError, ("stream",)),
    Row(
        "sampling.sample",
        lambda: sample(stream={"u": lambda u: u + 1j}),
        TypeError,
        ("stream", "real numbers", "complex64"),
    ),
    Row(
        "sampling.sample",
        lambda: sample(num_samples=2**30, thin=2),
        ValueError,
        ("num_samples", "at most 2147483647", "2147483648"),
    ),
    Row("sampling.sample", lambda: sample(checkpoint="runs/a"), TypeError, ("checkpoint", "runs/a")),
    *(
        Row("sampling.sample", lambda options=options: sample(**options), error, ("mesh", *words))
        for options, error, *words in [
            ({"mesh": 8}, TypeError, "jax.sharding.Mesh", "8"),
            ({"mesh": mesh(model=1)}, ValueError, '"chain" and "data"', "model"),
            ({"mesh": mesh(chain=2), "num_chains": 3}, ValueError, "'chain' of 2", "chains", "3"),
            ({"mesh": mesh(data=3), "target": target()}, ValueError, "'data' of 3", "observations", "4"),
            ({"mesh": mesh(data=3)}, ValueError, "'data' of 3", "observations", "None"),
        ]
    ),
    Row(
        "sampling.Draws",
        lambda: sample(collect={}).to_datatree(),
        ValueError,
        ("to_datatree", "collect={}"),
    ),
    *(
        Row(
            "checkpoint.Checkpoint",
            lambda v=v: wb.Checkpoint("a", v),
            ValueError,
            ("every_seconds", "above 0"),
        )
        for v in SCALES_POSITIVE
    ),
    Row(
        "checkpoint.Checkpoint",
        lambda: wb.Checkpoint("a", every_steps=0),
        ValueError,
        ("every_steps", "at least 1", "0"),
    ),
    *(
        Row(
            "streaming.Streamed",
            lambda q=q: streamed().quantile(q),
            ValueError,
            ("q", "in [0, 1]", str(q)),
        )
        for q in (-0.1, 1.5, math.nan)
    ),
    Row(
        "streaming.Streamed",
        lambda: streamed(quantiles=False).quantile(0.5),
        ValueError,
        ("quantile", "quantiles=True"),
    ),
    Row(
        "streaming.Streamed",
        lambda: streamed(batches=False).effective_sample_size,
        ValueError,
        ("batch means", "batches=True"),
    ),
    Row("streaming.Streamed", lambda: streamed().rhat, ValueError, ("batch means", "two values", "0")),
    Row(
        "streaming.start",
        lambda: streaming.start(jax.ShapeDtypeStruct((2,), jnp.complex64), wb.Stream(jnp.sum)),
        TypeError,
        ("streamed", "real numbers", "complex64"),
    ),
    Row(
        "sampling.sample",
        lambda: sample(collect={"u": lambda u: (u, u)}),
        TypeError,
        ("collect['u']", "one array"),
    ),
    Row(
        "sampling.Draws",
        lambda: sample()["prediction"],
        KeyError,
        ("'prediction'", "not collected", "['potential']"),
    ),
    # diagnostics
    *(
        Row(f"diagnostics.{name}", lambda name=name, v=v: getattr(wb.diagnostics, name)(v), ValueError, words)
        for name in ("effective_sample_size", "rhat", "rhat_squared")
        for v, words in [
            (np.zeros(5), ("draws", "(chain, draw, ...)", "(5,)")),
            (np.zeros((2, 1)), ("draws", "two draws", "(2, 1)")),
            (np.full((2, 5), np.nan), ("draws", "finite")),
            (Draws({"f": np.zeros((2, 1))}), ("collected['f']", "two draws", "(2, 1)")),
        ]
    ),
    *(
        Row(
            f"diagnostics.{name}",
            lambda name=name: getattr(wb.diagnostics, name)(np.ones((1, 5))),
            ValueError,
            words,
        )
        for name in ("rhat", "rhat_squared")
        for words in [("draws", "two chains", "(1, 5)")]
    ),
    Row(
        "diagnostics.random_projections",
        lambda: wb.random_projections(KEY, X, 0),
        ValueError,
        ("num", "1", "0"),
    ),
    Row(
        "diagnostics.random_projections",
        lambda: wb.random_projections(KEY, {}),
        ValueError,
        ("template", "empty"),
    ),
    Row(
        "diagnostics.random_projections",
        lambda: wb.random_projections(KEY, X)(X[:2]),
        ValueError,
        ("position", "(4, 3)", "(2, 3)"),
    ),
    Row(
        "diagnostics.principal_components",
        lambda: wb.diagnostics.principal_components(np.zeros((2, 5, 3)), num=4),
        ValueError,
        ("num", "at most 3", "4"),
    ),
    Row(
        "diagnostics.band",
        lambda: wb.diagnostics.band(np.zeros((2, 3)), (0.9, 0.1)),
        ValueError,
        ("probs", "[0, 1]", "0.9"),
    ),
    Row("diagnostics.band", lambda: wb.diagnostics.band(np.zeros((2, 0))), ValueError, ("values", "(2, 0)")),
    # limits
    Row(
        "estimates.prior_draws",
        lambda: estimates.prior_draws(KEY, target(), {"U": 3}, 10),
        TypeError,
        ("collect['U']", "a function of a position", "3"),
    ),
    Row(
        "estimates.prior_draws",
        lambda: estimates.prior_draws(KEY, target(), {"U": target().potential}, 0),
        ValueError,
        ("num_draws", "at least 1", "0"),
    ),
    Row(
        "estimates.prior_draws",
        lambda: estimates.prior_draws(KEY, target(), {"U": target().potential}, 10, batch_size=0),
        ValueError,
        ("batch_size", "at least 1", "0"),
    ),
    Row(
        "estimates.kl_from_prior",
        lambda: estimates.kl_from_prior(X[:, :1]),
        ValueError,
        ("potential", "(4, 1)"),
    ),
    Row(
        "estimates.kl_from_prior", lambda: estimates.kl_from_prior(X_NAN), ValueError, ("potential", "finite")
    ),
    Row(
        "estimates.kl_from_prior",
        lambda: estimates.kl_from_prior(X, jnp.ones(5)[None, :, None]),
        ValueError,
        ("conditional", "(4, 3)", "(1, 5, 1)"),
    ),
    *(
        Row("estimates.kolmogorov_distance", lambda args=args: estimates.kolmogorov_distance(*args), *rest)
        for args, *rest in [
            ((X[:3, 0], X[:3, 0], X[0, 0], X[0, 0]), ValueError, ("mean", "4 draws", "(3,)")),
            ((X, X[:, :2], X[0], X[0]), ValueError, ("mean", "(draw, *batch)", "(4, 2)")),
            ((X, X, X[0], X[:, 0]), ValueError, ("limits", "(*batch)", "(4,)")),
            ((X, X, X[0], 0 * X[0]), ValueError, ("limit_variance", "above 0", "0.0")),
            ((X, -X, X[0], X[0]), ValueError, ("variance", "above 0", "-1.0")),
            ((X, X, X[0], X[0], 1), ValueError, ("num_points", "at least 2", "1")),
        ]
    ),
    Row(
        "estimates.by_groups",
        lambda: estimates.by_groups(np.mean, X[:, 0]),
        ValueError,
        ("draws", "num_groups=20", "[4]"),
    ),
    Row(
        "estimates.by_groups",
        lambda: estimates.by_groups(np.mean, X, num_groups=1),
        ValueError,
        ("num_groups", "at least 2", "1"),
    ),
    Row("estimates.mean_and_mcse", lambda: estimates.mean_and_mcse(X[:, 0]), ValueError, ("draws", "(4,)")),
    *(
        Row("estimates.power_law", lambda args=args: estimates.power_law(*args), ValueError, words)
        for args, words in [
            ((X[:, 0], X[:2, 0], X[:, 0]), ("value", "one entry a width", "(2,)")),
            ((X[:, 0], -X[:, 0], X[:, 0]), ("value", "above 0", "-1.")),
            ((jnp.arange(1.0, 5), X[:, 0], 0 * X[:, 0]), ("error", "above 0", "0.")),
            ((X[:, 0], X[:, 0], X[:, 0]), ("width", "3 different widths", "1.")),
            ((jnp.arange(1.0, 4), X[0], X[0], True), ("width", "4 different widths", "3.")),
        ]
    ),
    # data
    *(
        Row(
            f"data.{name}",
            lambda name=name, k=k, v=v: getattr(wb.data, name)(**{k: v}),
            ValueError,
            (k, wanted),
        )
        for name in ("digits", "diabetes")
        for k, v, wanted in [
            ("num_train", 0, "at least 1; got 0"),
            ("num_train", 5_000, "5,000 but there are"),
            ("num_test", -1, "at least 1; got -1"),
            ("num_test", 1_700, "leaves no more"),
        ]
    ),
    Row("data.cifar10", lambda: wb.data.cifar10(0), ValueError, ("num_train", "at least 1", "0")),
    Row("data.cifar10", lambda: wb.data.cifar10(num_test=-5), ValueError, ("num_test", "at least 1", "-5")),
    # plots
    Row(
        "plots.width_curves",
        lambda: wb.plots.width_curves([8, -1], {"pCN": np.ones((3, 2))}, ylabel="a"),
        ValueError,
        ("width", "above 0", "-1"),
    ),
    Row(
        "plots.width_curves",
        lambda: wb.plots.width_curves([8], {}, ylabel="a"),
        ValueError,
        ("curves", "one"),
    ),
    Row("plots.traces", lambda: wb.plots.traces(np.zeros(3), ylabel="U"), ValueError, ("draws", "(3,)")),
    Row(
        "plots.traces",
        lambda: wb.plots.traces(np.zeros((2, 3)), ylabel="U", thin=0),
        ValueError,
        ("thin", "1", "0"),
    ),
    Row(
        "plots.rank_plot",
        lambda: wb.plots.rank_plot(np.zeros((1, 9))),
        ValueError,
        ("draws", "two chains", "(1, 9)"),
    ),
    Row(
        "plots.rank_plot",
        lambda: wb.plots.rank_plot(np.zeros((2, 9)), bins=10),
        ValueError,
        ("bins", "9", "10"),
    ),
    Row(
        "plots.function_bands",
        lambda: wb.plots.function_bands([0, 1], [0, 0], {"95 %": ([1, 1], [0, 2])}),
        ValueError,
        ("bands['95 %']", "low at most high"),
    ),
    *(
        Row("plots.simplex_map", lambda o=o: simplex_map(**o), ValueError, words)
        for o, words in [
            ({"weights": np.ones((3, 2)) / 2}, ("weights", "(any, 3)", "(3, 2)")),
            ({"weights": np.ones((3, 3))}, ("weights", "sum to 1")),
            ({"weights": np.tile([1, 0, 0], (3, 1))}, ("weights", "one line")),
            ({"values": [0, 1]}, ("values", "(3)", "(2,)")),
            ({"values": [0, 1, math.inf]}, ("values", "finite")),
            ({"levels": [1.0, 1.0]}, ("levels", "grow", "[1. 1.]")),
        ]
    ),
    # landscape
    Row("landscape.slerp", lambda: landscape.slerp(X, Y, 0.5), ValueError, ("b", "(4, 3)", "(4, 2)")),
    Row("landscape.slerp", lambda: landscape.slerp(X, 0 * X, 0.5), ValueError, ("b", "zero", "0.0")),
    Row("landscape.slerp", lambda: landscape.slerp(X, -2 * X, 0.5), ValueError, ("b", "opposite")),
    Row("landscape.simplex_grid", lambda: landscape.simplex_grid(3, 0), ValueError, ("resolution", "1", "0")),
    Row(
        "landscape.simplex_grid", lambda: landscape.simplex_grid(0, 3), ValueError, ("num_corners", "1", "0")
    ),
    *(
        Row("landscape.slice_through", lambda o=o: slice_through(**o), error, words)
        for o, error, words in [
            ({"resolution": 1}, ValueError, ("resolution", "at least 2", "1")),
            ({"resolution": 2.5}, TypeError, ("resolution", "2.5")),
            ({"corners": [jnp.ones(2)]}, ValueError, ("corners", "two positions or three", "1")),
            ({"corners": [jnp.ones(2), jnp.ones(3)]}, ValueError, ("corners", "(2,)", "(3,)")),
            ({"corners": [jnp.ones(2), X_NAN[0, :2]]}, ValueError, ("corners", "finite")),
            ({"corners": [jnp.ones(2), -jnp.ones(2)]}, ValueError, ("opposite",)),
            ({"target": flat}, TypeError, ("target", "function")),
        ]
    ),
    Row(
        "landscape.Slice",
        lambda: slice_through().barrier(0, 2),
        ValueError,
        ("first and second", "0 to 1", "0, 2"),
    ),
    Row("landscape.Slice", lambda: slice_through().barrier(1, 1), ValueError, ("first and second", "1, 1")),
    Row(
        "landscape.curvature",
        lambda: landscape.curvature(KEY, target(), position(), 0),
        ValueError,
        ("num_steps", "at least 1", "0"),
    ),
    Row(
        "landscape.curvature",
        lambda: landscape.curvature(KEY, target(), position("standard")),
        ValueError,
        ("position", "the target's shapes"),
    ),
    Row(
        "landscape.train",
        lambda: landscape.train(target(), position(), optax.sgd(0.1), 0),
        ValueError,
        ("num_steps", "at least 1", "0"),
    ),
    Row(
        "landscape.train",
        lambda: landscape.train(target(), X, optax.sgd(0.1), 1),
        ValueError,
        ("position", "the target's shapes", "(4, 3)"),
    ),
    # scales and experiments
    Row("scale.at_scale", lambda: wb.at_scale(laptop=1), ValueError, ("choices", "'smoke'", "['laptop']")),
    Row("scale.at_scale", lambda: wb.at_scale(smoke=1, huge=2), ValueError, ("choices", "'paper'", "huge")),
    Row(
        "experiments.config_hash",
        lambda: experiments.config_hash({"n": 3}),
        TypeError,
        ("config", "dataclass"),
    ),
    Row(
        "experiments.save",
        lambda: experiments.save("no such folder/rows.json", experiments.OverWidth(), [], 0.0),
        FileNotFoundError,
        ("no such folder",),
    ),
    Row(
        "experiments.load",
        lambda: experiments.load("nothing.json", experiments.OverWidth()),
        FileNotFoundError,
        ("path", "nothing.json", "run the experiment"),
    ),
    Row(
        "experiments.load_or_run",
        lambda: experiments.load_or_run("rows.json", "laptop", lambda config: []),
        TypeError,
        ("config", "dataclass", "'laptop'"),
    ),
    *(
        Row("plots.reliability_diagram", lambda c=c: wb.plots.reliability_diagram(c), ValueError, words)
        for c, words in [
            ({}, ("curves", "none")),
            ({"a": ([0.5], [0.5, 1.0])}, ("accuracy of 'a'", "(1)", "(2,)")),
            ({"a": ([0.5], [1.5])}, ("curves['a']", "[0, 1]")),
            ({"a": ([0.5], [np.nan])}, ("curves['a']", "[0, 1]")),
        ]
    ),
    # metrics
    *(
        Row(f"metrics.{name}", lambda f=f, args=args: f(*args), ValueError, words)
        for name, f in [
            ("accuracy", metrics.accuracy),
            ("nll", metrics.nll),
            ("reliability", metrics.reliability),
            ("ece", metrics.ece),
        ]
        for args, words in [
            ((HALVES, np.array([0, 1])), ("labels", "(3,)", "(2,)")),
            ((HALVES, np.array([0, 1, 2])), ("labels", "0 to 1", "0 to 2")),
            ((HALVES, np.array([0, -1, 1])), ("labels", "0 to 1", "-1 to 1")),
            ((HALVES[:0], np.zeros(0, int)), ("probabilities", "n ≥ 1", "(0, 2)")),
            ((2 * HALVES, np.array([0, 1, 1])), ("probabilities", "sum to 1")),
        ]
    ),
    *(
        Row(f"metrics.{name}", lambda f=f, p=p: f(p), ValueError, words)
        for name, f in [
            ("confidence", metrics.confidence),
            ("predictive_entropy", metrics.predictive_entropy),
        ]
        for p, words in [
            (HALVES[0], ("probabilities", "(n, k)", "(2,)")),
            (np.full((1, 2), np.nan), ("probabilities", "sum to 1")),
            (np.array([[1.5, -0.5]]), ("probabilities", "0 or above")),
        ]
    ),
    *(
        Row(f"metrics.{name}", lambda f=f, o=o: f(HALVES, np.array([0, 1, 1]), **o), ValueError, words)
        for name, f in [("reliability", metrics.reliability), ("ece", metrics.ece)]
        for o, words in [
            ({"num_bins": 0}, ("num_bins", "at least 1", "0")),
            ({"num_bins": 4, "adaptive": True}, ("num_bins", "at most 3", "4")),
        ]
    ),
    *(
        Row(f"metrics.{name}", lambda f=f, args=args: f(*args), ValueError, words)
        for name, f in [("auroc", metrics.auroc), ("fpr95", metrics.fpr95)]
        for args, words in [
            ((np.zeros(0), np.ones(2)), ("inside", "at least one")),
            ((np.ones(2), np.array([np.inf])), ("outside", "finite", "inf")),
        ]
    ),
    # experiments
    *(
        Row(f"experiments.{name}", lambda f=f, args=args: f(*args), error, words)
        for name, f, args, error, words in [
            ("find", experiments.find, ("P-F99",), ValueError, ("name", "'P-F1'", "'suprema'", "'P-F99'")),
            ("find", experiments.find, ("V-F6",), ValueError, ("name", "resnet or tempering", "'V-F6'")),
            ("run", experiments.run, ("P-F99",), ValueError, ("name", "'P-F99'")),
            (
                "run",
                experiments.run,
                ("V-T2", "huge"),
                ValueError,
                ("scale", "'laptop', 'paper', 'smoke'", "'huge'"),
            ),
            (
                "run",
                experiments.run,
                ("V-T2", "smoke", Path(__file__).parent),
                ValueError,
                ("results", "tests holds", "none of these"),
            ),
            (
                "run",
                experiments.run,
                ("V-T2", "smoke", __file__),
                NotADirectoryError,
                ("results", "is a file"),
            ),
            ("forecast", experiments.forecast, ("over",), ValueError, ("name", "'over_width'", "'over'")),
            ("forecast", experiments.forecast, ("V-C", "huge"), ValueError, ("scale", "'smoke'", "'huge'")),
            (
                "tempering",
                experiments.tempering,
                (dataclasses.replace(experiments.TEMPERING["smoke"], num_test=14),),
                ValueError,
                ("num_test", "at least 15", "14"),
            ),
            (
                "resnet",
                experiments.resnet,
                (dataclasses.replace(experiments.RESNET["smoke"], num_test=14),),
                ValueError,
                ("num_test", "at least 15", "14"),
            ),
            ("summarise", experiments.summarise, ("P-F99",), ValueError, ("name", "'P-F99'")),
            ("summarise", experiments.summarise, ("V-C",), FileNotFoundError, ("results", "no 'results'")),
            ("ledger", experiments.ledger, ("nowhere",), FileNotFoundError, ("results", "no 'nowhere'")),
            ("ledger", experiments.ledger, (__file__,), NotADirectoryError, ("results", "is a file")),
        ]
    ),
    Row(
        "experiments.over_width",
        lambda: experiments.over_width(experiments.OverWidth(samplers=("gibbs",), num_steps=(1,))),
        ValueError,
        ("sampler", "'pCN'", "'gibbs'"),
    ),
    Row(
        "experiments.over_width",
        lambda: experiments.over_width(experiments.OverWidth(num_steps=(1,))),
        ValueError,
        ("num_steps", "one entry for each", "(1,)"),
    ),
    Row(
        "experiments.over_width",
        lambda: experiments.over_width(experiments.OverWidth(dataset="imagenet")),
        ValueError,
        ("dataset", "'digits'", "'imagenet'"),
    ),
    *(
        Row("experiments.convergence", lambda c=c: experiments.convergence(c), ValueError, words)
        for c, words in [
            (experiments.Convergence(samplers=("HMC",)), ("sampler", "'pCN'", "'HMC'")),
            (experiments.Convergence(num_steps=(1,)), ("num_steps", "one entry for each", "(1,)")),
            (experiments.Convergence(num_steps=(1,) * 3), ("num_steps", "at least 800", "(1, 1, 1)")),
            (experiments.Convergence(num_chains=1), ("num_chains", "at least 2", "1")),
            (experiments.Convergence(num_projections=1), ("num_projections", "at least 2", "1")),
            (experiments.Convergence(num_checkpoints=0), ("num_checkpoints", "at least 1", "0")),
            (experiments.Convergence(dataset="imagenet"), ("dataset", "'digits'", "'imagenet'")),
        ]
    ),
    *(
        Row(f"experiments.{name}", call, *rest)
        for name, call, *rest in [
            (
                "convergence_summary",
                lambda: experiments.convergence_summary(np.zeros((2, 7))),
                ValueError,
                ("draws", "8 draws", "(2, 7)"),
            ),
            (
                "convergence_summary",
                lambda: experiments.convergence_summary(np.zeros((1, 8))),
                ValueError,
                ("draws", "two chains", "(1, 8"),
            ),
            (
                "trace_summary",
                lambda: experiments.trace_summary(np.zeros((2, 8))),
                ValueError,
                ("draws", "(chain, draw, feature)", "(2, 8)"),
            ),
            (
                "trace_summary",
                lambda: experiments.trace_summary(np.zeros((2, 8, 2)), thin=0),
                ValueError,
                ("thin", "at least 1", "0"),
            ),
            (
                "whole_langevin",
                lambda: experiments.whole_langevin(flat, 0.0, 10),
                ValueError,
                ("step_size", "above 0", "0.0"),
            ),
            (
                "whole_langevin",
                lambda: experiments.whole_langevin(flat, 0.1, 1),
                ValueError,
                ("num_rest", "at least 2", "1"),
            ),
            (
                "whole_langevin",
                lambda: experiments.whole_langevin(flat, 0.1, 2).init(jnp.zeros(3)),
                TypeError,
                ("rng_key is required",),
            ),
        ]
    ),
    *(
        Row(f"experiments.{name}", lambda run=run, config=config: run(config), ValueError, words)
        for name, run, config, words in [
            (
                "over_reg",
                experiments.over_reg,
                experiments.OverReg(num_chains=1),
                ("num_chains", "at least 2", "1"),
            ),
            (
                "over_reg",
                experiments.over_reg,
                experiments.OverReg(regs=(0.1, 0.0)),
                ("reg", "above 0", "0.0"),
            ),
            (
                "approximations",
                experiments.approximations,
                experiments.Approximations(num_repeats=0),
                ("num_repeats", "at least 1", "0"),
            ),
            (
                "langevin_gain",
                experiments.langevin_gain,
                experiments.LangevinGain(parametrisations=("ψ",)),
                ("parametrisations", "'θ'", "'ψ'"),
            ),
            (
                "langevin_gain",
                experiments.langevin_gain,
                experiments.LangevinGain(dampings=()),
                ("dampings", "at least 1", "0"),
            ),
            (
                "langevin_gain",
                experiments.langevin_gain,
                experiments.LangevinGain(least_acceptance=0.99),
                ("least_acceptance", "below target_acceptance", "0.99 and 0.985"),
            ),
            (
                "architectures",
                experiments.architectures,
                experiments.Architectures(cases=(CASE._replace(network=RECURRENT),)),
                ("architecture", "'residual'", "'recurrent'"),
            ),
            (
                "architectures",
                experiments.architectures,
                experiments.Architectures(cases=(CASE,), thin=3),
                ("thin", "a multiple of num_kicks=4", "3"),
            ),
            (
                "step_cost",
                experiments.step_cost,
                experiments.StepCost(networks=(), num_rounds=1),
                ("num_rounds", "at least 2", "1"),
            ),
            (
                "theorems",
                experiments.theorems,
                experiments.Theorems(num_chains=1),
                ("num_chains", "at least 2", "1"),
            ),
            (
                "identities",
                experiments.identities,
                experiments.Identities(sizes=((8, 0, 1),)),
                ("width", "at least 1", "0"),
            ),
            (
                "identities",
                experiments.identities,
                experiments.Identities(noise_stds=(0.0,)),
                ("noise_std", "above 0", "0.0"),
            ),
            (
                "counterexample",
                experiments.counterexample,
                experiments.Counterexample(num_draws=1),
                ("num_draws", "at least 2", "1"),
            ),
            (
                "algorithms",
                experiments.algorithms,
                experiments.Algorithms(num_chains=1),
                ("num_chains", "at least 2", "1"),
            ),
            (
                "algorithms",
                experiments.algorithms,
                experiments.Algorithms(cases=("MALA",)),
                ("cases", "'pCNL, U = 0'", "'MALA'"),
            ),
            (
                "unitwise",
                experiments.unitwise,
                experiments.Unitwise(num_chains=1),
                ("num_chains", "at least 2", "1"),
            ),
            (
                "efficiency",
                experiments.efficiency,
                experiments.Efficiency(samplers=("pCN", "gibbs")),
                ("samplers", "'unit-wise'", "'gibbs'"),
            ),
            (
                "over_maps",
                experiments.over_maps,
                experiments.OverMaps(num_chains=1),
                ("num_chains", "at least 2", "1"),
            ),
            (
                "over_maps",
                experiments.over_maps,
                experiments.OverMaps(maps=("probit",)),
                ("maps", "'Laplace'", "'probit'"),
            ),
        ]
    ),
    Row(
        "experiments.landscape",
        lambda: experiments.landscape(experiments.Landscape(dataset="imagenet")),
        ValueError,
        ("dataset", "'digits'", "'imagenet'"),
    ),
    Row(
        "experiments.published_pcnl",
        lambda: experiments.published_pcnl(experiments.PublishedPCNL(dataset="imagenet")),
        ValueError,
        ("dataset", "'digits'", "'imagenet'"),
    ),
    Row(
        "experiments.published_pcnl",
        lambda: experiments.published_pcnl(experiments.PublishedPCNL(num_chains=1)),
        ValueError,
        ("num_chains", "at least 2", "1"),
    ),
    Row(
        "experiments.published_pcnl",
        lambda: experiments.published_pcnl(experiments.PublishedPCNL(leapfrog_steps=(10,))),
        ValueError,
        ("leapfrog_steps", "one entry for each width", "(10,)"),
    ),
    Row(
        "experiments.published_potential",
        lambda: experiments.published_potential(wb.targets.linear(X, Y, 0.1)),
        TypeError,
        ("target", "repriorised", "Linear"),
    ),
    Row(
        "experiments.published_marginal",
        lambda: experiments.published_marginal(wb.targets.linear(X, Y, 0.1)),
        TypeError,
        ("target", "network", "Linear"),
    ),
    *(
        Row(
            "experiments.tempering",
            lambda o=o: experiments.tempering(experiments.Tempering(dataset="digits", **o)),
            ValueError,
            words,
        )
        for o, words in [
            ({}, ("outside", "'digits'", "'fashion_mnist'")),
            ({"outside": "digits", "num_train": 1_000}, ("num_train", "at most", "1000")),
            ({"width": 0}, ("width", "at least 1", "0")),
            ({"prior_variance": 0.0}, ("prior_variance", "above 0", "0.0")),
            ({"taus": (1.0, -1.0)}, ("tau", "0 or above", "-1.0")),
            ({"num_repeats": 0}, ("num_repeats", "at least 1", "0")),
            ({"num_train": 100, "batch_size": 101}, ("batch_size", "1 to 100", "101")),
            ({"learning_rate": 0.0}, ("learning_rate", "above 0", "0.0")),
        ]
    ),
    Row(
        "experiments.resnet",
        lambda: experiments.resnet(experiments.ResNet(norms=("batch", "layer"))),
        ValueError,
        ("norm", "'none'", "'layer'"),
    ),
    Row(
        "experiments.resnet",
        lambda: experiments.resnet(experiments.ResNet(num_draws=0)),
        ValueError,
        ("num_draws", "at least 1", "0"),
    ),
    Row(
        "experiments.ood_split",
        lambda: experiments.ood_split("imagenet", "svhn", 10, 10),
        ValueError,
        ("dataset", "'mnist'", "'imagenet'"),
    ),
    Row(
        "experiments.ood_split",
        lambda: experiments.ood_split("mnist", "svhn", 10, 10),
        ValueError,
        ("outside", "'fashion_mnist'", "'svhn'"),
    ),
    Row(
        "experiments.ood_split",
        lambda: experiments.ood_split("digits", "digits", 10, 0),
        ValueError,
        ("num_test", "at least 1", "0"),
    ),
    Row(
        "experiments.classification_summary",
        lambda: experiments.classification_summary(
            np.full((2, 2), 0.5), np.zeros(2, int), np.full((2, 3), 1 / 3)
        ),
        ValueError,
        ("outside", "2 classes", "3"),
    ),
    *(
        Row(f"experiments.{name}", lambda run=run, config=config: run(config), ValueError, words)
        for name, run, config, words in [
            (
                "collapse",
                experiments.collapse,
                experiments.Collapse(losses=("hinge",)),
                ("losses", "'square'", "'hinge'"),
            ),
            (
                "collapse",
                experiments.collapse,
                experiments.Collapse(scalings=("N",)),
                ("scalings", "'ntk'", "'N'"),
            ),
            (
                "elbo_ratio",
                experiments.elbo_ratio,
                experiments.ElboRatio(datasets=("imagenet",)),
                ("dataset", "'digits'", "'imagenet'"),
            ),
            (
                "elbo_ratio",
                experiments.elbo_ratio,
                experiments.ElboRatio(num_train=(10,)),
                ("num_train", "one entry for each", "(10,)"),
            ),
            (
                "elbo_ratio",
                experiments.elbo_ratio,
                experiments.ElboRatio(taus=(1.0, -1.0)),
                ("taus", "above 0", "-1.0"),
            ),
            (
                "mean_field_gap",
                experiments.mean_field_gap,
                experiments.MeanFieldGap(losses=("hinge",)),
                ("losses", "'square'", "'hinge'"),
            ),
            (
                "mean_field_gap",
                experiments.mean_field_gap,
                experiments.MeanFieldGap(num_samples=1),
                ("num_samples", "at least 2", "1"),
            ),
            ("suprema", experiments.suprema, experiments.Suprema(taus=(0.0,)), ("taus", "above 0", "0.0")),
            (
                "suprema",
                experiments.suprema,
                experiments.Suprema(min_std=0.0),
                ("min_std", "above 0", "0.0"),
            ),
            (
                "concentration",
                experiments.concentration,
                experiments.Concentration(deltas=(1.5,)),
                ("deltas", "(0, 1)", "1.5"),
            ),
        ]
    ),
    # variational inference
    *(
        Row("vi.fit", lambda o=o: fit(**o), *rest)
        for o, *rest in [
            ({"num_epochs": 0}, ValueError, ("num_epochs", "at least 1", "0")),
            ({"batch_size": 0}, ValueError, ("batch_size", "at least 1", "0")),
            ({"batch_size": 5}, ValueError, ("batch_size", "at most 4", "5")),
            ({"batch_size": 2.5}, TypeError, ("batch_size", "integer", "2.5")),
            ({"temperature": -1.0}, ValueError, ("temperature", "0 or above", "-1.0")),
            ({"temperature": math.nan}, ValueError, ("temperature", "0 or above", "nan")),
            ({"prior_variance": 0.0}, ValueError, ("prior_variance", "above 0", "0.0")),
            ({"prior_variance": {"a": 1.0}}, ValueError, ("prior_variance", "each leaf", "'a'")),
            ({"initial_std": 0.0}, ValueError, ("initial_std", "above 0", "0.0")),
            ({"num_samples": 0}, ValueError, ("num_samples", "at least 1", "0")),
            ({"num_samples": 3, "antithetic": True}, ValueError, ("num_samples", "even", "3")),
            ({"weighting": "linear"}, ValueError, ("weighting", "'uniform'", "'linear'")),
            ({"optimiser": 0.1}, TypeError, ("optimiser", "optax.adam", "0.1")),
            (
                {"y": jnp.array([0, 1, 2, 0]), "loss": wb.vi.cross_entropy},
                ValueError,
                ("y", "labels 0 to 1", "0 to 2"),
            ),
            ({"x": X_NAN}, ValueError, ("x", "finite")),
            ({"y": Y.at[0, 0].set(jnp.nan)}, ValueError, ("y", "finite")),
            ({"y": Y[:3]}, ValueError, ("x and y", "one row", "(3, 2)")),
            ({"x": X[:0], "y": Y[:0]}, ValueError, ("x and y", "n ≥ 1", "(0, 3)")),
            ({"loss": lambda f, y: jnp.sum(f - y)}, ValueError, ("loss", "each of 2", "()")),
            ({"rng_key": 0}, TypeError, ("rng_key", "jax.random.key", "0")),
            ({"model": jnp.tanh}, TypeError, ("model", "nnx.Module", "PjitFunction")),
            ({"checkpoint": "runs"}, TypeError, ("checkpoint", "widebnn.Checkpoint", "'runs'")),
            ({"local": True, "model": nnx.Linear(3, 2, rngs=RNGS)}, TypeError, ("local", "kernel")),
        ]
    ),
    *(
        Row("vi.network", lambda model=model: wb.vi.network(model, X, KEY), *rest)
        for model, *rest in [
            (3, TypeError, ("model", "nnx.Module", "int")),
            (Images(), ValueError, ("model", "(4, d_out)", "(4, 3, 1)")),
            (nn.BatchNorm(use_running_average=False), ValueError, ("BatchNorm",)),
        ]
    ),
    *(
        Row("vi.predict", lambda x=x, o=o: wb.vi.predict(KEY, fitted(), x, **o), ValueError, words)
        for x, o, words in [
            (X, {"num_samples": 0}, ("num_samples", "at least 1", "0")),
            (X, {"block_size": 0}, ("block_size", "at least 1", "0")),
            (X[:0], {}, ("x", "at least one row", "(0, 3)")),
            (X_NAN, {}, ("x", "finite")),
        ]
    ),
    *(
        Row(f"vi.{name}", lambda f=f, o=o: f(KEY, a_posterior(), sum_of_weights, **o), ValueError, words)
        for name, f in [("elbo", wb.vi.elbo), ("expectation", wb.vi.expectation)]
        for o, words in [
            ({"num_samples": 0}, ("num_samples", "at least 1", "0")),
            ({"num_samples": 1, "antithetic": True}, ("num_samples", "even", "1")),
        ]
    ),
    Row(
        "vi.elbo",
        lambda: wb.vi.elbo(KEY, a_posterior(), sum_of_weights, temperature=-0.5),
        ValueError,
        ("temperature", "0 or above", "-0.5"),
    ),
    *(
        Row(f"vi.{name}", lambda f=f, v=v: f(a_posterior(), v), ValueError, words)
        for name, f in [("kl_divergence", wb.vi.kl_divergence), ("kl_per_leaf", wb.vi.kl_per_leaf)]
        for v, words in [
            (-0.2, ("prior_variance", "above 0", "-0.2")),
            ({"w": 0.2, "b": 0.2}, ("prior_variance", "each leaf")),
            ({"w": math.inf}, ("prior_variance", "above 0", "inf")),
        ]
    ),
    Row("vi.mean_field", lambda: wb.vi.mean_field(jnp.ones(2), -1.0), ValueError, ("std", "above 0", "-1.0")),
    Row("vi.gaussian", lambda: wb.vi.gaussian(0.0), ValueError, ("noise_std", "above 0", "0.0")),
    Row(
        "vi.cross_entropy",
        lambda: wb.vi.cross_entropy(X, jnp.zeros(3, int)),
        ValueError,
        ("labels", "(4,)", "(3,)"),
    ),
    Row("vi.square", lambda: wb.vi.square(X, Y), ValueError, ("y", "(4, 3)", "(4, 2)")),
    *(
        Row("vi.cooling", lambda args=args: wb.vi.cooling(*args), ValueError, words)
        for args, words in [
            ((-1.0, 10, 10), ("tau", "0 or above", "-1.0")),
            ((1.0, 0, 10), ("num_observations", "at least 1", "0")),
            ((1.0, 10, 0), ("num_neurons", "at least 1", "0")),
        ]
    ),
    *(
        Row(f"vi.{name}", lambda f=f: f(), ValueError, words)
        for name, f, words in [
            (
                "relu_moments",
                lambda: wb.vi.relu_moments(jnp.ones(2), jnp.ones(3)),
                ("variance", "(2,)", "(3,)"),
            ),
            (
                "output_moments",
                lambda: wb.vi.output_moments(a_posterior(), X),
                ("posterior", "TwoLayer", "hidden"),
            ),
            (
                "output_moments",
                lambda: wb.vi.output_moments(a_two_layer_posterior(), X[:, :2]),
                ("x", "(n, 3)", "(4, 2)"),
            ),
            (
                "output_moments",
                lambda: wb.vi.output_moments(a_two_layer_posterior(), X, scaling="N"),
                ("scaling", "'mean-field', 'ntk'", "'N'"),
            ),
            (
                "square_elbo",
                lambda: wb.vi.square_elbo(a_two_layer_posterior(), X, X),
                ("y", "(4, 2)", "(4, 3)"),
            ),
            (
                "square_elbo",
                lambda: wb.vi.square_elbo(a_two_layer_posterior(), X, Y, temperature=-1.0),
                ("temperature", "0 or above", "-1.0"),
            ),
        ]
    ),
    Row("vi.kl_weights", lambda: wb.vi.kl_weights(0), ValueError, ("num_batches", "at least 1", "0")),
    Row(
        "vi.kl_weights",
        lambda: wb.vi.kl_weights(3, "linear"),
        ValueError,
        ("kind", "'geometric'", "'linear'"),
    ),
    Row(
        "vi.Undrawn",
        lambda: a_posterior()._replace(mean={"w": X}, rho={"w": X}).postpone(KEY)["w"][0],
        TypeError,
        ("not drawn", "0"),
    ),
    *(
        Row(f"vi.{name}", lambda f=f: f(), ValueError, words)
        for name, f, words in [
            ("Linear", lambda: wb.vi.Linear(0, 2, rngs=RNGS), ("in_features", "at least 1", "0")),
            ("Linear", lambda: wb.vi.Linear(2, -1, rngs=RNGS), ("out_features", "at least 1", "-1")),
            ("Conv", lambda: wb.vi.Conv(0, 2, rngs=RNGS), ("in_channels", "at least 1", "0")),
            ("Conv", lambda: wb.vi.Conv(2, 0, rngs=RNGS), ("out_channels", "at least 1", "0")),
            ("Conv", lambda: wb.vi.Conv(2, 2, 0, rngs=RNGS), ("kernel_size", "at least 1", "0")),
            ("Conv", lambda: wb.vi.Conv(2, 2, stride=0, rngs=RNGS), ("stride", "at least 1", "0")),
            ("TwoLayer", lambda: wb.vi.TwoLayer(2, 0, 1, rngs=RNGS), ("width", "at least 1", "0")),
            (
                "TwoLayer",
                lambda: wb.vi.TwoLayer(2, 2, 1, scaling="N", rngs=RNGS),
                ("scaling", "'mean-field', 'ntk'", "'N'"),
            ),
            (
                "ConvTwoLayer",
                lambda: wb.vi.ConvTwoLayer((4, 0, 3), 2, 1, rngs=RNGS),
                ("image_shape", "at least 1", "0"),
            ),
            (
                "ConvTwoLayer",
                lambda: wb.vi.ConvTwoLayer((4, 4, 3), 2, 1, scaling="N", rngs=RNGS),
                ("scaling", "'N'"),
            ),
            (
                "ResNet20",
                lambda: wb.vi.ResNet20(norm="layer", rngs=RNGS),
                ("norm", "'batch'", "'layer'"),
            ),
            ("ResNet20", lambda: wb.vi.ResNet20(0, rngs=RNGS), ("in_channels", "at least 1", "0")),
            ("VGG", lambda: wb.vi.VGG(12, rngs=RNGS), ("depth", "11, 13, 16", "12")),
            ("VGG", lambda: wb.vi.VGG(11, scaling="N", rngs=RNGS), ("scaling", "'N'")),
        ]
    ),
    # data
    *(
        Row("data.flip_and_crop", lambda args=args: wb.data.flip_and_crop(KEY, *args), ValueError, words)
        for args, words in [
            ((X,), ("images", "(n, height, width, channels)", "(4, 3)")),
            ((jnp.ones((1, 2, 2, 1)), -1), ("padding", "at least 0", "-1")),
        ]
    ),
    *(
        Row(f"data.{name}", lambda f=f, args=args: f(*args), ValueError, words)
        for name, f in [
            ("mnist", wb.data.mnist),
            ("fashion_mnist", wb.data.fashion_mnist),
            ("svhn", wb.data.svhn),
        ]
        for args, words in [
            ((-1, 10), ("num_train", "at least 0", "-1")),
            ((1, 0), ("num_test", "at least 1", "0")),
        ]
    ),
    Row("data.boston", lambda: wb.data.boston(0, 10), ValueError, ("num_train", "at least 1", "0")),
    # sweeps
    *(
        Row("sweep.sweep", call, *rest)
        for call, *rest in [
            (lambda: sweep(function=3), TypeError, ("function", "return rows", "3")),
            (lambda: sweep(configs=[3]), TypeError, ("config", "dataclass", "3")),
            (lambda: sweep(executor=4), TypeError, ("executor", "concurrent.futures.Executor", "4")),
            (lambda: sweep(configs=2 * OVER_MAPS), ValueError, ("configs", "OverMaps(")),
            (
                lambda: sweep(function=(_ for _ in ()).__next__, executor=futures.ThreadPoolExecutor(1)),
                TypeError,
                ("function", "workers can import", "generator"),
            ),
            (lambda: sweep(folder=__file__), NotADirectoryError, ("folder", "test_bad_inputs.py")),
            (lambda: sweep(folder=Path(__file__).parent), ValueError, ("folder", "tests holds", "no sweep")),
        ]
    ),
    Row("sweep.place", lambda: sweeps.place("results", 3), TypeError, ("config", "dataclass", "3")),
    Row(
        "experiments.series", lambda: experiments.series([], "pCN", 0.1), ValueError, ("rows", "'pCN'", "0.1")
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{ROWS.index(row)}-{row.of}")
def test_error_is_clear(row, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users meet our errors, and alone
    with pytest.raises(row.error) as caught:
        row.call()
    assert all(word in str(caught.value) for word in row.words), f"{caught.value} lacks one of {row.words}"
    assert not list(tmp_path.iterdir()), "something was written before the error"


def test_activation_without_a_closed_form_is_refused(monkeypatch):
    monkeypatch.setitem(wb.models.ACTIVATIONS, "tanh", jnp.tanh)
    network = bnn(features=fcn(activation="tanh"))
    for make in (wb.nngp.nngp_kernel, wb.nngp.ntk_kernel):
        with pytest.raises(ValueError, match="activation must be one of 'erf', 'gelu', 'relu'; got 'tanh'"):
            make(network)


def test_unknown_scale_is_refused(monkeypatch):
    monkeypatch.setenv("WIDEBNN_SCALE", "huge")
    for call in (wb.current_scale, lambda: wb.at_scale(smoke=1)):
        with pytest.raises(ValueError, match="WIDEBNN_SCALE must be one of smoke, .*; got 'huge'"):
            call()


def test_missing_data_folder_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("WIDEBNN_DATA", str(tmp_path / "absent"))
    with pytest.raises(NotADirectoryError, match="WIDEBNN_DATA must be a folder.*absent"):
        wb.data.cifar10()


def only_holds_values(thing):
    """Records, protocols, aliases of types and functions without arguments have no input to check."""
    if typing.get_origin(thing) is not None:
        return True
    if isinstance(thing, type):
        is_record = issubclass(thing, tuple) or dataclasses.is_dataclass(thing)
        return (is_record and not hasattr(thing, "__post_init__")) or getattr(thing, "_is_protocol", False)
    return not inspect.signature(thing).parameters


def test_every_public_function_has_a_row():
    covered = [getattr(MODULES[module], name) for module, name in (row.of.split(".") for row in ROWS)]
    public = {
        f"{where}.{name}": getattr(module, name)
        for where, module in MODULES.items()
        for name in module.__all__
    }
    missing = [
        name
        for name, thing in public.items()
        if callable(thing) and not only_holds_values(thing) and not any(thing is other for other in covered)
    ]
    assert not missing
