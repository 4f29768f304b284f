"""Bad inputs of networks, targets, the limit, samplers, the driver, variational inference and estimators."""

import datetime
import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
import polars
import scipy.sparse
from flax import nnx

import widebnn as wb
from widebnn.targets import LogNormal, scaled

from ..exact.likelihoods import Poisson
from .rows import KEY, RNGS, X, Y, bnn, fcn, flat, kw, position, refused, target, tuned

MODELS = [
    *refused("models.Dense", (3, 4, kw(scale=1, weight_std=1.0, rngs=RNGS), "weight_std…left out…scale")),
    *refused("models.WideResNet20", (kw(channels=(4, 4), rngs=RNGS), "channels…three…(4, 4)")),
    *refused(
        "models.FCN",
        (3, 4, -1, kw(rngs=RNGS), "depth…at least 0…-1"),
        (3, (4, 5), 3, kw(rngs=RNGS), "depth…2…got 3"),
        (3, 4, kw(rngs=0), TypeError, "rngs…nnx.Rngs(0)…got 0"),
        (lambda: fcn(weight_std=jnp.array([1.0, -1.0, 1.0])), "weight_std…above 0…-1.0"),
        (lambda: fcn(weight_std=jnp.ones(2)), "weight_std…shape (3,); got the shape (2,)"),
        (lambda: fcn(weight_std=jnp.ones(3), depth=2), "weight_std…sequence…got an array for 2 layers"),
    ),
    *refused(
        "models.BNN",
        (lambda: bnn(noise_std=jnp.ones((4, 2))), "noise_std…one axis; got the shape (4, 2)"),
        (lambda: bnn(features=nn.Dense(3)), TypeError, "features…Linen module Dense…from_linen(module, x)"),
    ),
    *refused("models.Embedding", (3, {"w": X}, TypeError, "apply…function…3")),
    *refused("models.from_nnx", (nnx.Dropout(0.5, rngs=RNGS), "features…Dropout…the module itself")),
    *refused("models.from_function", (jnp.dot, {"w": X, "n": 3}, TypeError, "parameters…n is 3")),
    *refused(
        "models.from_linen",
        (nn.BatchNorm(use_running_average=False), X.astype(jnp.float32), "features…batch_stats…BatchNorm"),
    ),
]


class TwiceFCN(wb.models.FCN):
    """Computes something else than its parent."""

    def __call__(self, x):
        return 2 * super().__call__(x)


def gaussian_process(**options):
    options = {"kernel": wb.nngp.nngp_kernel(bnn()), "x": jnp.eye(4, 3), "y": Y, "noise_std": 0.1} | options
    return wb.nngp.gaussian_process(*options.values())


def evidence_slope(**options):
    return wb.nngp.evidence_slope(**{"bnn": bnn(), "x": X, "y": Y} | options)


LIMIT = [
    *refused(
        "nngp.evidence_slope",
        (kw(bnn=bnn(features=fcn(depth=2))), "bnn…one hidden layer…2 of them"),
        call=evidence_slope,
    ),
    *refused(
        "nngp.nngp_kernel",
        (lambda: wb.nngp.nngp_kernel(bnn(features=TwiceFCN(3, 4, rngs=RNGS))), "bnn…FCN…TwiceFCN"),
        (lambda: wb.nngp.nngp_kernel(bnn())(X, X[:, :2]), "x2…(n, 3)…(4, 2)"),
    ),
    *refused("nngp.stax_kernel", ((1, 2, 3), TypeError, "kernel_fn…(1, 2, 3)")),
    *refused(
        "nngp.gaussian_process",
        (kw(kernel=jnp.eye(4)), TypeError, "kernel…a function of (x1, x2=None)"),
        (kw(kernel=lambda x1, x2=None: jnp.full((4, 4), jnp.nan)), "kernel…finite"),
        (kw(x=X, noise_std=0.0), "noise_std…larger…0.0…singular in float"),
        call=gaussian_process,
    ),
    *refused("nngp.GaussianProcess", (lambda: gaussian_process().mean(X[:, :2]), "x…(m, 3,)…(4, 2)")),
]


def classifier(labels, **options):
    return wb.targets.categorical(bnn(), X, np.asarray(labels), **options)


NETWORK, LINEAR = bnn(), wb.targets.linear(X, Y, 0.1)
marginal, rotated, whitened = wb.targets.marginal, wb.targets.rotated, wb.targets.whitened
AT_INPUTS = [name for name in wb.collectors.__all__ if name.startswith(("predictive", "output", "embedding"))]
DAYS = np.array(["2026-11-28", "NaT"] * 2, "M8[ns]")
WITH_DAYS = {"a": [0.0, 1.0, 2.0, 3.0], "day": [datetime.date(2026, 11, 28)] * 4}

