"""A sum of readout weights: its exact law given u, and what follows for the divergence."""

import pytest

from book.experiments.counterexample import counterexample

from .judging import findings, judged

CLAIM = counterexample, "H-AE1"


@pytest.mark.slow
def test_mean_has_the_limit_of_the_formula_and_the_bound_stays():
    rows = list(counterexample(**counterexample.settings("smoke")))
    assert [row["width"] for row in rows] == [16, 64]
    narrow, wide = (abs(row["mean"] - row["limit"]) for row in rows)
    assert wide < narrow / 2  # of order 1/width
    assert judged(*CLAIM, rows) == "reproduced"


def test_noise_hides_the_data_and_a_mean_that_vanishes_is_no_counterexample():
    (row,) = counterexample(**counterexample.settings("smoke", widths=(16,), noise_std=100.0))
    assert abs(row["sign"]) < 0.01 and abs(row["mean"]) < 0.01
    assert not findings(*CLAIM, [row])[0].holds
