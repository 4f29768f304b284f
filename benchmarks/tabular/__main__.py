"""Make the rows that `_build/tabular.jsonl` lacks, then write all of them as they are shipped."""

import argparse
import dataclasses
from pathlib import Path

from benchmarks.tabular.data_sets import DATA_SETS
from benchmarks.tabular.methods import METHODS
from benchmarks.tabular.rows import NUM_SPLITS, run, shipped

ROWS = Path("_build/tabular.jsonl")

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tabular", description=__doc__)
    for name, known in {"data": DATA_SETS, "methods": METHODS, "splits": range(NUM_SPLITS)}.items():
        of = type(next(iter(known)))
        parser.add_argument(f"--{name}", nargs="+", type=of, choices=list(known), default=list(known))
    options = parser.parse_args()
    for row in run(ROWS, options.data, options.methods, options.splits):
        print(dataclasses.asdict(row), flush=True)
    ROWS.with_suffix(".json").write_text(shipped(ROWS))