TARGETS = [
    *[
        row
        for name in AT_INPUTS
        for row in refused(
            f"collectors.{name}",
            (lambda name=name: getattr(wb, name)(X)(LINEAR, X), TypeError, f"target…{name}; Linear has none"),
        )
    ],
    *[
        row
        for name in ("potential", "log_likelihood", "left_out_log_likelihood")
        for row in refused(f"collectors.{name}", (None, X, TypeError, "target…NoneType has none"))
    ],
    *refused("collectors.predictive_mean", (lambda: wb.predictive_mean(X[:0])(target(), None), "x…m ≥ 1")),
    *refused("collectors.weights", (LINEAR, X, TypeError, "target…to_parameters…Linear")),
    *refused(
        "targets.marginal",
        (X[:, :2], Y, "x…(4, 2)…does not fit the network"),
        (X, Y[:, :1], "y…(4, 2)…(4, 1)"),
        (None, Y, TypeError, "x must hold real numbers…None"),
        ([["a", None]], Y, TypeError, "x…real numbers…'a' in object"),
        ([[1.0], [1.0, 2.0]], Y, "x must be an array…list of uneven rows"),
        (scipy.sparse.eye(4), Y, TypeError, "x…real numbers…sparse"),
        (np.ma.masked_equal(X, 1), Y, "x…no masked entries"),
        (np.asarray(X) * 1j, Y, TypeError, "x…real numbers…complex"),
        (polars.LazyFrame({"a": [1.0]}), Y, TypeError, "x…real numbers…"),
        ([{"a": 1.0}, {"a": 2.0}], Y, TypeError, "x…real numbers…{'a': 1.0}"),
        *[
            (days, Y, TypeError, "x…real numbers…dates or durations")
            for days in (DAYS, DAYS - DAYS[0], [[DAYS[0], 1.0]], pd.DataFrame(WITH_DAYS | {"day": DAYS}))
        ],
        (polars.DataFrame(WITH_DAYS), Y, TypeError, "x…real numbers…dates"),
        (pd.DataFrame(WITH_DAYS), Y, TypeError, "x…real numbers…dates or durations"),
        (X, Y, kw(block_size=2, space="data"), "block_size…None…'data'…2"),
        (lambda: marginal(bnn(noise_std=jnp.ones(1)), X, Y), "noise_std…2, or one per observation, 4; got 1"),
        (lambda: marginal(bnn(features=fcn(depth=0)), X, Y), "bnn…below the readout…targets.standard"),
        call=functools.partial(marginal, NETWORK),
    ),
    *refused("targets.jacobian", (NETWORK, X, Y, kw(num_probes=4), TypeError, "rng_key is required")),
    *refused(
        "targets.categorical",
        ((0, 1, 2, 0), "labels…integers (4,) from 0 to 1…values 0, 1, 2"),
        (("a", "b", "a", "b"), "labels…integers…<U1"),
        ((0, 1, 1, 0), kw(reg=0.1), "reg…unless map is 'gaussian'…reg=0.1 and map='laplace'"),
        call=classifier,
    ),
    *refused(
        "targets.non_gaussian",
        (X, Y, Poisson, TypeError, "likelihood…targets.Likelihood…Poisson"),
        (X, -Y, Poisson(), "y…finite log probability under Poisson…[-1. -1.] in row 0 is -inf"),
        (X, Y[:, :1], Poisson(), kw(map="gaussian"), "y…(4, 2) for the map 'gaussian'…(4, 1)"),
        call=functools.partial(wb.targets.non_gaussian, NETWORK),
    ),
    *refused(
        "targets.rotated",
        (lambda: rotated(rotated(marginal(bnn(), jnp.eye(4, 3), Y))), TypeError, "target…not yet rotated"),
        (lambda: rotated(target(), "kernel"), "kernel…path…'layers', 0…got kernel"),
        (lambda: rotated(marginal(bnn(), 0 * X, Y)), "target…zeros"),
    ),
    *refused("targets.whitened", (lambda: whitened(marginal(bnn(), X, Y, "feature", 2)), "block_size=None")),
    *refused("targets.Target", (TypeError, "Target…abstract…potential")),
    *refused("targets.from_potential", (lambda u: u, jnp.zeros(3), "potential…a real scalar…3")),
]

NOISE, SLICE = LogNormal(0.3, 1.0), wb.samplers.elliptical_slice()


