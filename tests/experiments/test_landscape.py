"""The experiment on slices: what its rows hold."""

import numpy as np
import pytest

from book.experiments.landscape import landscape

from .judging import findings


def test_the_claim_has_errors_over_triples_and_students_t():
    scatter = [0.9, 1.0, 1.1]  # of three triples
    rows = [
        {
            "repeat": repeat,
            "width": width,
            "num_train": num_train,
            "parametrisation": name,
            "spread_potential": factor * num_train**2 * share,
            "curvature": factor * share,
            "barrier_potential": factor * share,
        }
        for repeat, factor in enumerate(scatter)
        for width, num_train in ((16, 32), (64, 32), (64, 8))
        for name, share in (("θ", 10.0), ("φ", 16 / width))
    ]
    found = findings(landscape, "H-F5", rows)
    assert {finding.degrees for finding in found} == {2}
    relative = np.std(scatter, ddof=1) / np.sqrt(3)
    step = next(one for one in found if one.what.startswith("curvature in φ"))
    assert step.value == pytest.approx(1 / 4)
    assert step.error == pytest.approx(np.sqrt(2) * relative / 4)
    growth = found[-1]
    assert growth.value == pytest.approx(4)
    assert growth.error == pytest.approx(4 * np.sqrt(2) * relative)
