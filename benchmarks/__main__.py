"""Run every benchmark and write `_build/bench.json`: `python -m benchmarks`."""

import json
from pathlib import Path

import widebnn as wb
from benchmarks.steps import (
    gradient_vs_potential,
    pcn_step_vs_paper,
    pcn_step_vs_parts,
    repriorised_overhead,
    sweep_vs_potential,
)

OUTPUT = Path("_build/bench.json")
TABLE = (
    (pcn_step_vs_paper, (1_024, 2_048, 4_096)),
    (pcn_step_vs_parts, (1_024,)),
    (gradient_vs_potential, (1_024,)),
    (sweep_vs_potential, (1_024, 4_096)),
    (repriorised_overhead, (512, 1_024, 2_048)),
)
"""Comparisons and the widths that each is made at."""


def main() -> None:
    """Print a line a comparison, and write them all."""
    data = wb.data.cifar10(num_train=256, num_test=100)
    rows = []
    for benchmark, widths in TABLE:
        for width in widths:
            row = benchmark(data, width)
            rows.append(row)
            low, high = row["spread"]
            print(
                f"{row['id']:28} ours {row['ours']:8.3f}  peer {row['peer']:8.3f} {row['unit']}"
                f"  ratio {row['ratio']:6.2f} ({low:.2f}–{high:.2f})",
                flush=True,
            )
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
