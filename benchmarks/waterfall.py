"""What each step from the papers' pCN to the unit-wise sampler is worth, on one posterior (X-2)."""

from collections.abc import Mapping

import widebnn as wb
from benchmarks.effective_samples import PCN, Posterior, median_times
from benchmarks.paper_pcn import pcn_steps
from benchmarks.steps import pcn, python_steps
from book.experiments.efficiency import timed
from widebnn.tables import Row


def waterfall(posterior: Posterior, found: Mapping[str, Row]) -> list[Row]:
    """Milliseconds of a step and effective samples per second, one improvement after another.

    Up to the last row the informed part of the chain has the same law, that of pCN at its best step size,
    and so the same effective samples per step, the most that were `found`: what changes is the cost of a
    step. The last row changes the sampler and takes `found["unit-wise"]`.
    """
    best = max((found[name] for name in PCN if name in found), key=lambda row: row["ess_per_step"])
    bnn, data, step_size = posterior.bnn, posterior.data, best["step_size"]
    x, y = data.x_train, data.y_train
    targets = {
        "steps compiled together": wb.targets.repriorised(bnn, x, y, space="feature"),
        "readout's posterior in data space": wb.targets.repriorised(bnn, x, y, space="data"),
        "readout integrated out": wb.targets.marginal(bnn, x, y, space="data"),
        "inputs rotated": posterior.target,
    }
    clocks = {"the papers' pCN": python_steps(pcn_steps(bnn, x, y, step_size))} | {
        name: pcn(target, step_size) for name, target in targets.items()
    }
    clocks["unit-wise sampler"] = posterior.clock(wb.samplers.unitwise())
    chains = dict.fromkeys(clocks, best) | {"unit-wise sampler": found["unit-wise"]}
    return [{"name": name} | timed(chains[name], ms) for name, ms in median_times(clocks).items()]
