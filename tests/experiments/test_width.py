"""The experiment over width: errors of its summaries."""

import numpy as np

from book.experiments import over_width
from book.experiments.findings import Finding
from widebnn.tables import Results, Rows


def made(per_step, widths=(8, 16)):
    """Rows at β = 0.2 of pCN, each with these effective samples of weights per step."""
    row = {"sampler": "pCN", "step_size": 0.2, "ms_per_step": 1.0, "acceptance": 0.5, "acceptance_error": 0.0}
    row |= {f"ess{kind}_weights": per_step for kind in ("", "_low", "_high", "_bulk", "_tail")}
    return [row | {"width": width} for width in widths]


def test_the_error_of_a_mean_over_projections_comes_from_their_range():
    rng = np.random.default_rng(0)
    num, num_repeats, per_step = 100, 400, 0.2
    settings = {"samplers": ["pCN"], "num_steps": [2_000], "num_projections": num, "num_train": 8}
    found = []
    for _ in range(num_repeats):
        rows = made(per_step)
        for row in rows:
            ess = per_step * (1 + 0.3 * rng.standard_normal(num))
            row |= {"ess_weights": ess.mean(), "ess_low_weights": ess.min(), "ess_high_weights": ess.max()}
        results = Results(Rows(rows), settings, {})
        narrow, wide = over_width.over_widths([results], 0.2, "pCN", "weights")
        found.append(wide.per_step / narrow.per_step)
    true = np.std([ratio.value for ratio in found])
    assert abs(np.mean([ratio.error for ratio in found]) / true - 1) < 0.15  # 3.5 % is one deviation
    assert not any(Finding("", ratio, above=1).holds for ratio in found[:20])  # of equal chains none rises
