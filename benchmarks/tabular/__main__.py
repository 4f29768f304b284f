"""`python -m benchmarks.tabular run | table`."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.tabular.data_sets import CLASSES, DATA_SETS, NUMBERS
from benchmarks.tabular.methods import METHODS, OURS
from benchmarks.tabular.rows import NUM_SPLITS, Row, read, run
from benchmarks.tabular.summary import Summary, ratio_of_seconds, summaries

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
    for sets in (NUMBERS, CLASSES):
        of = [one for one in found if one.data in sets]
        if of:
            _print_scores(of)
    print("\nprocessor seconds of a fit of ours over those of others, first and again, medians over sets")
    for name in dict.fromkeys(one.method for one in found if one.data in NUMBERS):
        print(f"{name}: {ratio_of_seconds(found, OURS[0], name)}")
    if options.write:
        options.write.write_text(_shipped(rows))


def _print_scores(found: Sequence[Summary]) -> None:
    names = list(found[0].scores)
    header = ["set", "method", "splits", *names]
    lines = [
        [s.data, s.method, s.num_splits, *(s.scores.get(name, "–") for name in names), s.fit, s.predict]
        for s in found
    ]
    _print([*header, "fit: first, again", "predict: first, again"], lines)
    print("\nless ours, on the splits that both have")
    others = [s for s in found if s.method not in OURS and s.num_common]
    _print(
        header,
        [[s.data, s.method, s.num_common, *(s.differences.get(name, "–") for name in names)] for s in others],
    )


def _print(header: Sequence[str], lines: Sequence[Sequence]) -> None:
    for line in [header, ["---"] * len(header), *lines]:
        print("| " + " | ".join(map(str, line)) + " |")


def _shipped(rows: Sequence[Row]) -> str:
    """What rows of a method share once, and the rest in columns: a line for each method on each set."""

    def place(row: Row) -> tuple[int, int, int]:
        return list(DATA_SETS).index(row.data), list(METHODS).index(row.method), row.split

    groups: dict[tuple, list[Row]] = {}
    for row in sorted(rows, key=place):
        groups.setdefault(tuple(getattr(row, name) for name in COMMON), []).append(row)
    columns = ["split", "fit_seconds", "predict_seconds", "place", "said"]
    lines: dict[str, list[str]] = {"fits": [], "classes": []}
    for shared, group in groups.items():
        line = dict(zip(COMMON, shared)) | {name: [getattr(row, name) for row in group] for name in columns}
        line |= {name: [row.scores[name] for row in group] for name in group[0].scores}
        lines["classes" if line["data"] in CLASSES else "fits"].append(json.dumps(line, ensure_ascii=False))
    parts = (f'"{key}": [\n' + ",\n".join(of) + "\n]" for key, of in lines.items())
    return "{" + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    sys.exit(main())
