"""Configurations named "paper" against what the papers state."""

import pytest

from book.experiments.papers import OWN, STATED
from book.experiments.registry import EXPERIMENTS


@pytest.mark.parametrize("name", STATED)
def test_paper_scale_is_the_papers_or_says_why_not(name):
    config = EXPERIMENTS[name].settings("paper")
    for field, stated in STATED[name].items():
        assert (config.get(field) == stated.value) == (not stated.why_not), field


def test_every_experiment_is_a_papers_or_says_that_it_is_not():
    own = [name for names in OWN.values() for name in names.split()]
    assert sorted([*STATED, *own]) == sorted(EXPERIMENTS)
