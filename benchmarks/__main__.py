"""Run every benchmark and write `_build/bench.json`: `python -m benchmarks`.

The file is written anew after each row, so that a run that is interrupted leaves what it has measured.
"""

import json
import math
import tempfile
import time
from pathlib import Path
from typing import Any

import jax

import widebnn as wb
from benchmarks.effective_samples import (
    BLACKJAX,
    OURS,
    PAPERS,
    Efficiency,
    Posterior,
    efficiency,
    least_ess,
    paper_pcn,
)
from benchmarks.steps import (
    gradient_vs_potential,
    pcn_step_vs_paper,
    pcn_step_vs_parts,
    repriorised_overhead,
    sweep_vs_potential,
)
from benchmarks.timing import Comparison
from benchmarks.vi_epoch import vi_epoch
from benchmarks.waterfall import waterfall
from widebnn.experiments import device

OUTPUT = Path("_build/bench.json")
STEPS = (
    (pcn_step_vs_paper, (1_024, 2_048, 4_096)),
    (pcn_step_vs_parts, (1_024,)),
    (gradient_vs_potential, (1_024,)),
    (sweep_vs_potential, (1_024, 4_096)),
    (repriorised_overhead, (512, 1_024, 2_048)),
)
"""Comparisons and the widths that each is made at."""
COMPARED = ("unit-wise", "function-space HMC", "pCN")
EFFICIENCY = {
    1_024: (*COMPARED, *PAPERS, *BLACKJAX, *(name for name in OURS if name not in COMPARED)),
    4_096: (*COMPARED, *BLACKJAX),
    128: COMPARED,
    512: COMPARED,
    2_048: COMPARED,
    8_192: COMPARED,
}
"""Samplers whose effective samples are counted, by width; the papers' pCN goes with ours."""


class Record:
    """What has been measured, on the screen and on disk."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.tables: dict[str, list] = {"rows": [], "efficiency": [], "waterfall": []}

    def add(self, table: str, row: Any) -> None:
        row = dict(row)
        self.tables[table].append(row)
        print(
            table, {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in row.items()}, flush=True
        )
        OUTPUT.parent.mkdir(exist_ok=True)
        seconds = round(time.perf_counter() - self.start)
        OUTPUT.write_text(json.dumps({"device": device(), "seconds": seconds} | self.tables, indent=1) + "\n")


def main() -> None:
    """Every table, one row after another."""
    record = Record()
    data = wb.data.cifar10(num_train=256, num_test=100)
    for benchmark, widths in STEPS:
        for width in widths:
            record.add("rows", benchmark(data, width))
    for row in vi_epoch():
        record.add("rows", row)
    for width, names in EFFICIENCY.items():
        posterior = Posterior(data, width)
        found: dict[str, Efficiency] = {}
        draws = {}
        for name in names:
            found[name], draws[name] = efficiency(posterior, name)
            record.add("efficiency", found[name]._asdict())
            if name == "pCN":
                found["paper pCN"] = paper_pcn(posterior, found[name])
                record.add("efficiency", found["paper pCN"]._asdict())
        for row in comparisons(width, found, draws):
            record.add("rows", row)
        if width == 1_024:
            for row in waterfall(posterior, found):
                record.add("waterfall", row)


def comparisons(width: int, found: dict[str, Efficiency], draws: dict[str, wb.Draws]) -> list[Comparison]:
    """The best of ours against each of the others that were run."""
    peers = {
        "paper_pcn": ["paper pCN"],
        "paper_lmc": ["paper LMC"],
        "blackjax_nuts": ["BlackJAX NUTS"],
        "blackjax_hmc": [name for name in found if name.startswith("BlackJAX HMC")],
    }
    ours = max((found[name] for name in OURS if name in found), key=lambda row: row.ess_per_second)
    rows = []
    for id, names in peers.items():
        if names := [name for name in names if name in found]:
            peer = max((found[name] for name in names), key=lambda row: row.ess_per_second)
            rows.append(_comparison(f"ess_vs_{id}_{width}", ours, peer, draws))
    return rows


def _comparison(id: str, ours: Efficiency, peer: Efficiency, draws: dict[str, wb.Draws]) -> Comparison:
    """Where both were followed draw by draw, the same number of draws of each: the least of many effective
    sample sizes is the lower, the fewer draws it is estimated from."""
    rates = [ours.ess_per_second, peer.ess_per_second]
    if peer.sampler in draws and draws[peer.sampler].thin == draws[ours.sampler].thin == 1:
        num_draws = min(draws[row.sampler]["potential"].shape[1] for row in (ours, peer))
        for i, row in enumerate((ours, peer)):
            collected = draws[row.sampler].collected
            per_step = least_ess(collected, num_draws)[0] / (num_draws * len(collected["potential"]))
            rates[i] = 1e3 * per_step / row.ms_per_step
    ratio = rates[0] / rates[1]
    error = ratio * math.hypot(*(row.error / row.ess_per_step for row in (ours, peer)))
    return Comparison(
        id=id,
        ours=rates[0],
        peer=rates[1],
        ratio=ratio,
        spread=(ratio - error, ratio + error),
        unit="effective samples/s",
        device=device(),
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:  # a program that is timed again need not be compiled again
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        main()
