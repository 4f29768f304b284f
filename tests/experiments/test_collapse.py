"""Fits at η = 1: rows, and the optimum where it is known to first order."""

import dataclasses

import numpy as np
import pytest

from widebnn.experiments import collapse

TINY = dataclasses.replace(collapse.config("smoke"), widths=(400,), num_points=6, num_digits=10, num_steps=60)


@pytest.mark.slow
def test_divergence_is_the_one_of_a_readout_that_moves_alone():
    rows = list(collapse(TINY))
    kinds = [(loss, scaling) for loss in TINY.losses for scaling in TINY.scalings]
    assert [(r["loss"], r["scaling"]) for r in rows] == kinds
    for row in rows:
        if row["loss"] == "square":
            np.testing.assert_allclose(row["kl_divergence"], row["predicted"], rtol=0.05)
        np.testing.assert_allclose(row["output_std"], row["prior_std"], rtol=0.05)
    square, tangent, classes, _ = rows
    assert square["kl_divergence"] < 0.1 * tangent["kl_divergence"]
    assert classes["predicted"] / 2 < classes["kl_divergence"] < 4 * classes["predicted"]
