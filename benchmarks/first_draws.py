"""Seconds from nothing to 400 effective samples: samplers and parametrisations over width, depth and n.

`python -m benchmarks.first_draws` measures every case that `_build/first_draws.jsonl` does not have yet, each
in a process of its own: compiling, burn-in and sampling count, importing and reading data do not. They are
seconds of one core (`time.process_time`), so that whatever else the machine does costs no case much.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax

import widebnn as wb
from benchmarks.timing import measured
from book.experiments.own_samplers import METHODS as OURS
from book.experiments.posterior import WATCHED, dense
from widebnn.versions import device

ROWS = Path("_build/first_draws.jsonl")
WIDTHS, DEPTHS, NUMS_OF_DATA = (64, 256, 1_024, 4_096), (1, 2, 3), (32, 256)
NUM_CHAINS = 4
ENOUGH = wb.Until(ess=400, rhat=1.01, seconds=90.0)
"""Wall time ends a run that does not get there."""


class Case(NamedTuple):
    """A network, its data, and how they are sampled."""

    method: str
    width: int
    depth: int
    num_data: int


class Method(NamedTuple):
    """A parametrisation of a marginal target, a sampler of it, and how long its chains burn in."""

    reduce: Callable[[Any], Any]
    sampler: wb.samplers.Sampler | wb.samplers.tuned
    burn_in: int
    thin: int = 1


HMC = OURS["function-space HMC, one radian"].sampler
WALK = wb.samplers.tuned(wb.samplers.pcn(0.1), target_acceptance=0.3)
METHODS = {
    "HMC, whitened": Method(wb.targets.whitened, HMC, burn_in=200),
    "HMC, rotated": Method(wb.targets.rotated, HMC, burn_in=200),
    "pCN, whitened": Method(wb.targets.whitened, WALK, burn_in=2_000, thin=20),
    "unit-wise, whitened": Method(wb.targets.whitened, wb.samplers.unitwise(), burn_in=20),
}


def measure(case: Case) -> list[dict]:
    """What a case takes, in a row."""
    data = wb.data.cifar10(num_train=case.num_data, num_test=10)
    marginal = dense(data, case.width, case.depth, noise_std=0.1).marginal
    jax.block_until_ready(marginal.x)
    start = time.process_time()
    method = METHODS[case.method]
    target = method.reduce(marginal)
    try:
        draws = wb.sample(
            jax.random.key(0),
            target,
            method.sampler,
            num_samples=100_000,
            burn_in=method.burn_in,
            thin=method.thin,
            num_chains=NUM_CHAINS,
            collect=WATCHED,
            until=ENOUGH,
            progress=False,
        )
    except TimeoutError:  # the burn-in did not end
        spent = round(time.process_time() - start, 2)
        return [case._asdict() | {"seconds": spent, "stopped": "burn-in", "device": device()}]
    seconds = time.process_time() - start
    found = [wb.diagnostics.convergence(values) for values in draws.collected.values()]
    row = {
        "seconds": round(seconds, 2),
        "sampling_seconds": round(draws.seconds, 2),
        "stopped": draws.stopped,
        "ess": round(float(min(one.ess.min() for one in found)), 1),
        "rhat": round(float(max(one.rhat.max() for one in found)), 4),
        "num_draws": int(draws["potential"].shape[1]),
        "acceptance": round(float(draws.acceptance_rate), 4),
        "step_size": None if draws.step_size is None else round(float(draws.step_size), 4),
        "device": device(),
    }
    return [case._asdict() | row]


def cases() -> Iterator[Case]:
    """All that are not another one by another name."""
    left_out = {(1, "HMC, rotated"), (2, "unit-wise, whitened"), (3, "unit-wise, whitened")}
    # of one layer, rotated is whitened; of several, sweeps move but the last
    for num_data, depth, width, method in itertools.product(NUMS_OF_DATA, DEPTHS, WIDTHS, METHODS):
        if (depth, method) not in left_out:
            yield Case(method, width, depth, num_data)


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m benchmarks.first_draws", description=__doc__).parse_args()
    measured(ROWS, [*cases()], measure)
