"""Bad inputs of targets."""

import jax.numpy as jnp
import numpy as np
import polars
import scipy.sparse

import widebnn as wb

from ..exact.likelihoods import Poisson
from .rows import KEY, X, Y, alike, bnn, fcn, position, refused, target


def classifier(x=X, labels=(0, 1, 1, 0), **options):
    return wb.targets.categorical(options.pop("bnn", bnn()), x, np.asarray(labels), **options)


def of_lists():
    """A target of a network whose parameters stand in lists."""
    parameters = [[jnp.ones((3, 4))], [jnp.ones((4, 4))]]
    features = wb.models.from_function(lambda p, x: jnp.tanh(x @ p[0][0]) @ p[1][0] / 2, parameters)
    return wb.targets.marginal(bnn(features=features), X, Y)


class Transposed(wb.targets.Likelihood):
    def log_prob(self, y, f):
        return (y - f).T


NETWORK, LINEAR = bnn(), wb.targets.linear(X, Y, 0.1)
marginal, rotated, whitened = wb.targets.marginal, wb.targets.rotated, wb.targets.whitened
PER_ROW = marginal(bnn(noise_std=jnp.ones(4)), X, Y)

AT_INPUTS = [name for name in wb.collectors.__all__ if name.startswith(("predictive", "output", "embedding"))]

