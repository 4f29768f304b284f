"""Settings at "paper" scale against what the papers state."""

import pytest

from book.experiments.experiment import plain
from book.experiments.papers import OWN, STATED
from book.experiments.registry import EXPERIMENTS


@pytest.mark.parametrize("name", STATED)
def test_paper_scale_is_the_papers_or_says_why_not(name):
    settings = plain(EXPERIMENTS[name].settings("paper"))
    for setting, stated in STATED[name].items():
        assert (settings.get(setting) == stated.value) == (not stated.why_not), setting


def test_every_experiment_is_a_papers_or_says_that_it_is_not():
    own = [name for names in OWN.values() for name in names]
    assert sorted([*STATED, *own]) == sorted(EXPERIMENTS)
