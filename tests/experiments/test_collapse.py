"""Fits at η = 1: rows, and the optimum where it is known to first order."""

import numpy as np
import pytest

from book.experiments.collapse import collapse

from .judging import findings


def test_fits_give_the_errors_of_the_cross_entropy_alone():
    scatter = [0.9, 1.0, 1.1]
    rows = [
        {"loss": loss, "scaling": "mean-field", "width": width, "repeat": repeat}
        | dict.fromkeys(("kl_divergence", "output_rms"), factor / width)
        for loss, factors in (("square", [1.0]), ("cross-entropy", scatter))
        for width in (16, 4_096)
        for repeat, factor in enumerate(factors)
    ]
    found = findings(collapse, "V-P2", rows)
    assert [finding.value for finding in found] == pytest.approx([16 / 4_096] * 4)
    relative = np.std(scatter, ddof=1) / np.sqrt(3)
    assert [finding.error for finding in found[:2]] == [None, None]
    for finding in found[2:]:
        assert finding.error == pytest.approx(np.sqrt(2) * relative * 16 / 4_096) and finding.degrees == 2
