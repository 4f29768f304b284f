"""Bugs planted in variational inference: what checks them must see every one."""

import importlib
from unittest import mock

from flax import nnx

import widebnn as wb

from ..exact.planted import caught, passed
from ..exact.variational import assert_optimum, assert_scaling

FIT = importlib.import_module(wb.vi.fit.__module__)


def fit_with(name, wrong):
    """The fit of a linear model with `name` of its module replaced by `wrong(right)`."""

    def run():
        with mock.patch.object(FIT, name, wrong(getattr(FIT, name))):
            assert_optimum()

    return run


def with_std_for_rho(right):
    return lambda posterior, variance: right(posterior._replace(rho=posterior.std), variance)


def scaled_by(factor):
    module = wb.vi.TwoLayer(3, 5, 2, rngs=nnx.Rngs(0))
    module.scale *= factor
    assert_scaling(module)


VARIATIONAL = {
    "KL of every minibatch in full": fit_with(
        "kl_divergence",
        lambda right: lambda q, variance: 3 * right(q, variance),  # of three
    ),
    "σ in place of ρ in the KL": fit_with("kl_divergence", with_std_for_rho),
    "prior's deviation in place of its variance": fit_with(
        "kl_divergence", lambda right: lambda q, variance: right(q, variance**0.5)
    ),
    "readout without 1/N": lambda: scaled_by(5),
}


test_bug_is_caught = caught(("variational", "is not at the optimum|no mean over neurons", VARIATIONAL))

test_right_one_of_the_same_make_passes = passed(
    fit=fit_with("kl_divergence", lambda right: right), scaling=lambda: scaled_by(1)
)
