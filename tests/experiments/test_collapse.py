"""Fits at η = 1: rows, and the optimum where it is known to first order."""

import dataclasses

import numpy as np
import pytest

from widebnn.experiments import collapse

from .judging import claim_of, findings

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


@pytest.mark.slow
def test_the_cross_entropy_is_fitted_from_several_seeds():
    config = dataclasses.replace(TINY, widths=(8,), scalings=("mean-field",), num_steps=3, num_repeats=2)
    square, *classes = collapse(config)
    assert square["repeat"] == 0 and [row["repeat"] for row in classes] == [0, 1]
    assert classes[0]["kl_divergence"] != classes[1]["kl_divergence"]
    later = dataclasses.replace(config, losses=("cross-entropy",), num_repeats=1, seed=config.seed + 1)
    assert [*collapse(later)] == [classes[1] | {"repeat": 0}]


def test_fits_give_the_errors_of_the_cross_entropy_alone():
    scatter = [0.9, 1.0, 1.1]
    rows = [
        {"loss": loss, "scaling": "mean-field", "width": width, "repeat": repeat}
        | dict.fromkeys(("kl_divergence", "output_rms"), factor / width)
        for loss, factors in (("square", [1.0]), ("cross-entropy", scatter))
        for width in (16, 4_096)
        for repeat, factor in enumerate(factors)
    ]
    found = findings(claim_of(collapse, "V-P2"), rows)
    assert [finding.value for finding in found] == pytest.approx([16 / 4_096] * 4)
    relative = np.std(scatter, ddof=1) / np.sqrt(3)
    assert [finding.error for finding in found[:2]] == [None, None]
    for finding in found[2:]:
        assert finding.error == pytest.approx(np.sqrt(2) * relative * 16 / 4_096) and finding.degrees == 2
