"""What each step from the papers' pCN to the unit-wise sampler is worth, on one posterior (X-2)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import widebnn as wb
from benchmarks.effective_samples import Efficiency, Posterior, median_time
from benchmarks.paper_pcn import pcn_steps
from benchmarks.steps import compiled_steps, python_steps

__all__ = ["waterfall"]


def waterfall(posterior: Posterior, found: Mapping[str, Efficiency]) -> list[dict[str, Any]]:
    """Milliseconds of a step and effective samples per second, one improvement after another.

    Up to the last row the informed part of the chain has the same law, that of pCN at its best step size,
    and so the same effective samples per step, from `found["pCN"]`: what changes is the cost of a step. The
    last row changes the sampler and takes `found["unit-wise"]`.
    """
    bnn, data, step_size = posterior.bnn, posterior.data, found["pCN"].step_size
    assert step_size is not None
    x, y = data.x_train, data.y_train
    targets = {
        "steps compiled together": wb.targets.repriorised(bnn, x, y, space="feature"),
        "readout's posterior in data space": wb.targets.repriorised(bnn, x, y, space="data"),
        "readout integrated out": wb.targets.marginal(bnn, x, y, space="data"),
        "inputs rotated": posterior.target,
    }
    steps = {"the papers' pCN": partial(python_steps, pcn_steps(bnn, x, y, step_size))}
    for name, target in targets.items():
        sampler = wb.samplers.pcn(target.potential, step_size)
        steps[name] = partial(compiled_steps, sampler, target)
    rows = []
    for name, timed in steps.items():
        rows.append(_row(name, median_time(timed), found["pCN"]))
    return [*rows, _row("unit-wise sampler", found["unit-wise"].ms_per_step, found["unit-wise"])]


def _row(name: str, ms_per_step: float, found: Efficiency) -> dict[str, Any]:
    per_second = 1e3 * found.ess_per_step / ms_per_step
    return {
        "name": name,
        "width": found.width,
        "ms_per_step": ms_per_step,
        "ess_per_step": found.ess_per_step,
        "ess_per_second": per_second,
    }
