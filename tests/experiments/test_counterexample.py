"""A sum of readout weights: noise that hides the data."""

from book.experiments.counterexample import counterexample

from .judging import findings


def test_noise_hides_the_data_and_a_mean_that_vanishes_is_no_counterexample():
    (row,) = counterexample(**counterexample.settings("smoke", widths=(16,), noise_std=100.0))
    assert abs(row["sign"]) < 0.01 and abs(row["mean"]) < 0.01
    assert not findings(counterexample, "H-AE1", [row])[0].holds
