"""Bugs planted in the law of the published pCNL: what checks them must see every one."""

import pytest

import widebnn as wb
from widebnn.targets._marginal import Marginal

from ..exact.networks import problem
from ..exact.planted import caught, passed
from ..exact.published import assert_integrates

pytestmark = pytest.mark.usefixtures("float64")


def at_half_the_noise(target):
    return Marginal(wb.BNN(target.bnn.features, 2, target.bnn.noise_std / 2**0.5), target.x, target.y)


def published(make_potential):
    assert_integrates(problem(out_features=2, bias_std=0.1), make_potential)


PUBLISHED = {
    "taken for the posterior": lambda: published(lambda target: target.potential),
    "likelihood squared, the evidence not divided out": lambda: published(
        lambda target: at_half_the_noise(target).potential
    ),
    "divided by the evidence twice": lambda: published(
        lambda target: lambda u: at_half_the_noise(target).potential(u) - 2 * target.potential(u)
    ),
}


test_bug_is_caught = caught(("published law", "where .* is right", PUBLISHED))

test_right_one_of_the_same_make_passes = passed(
    divided_once=lambda: published(
        lambda target: lambda u: at_half_the_noise(target).potential(u) - target.potential(u)
    )
)
