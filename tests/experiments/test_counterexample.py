"""A sum of readout weights: its exact law given u, and what follows for the divergence."""

import dataclasses

from widebnn.experiments import CLAIMS, COUNTEREXAMPLE, Results, counterexample
from widebnn.study.experiment import verdict

(CLAIM,) = (claim for claim in CLAIMS if claim.experiment == "counterexample")


def test_mean_has_the_limit_of_the_formula_and_the_bound_stays():
    seen = []
    rows = counterexample(COUNTEREXAMPLE["smoke"], on_row=seen.append)
    assert rows == seen and [row["width"] for row in rows] == [16, 64]
    narrow, wide = (abs(row["mean"] - row["limit"]) for row in rows)
    assert wide < narrow / 2  # of order 1/width
    assert verdict(CLAIM, CLAIM.summarise(Results(rows, {}, {}))) == "reproduced"


def test_noise_hides_the_data_and_a_mean_that_vanishes_is_no_counterexample():
    config = dataclasses.replace(COUNTEREXAMPLE["smoke"], widths=(16,), noise_std=100.0)
    (row,) = counterexample(config)
    assert abs(row["sign"]) < 0.01 and abs(row["mean"]) < 0.01
    findings = CLAIM.summarise(Results([row], {}, {}))
    assert not findings[0].holds
