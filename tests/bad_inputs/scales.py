"""Bad inputs of learned scales, their samplers, and scikit-learn's estimators."""

import datetime

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars

import widebnn as wb
from widebnn.targets import LogNormal, scaled

from .rows import KEY, X, Y, alike, bnn, fcn, flat, kw, refused, target

NOISE = LogNormal(0.3, 1.0)
SLICE = wb.samplers.elliptical_slice()
LIMIT = wb.samplers.Gaussian({"a": jnp.zeros(2)}, jnp.eye(2))


def whole():
    return scaled(target(), noise_std=NOISE)


def deep():
    return wb.targets.marginal(bnn(features=fcn(depth=2)), X, Y)


def of_function():
    features = wb.models.from_function(lambda w, x: jnp.tanh(x @ w), jnp.zeros((3, 4)))
    return wb.targets.standard(wb.BNN(features, 2, 1.0), X, Y)


def of(shape):
    return LogNormal(np.ones(shape), 1.0)


def conditional(found):
    return found.readout_conditional(found.draw_prior(KEY))


def bind(sampler, problem=None):
    return sampler.bind(problem or whole())


XS, YS = np.linspace(-1, 1, 12)[:, None], np.linspace(0, 1, 12)
DAYS = np.array([["2026-11-28"], ["NaT"]] * 6, "M8[ns]")
DATES = [
    DAYS,
    DAYS - DAYS[0],
    pd.DataFrame({"a": YS, "day": DAYS[:, 0]}),
    pd.DataFrame({"a": YS, "month": pd.period_range("2020-01", periods=12, freq="M")}),
    polars.DataFrame({"a": YS, "day": [datetime.date(2026, 11, 28)] * 12}),
]


def regressed(x=XS, y=YS, **options):
    return wb.BNNRegressor(**{"width": 4, "num_samples": 8, "burn_in": 1} | options).fit(x, y)


def classified(x=XS, y=YS > 0.5, **options):
    return wb.BNNClassifier(**{"width": 4, "num_samples": 8, "burn_in": 1} | options).fit(x, y)


ROWS = [
    *refused("collectors.scale", (lambda: wb.collectors.scale("b")(whole(), None), "name…'noise_std'…'b'")),
    *refused(
        "targets.scaled",
        (target(), "priors…at least one scale…got none"),
        (target(), kw(noise_std=0.3), TypeError, "noise_std…LogNormal(median, spread)…0.3"),
        (target(), kw(noise_std=LogNormal(-1.0, 1.0)), "noise_std.median…above 0…-1.0"),
        (flat, kw(noise_std=NOISE), TypeError, "target…of a network's posterior"),
        (target(), kw(weight_stt=NOISE), "priors…noise_std, readout_std, weight_std; got weight_stt"),
        (of_function(), kw(weight_std=NOISE), "priors…noise_std, readout_std; got weight_std"),
        (target(), kw(weight_std=of(2)), "weight_std…each of 3 inputs; got…(2,)"),
        (target(), kw(noise_std=of(4)), "noise_std.median must be a number"),
        (target(), kw(weight_std=of((3, 1))), "weight_std.median…one axis…(3, 1)"),
        (deep(), kw(weight_std=of(3)), "weight_std.median…2 layers…'layers.0.weight_std'"),
        (wb.targets.rotated(target()), kw(weight_std=of(3)), "weight_std.median…where inputs are rotated"),
        (wb.targets.categorical(bnn(), X, [0, 1, 1, 0]), kw(noise_std=NOISE), "noise_std must have no prior"),
        (lambda: conditional(scaled(of_function(), noise_std=NOISE)), TypeError, "target…readout…Standard"),
    ),
    *refused(
        "samplers.conditional",
        (
            lambda: bind(wb.samplers.conditional("layers", SLICE)).init(whole().draw_prior(KEY)),
            "part…'layers'",
        ),
    ),
    *refused(
        "samplers.preconditioned", (LIMIT._replace(factor=jnp.eye(3)), SLICE, "gaussian.factor…(2, 2)…(3, 3)")
    ),
    *alike(
        "samplers",
        ("rescaled", "readout_scales", "with_scales"),
        (target, TypeError, "target…scaled…Marginal"),
        (whole, "target…a scale that multiplies weights…below the readout are []"),
        call=lambda make, problem: make(*[SLICE] * (make.__name__ == "with_scales")).bind(problem()),
    ),
    *refused(
        "widebnn.BNNRegressor",
        (kw(scales={"sigma": 1.0}), "scales…'noise_std'…'sigma'"),
        (kw(scales={"noise_std": -1.0}), "scales['noise_std']…above 0…-1.0"),
        (kw(scales={"noise_std": "0.1"}), TypeError, "scales['noise_std']…above 0…'0.1'"),
        (kw(scales={"noise_std": LogNormal(np.ones(2), 1.0)}), "scales['noise_std']…one median"),
        *[(kw(until=v), TypeError, f"until…widebnn.Until…{v}") for v in (True, 400)],
        *[(kw(x=v), TypeError, "X…real numbers…dates, durations or periods") for v in DATES],
        (kw(x=np.where(XS > 0, XS, None)), "X…no missing entries…6 of 12, such as in column 0…SimpleImputer"),
        (kw(y=[None, pd.NA, *YS[2:]]), "y…no missing entries…2 of 12, such as None"),
        (kw(x=[[np.nan], [1.0]], y=[0.0, 1.0]), "(NaN)…1 of 2"),
        call=regressed,
    ),
    *refused(
        "widebnn.BNNClassifier",
        (kw(scales={"noise_std": 0.1}, likelihood="softmax"), "scales…'weight_std'…'noise_std'"),
        (kw(y=["a"] * 12), "y…two classes…one class, a"),
        (kw(y=YS), "continuous"),
        (kw(y=["a", None] * 6), "y…no missing entries…6 of 12, such as None"),
        (kw(y=pd.array([True, False, pd.NA] * 4)), "y…no missing entries…4 of 12, such as <NA>"),
        (kw(y=[0.0, 1.0, np.nan] * 4), "NaN"),
        call=classified,
    ),
]
