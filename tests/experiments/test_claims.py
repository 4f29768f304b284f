"""Claims beyond what slips in stored rows show (`test_controls.py`)."""

from book.experiments.counterexample import counterexample
from book.experiments.learned_scales import over_the_limit
from book.experiments.tuned_chains import best_damping

from .judging import findings


def test_a_mean_that_vanishes_in_noise_is_no_counterexample():
    (row,) = counterexample(**counterexample.settings("smoke", widths=(16,), noise_std=100.0))
    assert abs(row["sign"]) < 0.01 and abs(row["mean"]) < 0.01
    assert not findings(counterexample, "H-AE1", [row])[0].holds


def test_scores_of_learned_scales_are_those_of_shipped_tables():
    found = over_the_limit()
    assert len(found) == 10 and all(gain.error > 0 for gain in found.values())


def test_the_damping_is_twice_the_step_and_at_most_one():
    assert [float(best_damping(step_size)) for step_size in (0.125, 0.5, 3.0)] == [0.25, 1.0, 1.0]
