"""What each step from the papers' pCN to the unit-wise sampler is worth, on one posterior (X-2)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import widebnn as wb
from benchmarks.effective_samples import PCN, Clock, Efficiency, Mixing, Posterior, median_times
from benchmarks.paper_pcn import pcn_steps
from benchmarks.steps import python_steps

__all__ = ["waterfall"]


def waterfall(posterior: Posterior, found: Mapping[str, Mixing]) -> list[dict[str, Any]]:
    """Milliseconds of a step and effective samples per second, one improvement after another.

    Up to the last row the informed part of the chain has the same law, that of pCN at its best step size,
    and so the same effective samples per step, the most that were `found`: what changes is the cost of a
    step. The last row changes the sampler and takes `found["unit-wise"]`.
    """
    pcn = max((found[name] for name in PCN if name in found), key=lambda mixing: mixing.ess_per_step)
    bnn, data, step_size = posterior.bnn, posterior.data, pcn.step_size
    assert step_size is not None
    x, y = data.x_train, data.y_train
    targets = {
        "steps compiled together": wb.targets.repriorised(bnn, x, y, space="feature"),
        "readout's posterior in data space": wb.targets.repriorised(bnn, x, y, space="data"),
        "readout integrated out": wb.targets.marginal(bnn, x, y, space="data"),
        "inputs rotated": posterior.target,
    }
    clocks: dict[str, Clock] = {"the papers' pCN": partial(python_steps, pcn_steps(bnn, x, y, step_size))}
    for name, target in targets.items():
        sampler = wb.samplers.pcn(target.potential, step_size)
        clocks[name] = partial(steps, sampler, target)
    clocks["unit-wise sampler"] = posterior.clock(wb.samplers.unitwise(posterior.target))
    chains = dict.fromkeys(clocks, pcn) | {"unit-wise sampler": found["unit-wise"]}
    times = median_times(clocks)
    return [{"name": name} | Efficiency(chains[name], times[name]).row() for name in clocks]