def whole():
    return scaled(target(), noise_std=NOISE)


def of(shape):
    return LogNormal(np.ones(shape), 1.0)


XS, YS = np.linspace(-1, 1, 12)[:, None], np.linspace(0, 1, 12)


def regressed(x=XS, y=YS, **options):
    return wb.BNNRegressor(**{"width": 4, "num_samples": 8, "burn_in": 1} | options).fit(x, y)


def classified(x=XS, y=YS > 0.5, **options):
    return wb.BNNClassifier(**{"width": 4, "num_samples": 8, "burn_in": 1} | options).fit(x, y)


SCALES = [
    *refused("collectors.scale", (lambda: wb.collectors.scale("b")(whole(), None), "name…'noise_std'…'b'")),
    *refused(
        "targets.scaled",
        ("priors…at least one scale…got none",),
        (kw(noise_std=0.3), TypeError, "noise_std…LogNormal(median, spread)…0.3"),
        (kw(weight_stt=NOISE), "priors…noise_std, readout_std, weight_std; got weight_stt"),
        (kw(weight_std=of(2)), "weight_std…each of 3 inputs; got…(2,)"),
        (kw(noise_std=of(4)), "noise_std.median must be a number"),
        (lambda: scaled(rotated(target()), weight_std=of(3)), "weight_std.median…where inputs are rotated"),
        (lambda: scaled(classifier([0, 1, 1, 0]), noise_std=NOISE), "noise_std must have no prior"),
        call=functools.partial(scaled, target()),
    ),
    *refused(
        "widebnn.BNNRegressor",
        (kw(scales={"sigma": 1.0}), "scales…'noise_std'…'sigma'"),
        (kw(scales={"noise_std": "0.1"}), TypeError, "scales['noise_std']…above 0…'0.1'"),
        (kw(scales={"weight_std": np.ones(2)}), "scales['weight_std']…a number or…(1,)…(2,)"),
        (kw(scales={"noise_std": of(2)}), "scales['noise_std']…one median"),
        (kw(x=np.resize(DAYS, (12, 1))), TypeError, "X…real numbers…dates or durations"),
        (kw(y=np.resize(DAYS, 12)), TypeError, "y…real numbers…dates or durations"),
        (kw(x=np.where(XS > 0, XS, None)), "X contains NaN"),
        (kw(x=np.ma.masked_less(XS, 0)), "X…no masked entries"),
        (kw(y=[None, *YS[1:]]), "y must be finite"),
        (kw(x=[["red"], ["blue"]] * 6), "X and y must hold real numbers…'red'…categories"),
        (kw(x=[{"a": 1.0}] * 12), TypeError, "X…real numbers…{'a': 1.0}"),
        call=regressed,
    ),
    *refused(
        "widebnn.BNNClassifier",
        (kw(y=YS), "continuous"),
        (kw(y=["a", None] * 6), "y…no missing entries…6 of 12"),
        call=classified,
    ),
]


def sample(**options):
    flat_target = wb.targets.from_potential(flat, jnp.zeros(2))
    options = {"sampler": wb.samplers.pcn(0.5), "target": flat_target, "num_samples": 2} | options
    options = {"burn_in": 0, "num_chains": 1} | options
    sampler, problem = options.pop("sampler"), options.pop("target")
    return wb.sample(options.pop("rng_key", KEY), problem, sampler, progress=False, **options)


def mesh(**axes):
    """One on paper, of more devices than there are."""
    return jax.sharding.Mesh(np.resize(jax.devices(), tuple(axes.values())), tuple(axes))


NOWHERE = wb.targets.from_potential(lambda u: jnp.log(-jnp.sum(u**2)), jnp.zeros(2))
COMPLEX = {"u": lambda _, u: jax.lax.complex(u, u)}


def smc(**options):
    options = {"target": wb.targets.from_potential(flat, jnp.zeros(2)), "rng_key": KEY} | options
    return wb.smc(options.pop("rng_key"), options.pop("target"), progress=False, **options)


