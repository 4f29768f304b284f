"""The ELBO and its limit at random q: how the gap falls."""

import dataclasses

import numpy as np
import pytest

from widebnn.experiments import mean_field_gap

GAP = dataclasses.replace(
    mean_field_gap.config("smoke"), widths=(8, 128), num_train=(10, 20), num_posteriors=3, num_samples=400
)


@pytest.mark.slow
def test_gap_falls_as_one_over_the_width_in_one_scaling_alone():
    rows = list(mean_field_gap(GAP))
    for loss in GAP.losses:
        for scaling, ratio in [("mean-field", 16), ("ntk", 1)]:
            narrow, wide = (
                [
                    r
                    for r in rows
                    if (r["loss"], r["scaling"], r["width"], r["num_train"]) == (loss, scaling, w, 20)
                ]
                for w in GAP.widths
            )
            assert all(r["gap"] > 5 * r["gap_error"] for r in narrow + wide)
            assert (
                ratio / 2
                < np.mean([r["gap"] for r in narrow]) / np.mean([r["gap"] for r in wide])
                < 2 * ratio
            )
