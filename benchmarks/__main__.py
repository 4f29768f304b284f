"""Run every benchmark and write `_build/bench.json`: `python -m benchmarks`."""

import json
from pathlib import Path

import widebnn as wb
from benchmarks.steps import pcn_step_vs_paper, repriorised_overhead

OUTPUT = Path("_build/bench.json")
WIDTHS = (512, 1_024, 2_048)


def main() -> None:
    """Print a line a comparison, and write them all."""
    data = wb.data.cifar10(num_train=256, num_test=100)
    rows = []
    for benchmark in (pcn_step_vs_paper, repriorised_overhead):
        for row in benchmark(data, WIDTHS):
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
