"""`python -m book.experiments list | show | run | gpu | ledger`."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from book.experiments.claims import CLAIMS
from book.experiments.ledger import Entry, ledger, text
from book.experiments.ledger_page import pages
from book.experiments.registry import EXPERIMENTS, GPU, find, on_gpu, stored
from widebnn.scale import SCALES, current_scale
from widebnn.tables import Row
from widebnn.tables._results import duration

SHIPPED = "book/results"
"""Where results are by default, in a checkout; elsewhere that is the folder `results`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors in what was asked for are said in a line, without a traceback."""
    options = _parser().parse_args(arguments)
    try:
        options.command(options)
    except KeyboardInterrupt:
        print("stopped; what was finished is stored, and the same command goes on", file=sys.stderr)
        return 130
    except (ValueError, OSError, NotImplementedError, ImportError) as error:
        words = " ".join([str(error), *getattr(error, "__notes__", ())])
        print(f"{type(error).__name__}: {words}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m book.experiments", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(function: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        added = commands.add_parser(function.__name__.strip("_"), help=function.__doc__)
        added.set_defaults(command=function)
        return added

    default = SHIPPED if Path(SHIPPED).is_dir() else "results"
    words = f"folder of results (default: {default})"
    folder: dict[str, Any] = {"default": default, "metavar": "DIR", "help": words}
    of: dict[str, Any] = {"metavar": "ID", "help": "an experiment, or a row of the ledger"}
    command(_list).add_argument("--results", **folder)
    command(_show).add_argument("id", **of)
    running = command(_run)
    running.add_argument("id", **of)
    running.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings that differ, as in YAML"
    )
    running.add_argument("--scale", choices=SCALES, help="default: WIDEBNN_SCALE, or what suits the device")
    running.add_argument("--results", **folder)
    command(_gpu).add_argument("--results", **folder)
    listing = command(_ledger)
    listing.add_argument("--results", **folder)
    listing.add_argument(
        "--write", metavar="PAGE", help="write the page of the book instead, and beside it one for each paper"
    )
    return parser


def _list(options: argparse.Namespace) -> None:
    """list experiments, the rows that they serve, their scales, and which have results (*)"""
    for name, experiment in EXPERIMENTS.items():
        held = stored(experiment, options.results)
        scales = " ".join(f"{scale}*" if scale in held else scale for scale in experiment.scales)
        print(f"{name:22} {scales:32} {', '.join(experiment.findings):40} {experiment.title}")


def _show(options: argparse.Namespace) -> None:
    """show what a row claims, or an experiment's rows and settings"""
    claims = [claim for claim in CLAIMS.values() if options.id in (claim.id, claim.experiment)]
    for claim in claims:
        for what, words in vars(claim).items():
            if words:
                print(f"{what + ':':13}{words}")
        print()
    names = dict.fromkeys(claim.experiment for claim in claims if claim.experiment)
    for experiment in map(find, names if claims else [options.id]):
        print(f"{experiment.name}: {experiment.title}")
        for scale, settings in experiment.scales.items():
            print(f"  {scale}")
            for setting, value in settings.items():
                print(f"    {setting} = {value!r}")


def _run(options: argparse.Namespace) -> None:
    """run an experiment or load what is stored of it, and beyond smoke scale say what it finds"""
    experiment, scale = find(options.id), options.scale or current_scale()
    changes = dict(_setting(words) for words in options.set)
    print(f"{experiment.name} at {scale} scale", flush=True)
    found = experiment.run(scale, options.results, on_row=_say, **changes)
    made = found.provenance
    print(f"{len(found.rows)} rows: {duration(made['seconds'])} on {made['device']}")
    for id in experiment.findings if scale != "smoke" else ():
        print(f"\n{Entry(CLAIMS[id], experiment, found)}")


def _setting(words: str) -> tuple[str, Any]:
    name, is_set, value = words.partition("=")
    if not is_set:
        raise ValueError(f"a setting must be NAME=VALUE, such as seed=2; got {words!r}")
    found = yaml.safe_load(value)
    return name, tuple(found) if isinstance(found, list) else found


def _say(row: Row) -> None:
    numbers = [f"{name} {value:.4g}" for name, value in row.items() if isinstance(value, int | float)]
    names = [f"{name} {value}" for name, value in row.items() if isinstance(value, str)]
    print("  " + ", ".join([*names, *numbers][:6]), flush=True)


def _gpu(options: argparse.Namespace) -> None:
    """print what to run where there is a GPU, the most valuable first, and the rows that it serves"""
    for name in GPU:
        if "colab" not in stored(EXPERIMENTS[name], options.results):
            print(f"{on_gpu(name)}  # {', '.join(EXPERIMENTS[name].findings)}")


def _ledger(options: argparse.Namespace) -> None:
    """print every claim with its verdict, or write the pages of the book"""
    entries = ledger(options.results)
    if options.write is None:
        print(text(entries))
    else:
        path = Path(options.write)
        for name, content in pages(entries).items():
            path.with_stem(path.stem + name).write_text(content)


if __name__ == "__main__":
    sys.exit(main())
