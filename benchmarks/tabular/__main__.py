"""`python -m benchmarks.tabular run | table`."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.tabular.data_sets import DATA_SETS
from benchmarks.tabular.methods import METHODS, OURS
from benchmarks.tabular.rows import NUM_SPLITS, Row, read, run
from benchmarks.tabular.summary import SCORES, summaries

ROWS = Path("_build/tabular.jsonl")
COMMON = ("data", "method", "version", "device")
"""What the rows of a method on a set share."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors in what was asked for are said in a line, without a traceback."""
    options = _parser().parse_args(arguments)
    try:
        options.command(options)
    except (ValueError, TypeError, ImportError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tabular", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    runs = commands.add_parser("run", help="make the rows that the file lacks")
    runs.add_argument("--data", nargs="+", default=list(DATA_SETS), metavar="NAME", help=", ".join(DATA_SETS))
    runs.add_argument("--methods", nargs="+", default=list(METHODS), metavar="NAME", help=", ".join(METHODS))
    runs.add_argument("--splits", nargs="+", type=int, default=list(range(NUM_SPLITS)), metavar="SEED")
    runs.set_defaults(command=_run)
    tables = commands.add_parser("table", help="print means ± standard errors over splits, and differences")
    tables.add_argument("--write", type=Path, metavar="FILE", help="store the rows as JSON")
    tables.set_defaults(command=_table)
    for command in (runs, tables):
        command.add_argument("--rows", type=Path, default=ROWS, metavar="FILE", help=f"default: {ROWS}")
    return parser


def _run(options: argparse.Namespace) -> None:
    for row in run(options.rows, options.data, options.methods, options.splits):
        print(dataclasses.asdict(row), flush=True)


def _table(options: argparse.Namespace) -> None:
    rows = read(options.rows)
    if not rows:
        raise ValueError(f"rows must name a file with rows of a run; there are none in {str(options.rows)!r}")
    found = summaries(rows)
    header = ["set", "method", "splits", *SCORES]
    lines = []
    for s in found:
        seconds = [f"{value:.1f}" for value in (s.median_seconds, s.first_seconds, s.cpu_seconds)]
        lines.append([s.data, s.method, s.num_splits, *s.scores.values(), *seconds, s.num_converged or "–"])
    _print([*header, "seconds", "first", "of CPU", "converged"], lines)
    print("\nless ours, on the splits that both have; below 0 the method is better than ours")
    others = [s for s in found if s.method != OURS and s.num_common]
    _print(header, [[s.data, s.method, s.num_common, *s.differences.values()] for s in others])
    if options.write:
        options.write.write_text(_shipped(rows))


def _print(header: Sequence[str], lines: Sequence[Sequence]) -> None:
    for line in [header, ["---"] * len(header), *lines]:
        print("| " + " | ".join(map(str, line)) + " |")


def _shipped(rows: Sequence[Row]) -> str:
    """What rows of a method share once, and the rest in columns: a line for each method on each set."""
    groups: dict[tuple, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.split):
        groups.setdefault(tuple(getattr(row, name) for name in COMMON), []).append(row)
    columns = [field.name for field in dataclasses.fields(Row) if field.name not in COMMON]
    lines = [
        dict(zip(COMMON, shared)) | {name: [getattr(row, name) for row in group] for name in columns}
        for shared, group in groups.items()
    ]
    return '{"fits": [\n' + ",\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n]}\n"


if __name__ == "__main__":
    sys.exit(main())