SAMPLING = [
    *refused("samplers.pcn", (1.1, "step_size…(0, 1]…1.1")),
    *refused("samplers.from_blackjax", (0.1, TypeError, "make…a function…0.1")),
    *refused("samplers.elliptical_slice", (lambda: SLICE.bind(flat), TypeError, "target…function")),
    *refused(
        "samplers.langevin",
        (0.1, 0.5, kw(num_flat=1), "num_flat…0 or at least 2…1"),
        (lambda: wb.samplers.langevin(0.1, 0.5).init(target(), position()), TypeError, "rng_key…momentum"),
    ),
    *refused("samplers.accept", (KEY, jnp.zeros(2), jnp.zeros(2), jnp.ones(2), "log_ratio…one number…(2,)")),
    *refused("samplers.function_space_hmc", (1.6, "step_size…(0, π/2]…1.6")),
    *refused("samplers.unitwise", (lambda: wb.samplers.unitwise(3).bind(target()), "block_size…divide…4")),
    *refused(
        "samplers.tuned",
        (kw(sampler=SLICE), TypeError, "sampler…a step size…elliptical_slice"),
        (kw(sampler=wb.samplers.rwm(2.0)), "step_size…max_step_size=1.0…2.0"),
        call=tuned,
    ),
    *refused(
        "widebnn.smc",
        (kw(sampler=wb.samplers.unitwise()), TypeError, "target…units…_FromPotential"),
        (kw(temperatures=[0, 1]), "temperatures…increase from above 0 to 1"),
        (kw(target=NOWHERE), "potential…finite at draws from N(0, I)…at none"),
        call=smc,
    ),
    *refused("widebnn.Particles", (lambda: smc(num_particles=2).log_evidence_interval(1.0), "level…(0, 1)")),
    *refused("automatic.auto", ("pcn", TypeError, "target…widebnn.targets…str")),
    *refused(
        "driver.sample",
        (kw(predict_at=X), TypeError, "target…predictive_mean…has none"),
        (kw(rng_key=jax.random.split(KEY)), "rng_key…one key…(2,)"),
        (kw(stream=flat), TypeError, "stream…a dict from names to functions…<function"),
        (kw(until=wb.Until(), collect=COMPLEX), TypeError, "until…real numbers…complex"),
        (kw(stream=COMPLEX), TypeError, "stream…real numbers…complex"),
        (kw(sampler=tuned(), burn_in=0), "burn_in…at least 1…tuned…got 0"),
        (kw(initial=jnp.zeros((2, 3)), num_chains=2), "initial…(2, 2)…(2, 3)"),
        (kw(collect={"u": lambda _, u: (u, u)}), TypeError, "collect['u']…one array"),
        (kw(mesh=mesh(chain=2), num_chains=3), "mesh…'chain' of 2…chains…3"),
        call=sample,
    ),
    *refused(
        "driver.run_chains",
        (KEY, target(), wb.samplers.pcn(0.5), kw(num_samples=2, collect={"u": flat}), TypeError, "of (u)"),
    ),
    *refused(
        "driver.Draws",
        (lambda: sample(num_positions=0).predict(X), "predict…positions"),
        (lambda: sample(collect={}).to_datatree(), "to_datatree…collect={}"),
        (lambda: sample()["prediction"], KeyError, "'prediction'…not collected…['potential']"),
    ),
    *refused(
        "stopping.Until",
        (400, 0.5, "rhat…above"),
        (kw(names="potential"), TypeError, "names…['potential']…'potential'"),
    ),
]


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


def a_posterior():
    return wb.vi.mean_field({"w": jnp.ones(2)}, 0.1)


def sum_of_weights(weights):
    return weights["w"].sum()


VI = [
    *refused(
        "vi.fit",
        (kw(batch_size=5), "batch_size…at most 4…5"),
        (kw(prior_variance={"a": 1.0}), "prior_variance…each leaf…'a'"),
        (kw(y=jnp.array([0, 1, 2, 0]), loss=wb.vi.cross_entropy), "y…labels 0 to 1…0 to 2"),
        (kw(loss=lambda f, y: jnp.sum(f - y)), "loss…each of 2…()"),
        call=fit,
    ),
    *refused("vi.predict", (lambda: wb.vi.predict(KEY, fitted(), X[:, :1]), "x…(m, 3,)…(4, 1)")),
    *refused("vi.kl_divergence", (a_posterior(), {"w": 0.2, "b": 0.2}, "prior_variance…each leaf")),
    *refused("vi.cross_entropy", (X, jnp.array([0, 1, 2, 3]), "labels…0 to 2…0 to 3")),
    *refused("vi.square", (X, Y, "y…(4, 3)…(4, 2)")),
    *refused("vi.relu_moments", (jnp.ones(2), jnp.ones(3), "variance…(2,)…(3,)")),
    *refused("vi.output_moments", (a_posterior(), X, "posterior…TwoLayer…hidden")),
    *refused("vi.square_elbo", (a_posterior(), X, X, "posterior…TwoLayer")),
]

ROWS = MODELS + LIMIT + TARGETS + SCALES + SAMPLING + VI
