"""Configurations: what fields must be, and that they are frozen dataclasses."""

import dataclasses
import inspect
from functools import partial
from typing import Annotated

import jaxtyping
import pytest

from widebnn._check import one_of
from widebnn.study import Configuration
from widebnn.study.configuration import Count, Counts, Positive


class Walk(Configuration):
    """Walks in one dimension."""

    law: Annotated[str, partial(one_of, ("normal", "uniform")), "Of a step."] = "normal"
    num_steps: Annotated[Counts, "Of each walk."] = (10, 20)
    spans: Annotated[tuple[Positive, ...], "Of the steps of each walk."] = (1.0, 0.5)
    places: Annotated[tuple[tuple[int, Count], ...], "Where walks are looked at."] = ((1, 1),)
    name: str = "any"

    def check(self):
        """`spans` has an entry for each of `num_steps`."""
        self.one_each("num_steps", "spans")


class LongWalk(Walk):
    """More of it."""

    num_steps: tuple[int, ...] = (1_000, 2_000)
    is_lazy: Annotated[bool, "Whether it may stay."] = False


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"law": "Cauchy"}, ValueError, "law must be one of 'normal', 'uniform'; got 'Cauchy'"),
        ({"num_steps": (10, 0)}, ValueError, "num_steps must be at least 1; got 0"),
        ({"num_steps": (10, 1.5)}, TypeError, "num_steps must be an integer; got 1.5"),
        ({"num_steps": [10, 20]}, TypeError, "num_steps must be a tuple; got [10, 20]"),
        ({"num_steps": ()}, ValueError, "num_steps must have at least one entry; got ()"),
        ({"spans": (1.0, -1.0)}, ValueError, "spans must be a finite number above 0; got -1.0"),
        ({"spans": (1.0,)}, ValueError, "spans must have one entry for each of num_steps, ("),
        ({"places": ((1, 1), (0, 2))}, ValueError, "places must be at least 1; got 0"),
        ({"places": ((1, 1), (1, 2, 3))}, ValueError, "places must hold 2 numbers together; got (1, 2, 3)"),
        ({"places": ((1, 1), ())}, ValueError, "places must have at least one entry; got ()"),
    ],
)
@pytest.mark.parametrize("kind", [Walk, LongWalk])
def test_bad_values_are_refused_where_they_are_given(kind, changes, error, words, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users meet our errors, and alone
    with pytest.raises(error) as caught:
        kind(**changes)
    assert str(caught.value).startswith(words)
    with pytest.raises(error):
        dataclasses.replace(kind(), **changes)


def test_it_is_a_frozen_dataclass_with_plain_types():
    config = LongWalk(law="uniform")
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.law = "normal"
    assert dataclasses.asdict(config) == {
        "law": "uniform",
        "num_steps": (1_000, 2_000),
        "spans": (1.0, 0.5),
        "places": ((1, 1),),
        "name": "any",
        "is_lazy": False,
    }
    assert config == LongWalk(law="uniform") and hash(config) == hash(LongWalk(law="uniform"))
    parameters = inspect.signature(LongWalk).parameters
    assert list(parameters) == list(dataclasses.asdict(config))
    assert parameters["num_steps"].annotation == tuple[int, ...] and parameters["law"].annotation is str
