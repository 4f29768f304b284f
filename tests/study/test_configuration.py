"""Configurations: what fields must be, what is said of them, and that they are frozen dataclasses."""

import copy
import dataclasses
import inspect
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated

import jaxtyping
import pytest
from measured import shown

from widebnn import experiments
from widebnn._check import one_of
from widebnn.study import Configuration, config_hash, sweep
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


def test_what_it_holds_alone_decides_its_hash():
    @dataclasses.dataclass(frozen=True)
    class Plain:
        law: str = "normal"
        num_steps: tuple[int, ...] = (10, 20)
        spans: tuple[float, ...] = (1.0, 0.5)
        places: tuple[tuple[int, int], ...] = ((1, 1),)
        name: str = "any"

    Plain.__name__ = "Walk"
    assert config_hash(Walk()) == config_hash(Plain())


@pytest.mark.parametrize("kind", [Walk, LongWalk])
def test_the_docstring_says_what_fields_are_and_must_be(kind):
    summary, _, sections = inspect.getdoc(kind).partition("\n\nAttributes\n----------\n")
    assert summary == {Walk: "Walks in one dimension.", LongWalk: "More of it."}[kind]
    attributes, _, raises = sections.partition("\n\nRaises\n------\n")
    assert "law\n    Of a step. One of 'normal', 'uniform'.\n" in attributes
    assert "num_steps\n    Of each walk. Each entry is an integer no smaller than 1.\n" in attributes
    assert ("is_lazy\n    Whether it may stay." in attributes) is (kind is LongWalk)
    assert "unless `spans` has an entry" in raises and raises.endswith("`num_steps`.")


def test_every_field_of_the_book_has_a_meaning():
    kinds = {type(config) for one in experiments.EXPERIMENTS.values() for config in one.scales.values()}
    for kind in kinds:
        assert issubclass(kind, Configuration)
        for field in dataclasses.fields(kind):
            meanings = [mark for mark in field.metadata["marks"] if isinstance(mark, str)]
            assert meanings and meanings[-1].endswith("."), f"{kind.__name__}.{field.name}"


def test_copies_are_equal():
    config = LongWalk(law="uniform")
    for again in (copy.copy(config), copy.deepcopy(config), dataclasses.replace(config)):
        assert again == config and again is not config and config_hash(again) == config_hash(config)


@pytest.mark.slow
def test_workers_get_those_of_the_book_whole(tmp_path):
    """As a sweep sends them: by names and numbers, from which each is built anew and checked again."""
    configs = [config for one in experiments.EXPERIMENTS.values() for config in one.scales.values()]
    unlike = list({config_hash(config): config for config in configs}.values())
    with ThreadPoolExecutor(1) as executor:
        results = sweep(shown, unlike, tmp_path / "results", executor)
    assert [result.rows for result in results] == [[{"seen": str(config)}] for config in unlike]
