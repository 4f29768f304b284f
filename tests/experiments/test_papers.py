"""Configurations named "paper" against what the papers state."""

import dataclasses

import pytest

from widebnn.experiments import EXPERIMENTS
from widebnn.experiments.settings.papers import OWN, STATED

CASES = [(name, field, stated) for name, found in STATED.items() for field, stated in found.items()]


@pytest.mark.parametrize(
    ("name", "field", "stated"), CASES, ids=[f"{name}-{field}" for name, field, _ in CASES]
)
def test_paper_scale_is_the_papers_or_says_why_not(name, field, stated):
    config = dataclasses.asdict(EXPERIMENTS[name].config("paper"))
    assert stated.where.split(",")[0] in (
        "Hron et al.",
        "Pezzetti et al. 2024",
        "Pezzetti et al. 2025",
        "Huix et al.",
    )
    if stated.why_not:
        assert config.get(field) != stated.value, "the reason is out of date"
    else:
        assert config[field] == stated.value


def test_every_experiment_is_a_papers_or_says_that_it_is_not():
    own = [name for names in OWN.values() for name in names.split()]
    assert sorted([*STATED, *own]) == sorted(EXPERIMENTS)