ROWS = [
    *[
        row
        for name in AT_INPUTS
        for row in refused(
            f"collectors.{name}",
            (lambda name=name: getattr(wb, name)(X[:, :2])(target(), None), "x…(m, 3,)…(4, 2)"),
            (lambda name=name: getattr(wb, name)(X)(LINEAR, X), TypeError, f"target…{name}; Linear has none"),
        )
    ],
    *[
        row
        for name in ("potential", "log_likelihood", "left_out_log_likelihood")
        for row in refused(f"collectors.{name}", (None, X, TypeError, "target…NoneType has none"))
    ],
    *refused("collectors.weights", (LINEAR, X, TypeError, "target…to_parameters…Linear")),
    *refused(
        "targets.marginal",
        (X[:, :2], Y, {}, "x…(4, 2)…does not fit the network"),
        *[
            (bad, Y, {}, *wanted)
            for bad, *wanted in [
                (None, TypeError, "x must hold real numbers…None"),
                (np.array([["a", "b"]]), TypeError, "x…real numbers…'a' in <U1 of shape (1, 2)"),
                ([["a", None]], TypeError, "x…real numbers…'a' in object"),
                ([[1.0, None]], TypeError, "x…real numbers…None in object"),
                (np.array(["2026-11-22"], "M8[D]"), TypeError, "x…real numbers…datetime64"),
                (np.array([1, 2], "m8[s]"), TypeError, "x…real numbers…timedelta64"),
                ([[1.0], [1.0, 2.0]], "x must be an array…list of uneven rows"),
                (scipy.sparse.eye(4), TypeError, "x must be dense…x.toarray()"),
                (np.ma.masked_equal(X, 1), "x…no masked entries…12"),
                (np.asarray(X) * 1j, TypeError, "x…real numbers…complex"),
                (polars.LazyFrame({"a": [1.0]}), TypeError, "x must be collected…LazyFrame…x.collect()"),
                ([{"a": 1.0}, {"a": 2.0}], TypeError, "x…dicts…pandas.DataFrame(x)"),
                (np.zeros(2, [("a", float), ("b", float)]), TypeError, "x…plain columns…structured…a, b"),
            ]
        ],
        (X, Y, {"block_size": 2, "space": "data"}, "block_size…None…'data'…2"),
        call=lambda x, y, o: wb.targets.marginal(NETWORK, x, y, **o),
    ),
    *alike(
        "targets",
        ("standard", "repriorised", "jacobian", "student_t"),
        (NETWORK, X[:, :2], Y, "x…(4, 2)…does not fit the network"),
        (NETWORK, X, Y[:, :1], "y…(4, 2)…(4, 1)"),
    ),
    *refused(
        "targets.jacobian",
        ({"num_probes": 4}, TypeError, "rng_key is required…the probes"),
        call=lambda o: wb.targets.jacobian(NETWORK, X, Y, **o),
    ),
    *refused(
        "targets.categorical",
        *[
            (lambda v=v: classifier(labels=v), f"labels must be…{wanted}")
            for v, wanted in [
                ((0, 1, 2, 0), "integers (4,) from 0 to 1…values 0, 1, 2"),
                ((0.0, 1.0, 1.0, 0.0), "integers…float64"),
                ((0, 1, 1), "(4,)…shape (3,)"),
                (np.full((4, 2), 0.5), "one-hot rows (4, 2)…float64 of shape (4, 2)…0.5"),
                (np.zeros((4, 2)), "one-hot…values 0.0"),
                (("a", "b", "a", "b"), "integers…<U1"),
            ]
        ],
        (lambda: classifier(reg=0.1), "reg…unless map is 'gaussian'…reg=0.1 and map='laplace'"),
    ),
    *refused(
        "targets.binary",
        (X, [0, 1, 0.5, 0], {}, "y must hold zeros and ones; got 0.5"),
        (X, [0, 1, 1], {}, "y…(4, 1)…(3, 1)"),
        call=lambda x, y, o: wb.targets.binary(wb.BNN(fcn(), 1, 0.5), x, y, **o),
    ),
    *refused(
        "targets.non_gaussian",
        (X, Y, Poisson, {}, TypeError, "likelihood…targets.Likelihood…Poisson"),
        (X, -Y, Poisson(), {}, "y…finite log probability under Poisson…[-1. -1.] in row 0 is -inf"),
        (X, Y[:3], Poisson(), {}, "y…one row for each of the 4 inputs…(3, 2)"),
        (X, Y[:, :1], Poisson(), {"map": "gaussian"}, "y…(4, 2) for the map 'gaussian'…(4, 1)"),
        (X, Y, Transposed(), {}, "log_prob must return (4,) or (4, 2)…(2, 4)"),
        call=lambda x, y, likelihood, o: wb.targets.non_gaussian(NETWORK, x, y, likelihood, **o),
    ),
    *refused(
        "targets.student_t",
        ({"reg": 0.1}, "reg…unless map is 'gaussian'…reg=0.1 and map='laplace'"),
        call=lambda o: wb.targets.student_t(NETWORK, X, Y, **o),
    ),
    *refused(
        "targets.marginal",
        (lambda: marginal(bnn(noise_std=jnp.ones(1)), X, Y), "noise_std…2, or one per observation, 4; got 1"),
        (lambda: wb.predictive_draw(X)(PER_ROW, PER_ROW.draw_prior(KEY), KEY), "noise_std…of new inputs"),
        (lambda: marginal(bnn(features=fcn(depth=0)), X, Y), "bnn…below the readout…targets.standard"),
    ),
    *refused(
        "targets.rotated",
        (lambda: wb.targets.rotated(target("jacobian")), TypeError, "target…with an inverse…Jacobian"),
        (lambda: rotated(rotated(marginal(bnn(), jnp.eye(4, 3), Y))), TypeError, "target…not yet rotated"),
        (lambda: wb.targets.rotated(target(), ("layers", 5, "kernel")), "kernel…(3, d_1)…'layers', 0…5"),
        (lambda: wb.targets.rotated(target(), "kernel"), "kernel…path…'layers', 0…got kernel"),
        (lambda: wb.targets.rotated(of_lists()), "kernel…path…(3, d_1)…[(0, 0)]; got None…named 'kernel'"),
        (lambda: wb.targets.rotated(wb.targets.marginal(bnn(), 0 * X, Y)), "target…zeros"),
    ),
    *refused(
        "targets.whitened",
        (lambda: wb.targets.whitened(target("jacobian")), TypeError, "target…with an inverse…Jacobian"),
        (lambda: whitened(whitened(marginal(bnn(), X, Y))), TypeError, "target…not yet whitened"),
        (lambda: whitened(marginal(bnn(), X, Y, "feature", 2)), "target must have block_size=None…2"),
    ),
    *refused(
        "targets.NetworkTarget",
        (lambda: wb.predictive_mean(X[:0])(target(), None), "x…m ≥ 1…(0, 3)"),
        (lambda: wb.predictive_draw(X)(target("standard"), position("standard")), TypeError, "rng_key…noise"),
    ),
    *refused("targets.Target", (TypeError, "Target…abstract…potential")),
    *refused(
        "targets.from_potential",
        (lambda u: u, jnp.zeros(3), "potential…a real scalar…3"),
        (lambda u: jnp.sum(u > 0), jnp.zeros(3), "potential…a real scalar…int"),
    ),
]
