"""Claims beyond what slips in stored rows show (`test_controls.py`)."""

from book.experiments.learned_scales import over_the_limit
from book.experiments.tuned_chains import best_damping


def test_scores_of_learned_scales_are_those_of_shipped_tables():
    found = over_the_limit()
    assert len(found) == 10 and all(gain.error > 0 for gain in found.values())


def test_the_damping_is_twice_the_step_and_at_most_one():
    assert [float(best_damping(step_size)) for step_size in (0.125, 0.5, 3.0)] == [0.25, 1.0, 1.0]
