"""`python -m widebnn.experiments list | show | forecast | run | summarise | ledger`."""

import argparse
import contextlib
import dataclasses
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import jax

from widebnn.experiments import (
    CLAIMS,
    EXPERIMENTS,
    find,
    forecast,
    ledger,
    measured_speed,
    run,
    summarise,
)
from widebnn.experiments.settings.papers import STATED
from widebnn.scale import SCALES, current_scale
from widebnn.study import Row, Rows
from widebnn.study.ledger import PAPERS, text
from widebnn.study.ledger_json import as_json
from widebnn.study.ledger_page import page
from widebnn.study.results import duration
from widebnn.study.speed import CARDS

SHIPPED = "book/results"
"""Where results are by default, in a checkout; elsewhere that is the folder `results`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors in what was asked for are said in a line, without a traceback."""
    options = _parser().parse_args(arguments)
    try:
        options.command(options)
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on, as after `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("stopped; what was finished is stored, and a run goes on with --resume", file=sys.stderr)
        return 130
    except ExceptionGroup as failures:
        for error in failures.exceptions:
            _complain(error)
    except (ValueError, OSError, NotImplementedError, ImportError) as error:
        _complain(error)
    else:
        return 0
    return 1


def _complain(error: Exception) -> None:
    words = " ".join([str(error), *getattr(error, "__notes__", ())])
    print(f"{type(error).__name__}: {words}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m widebnn.experiments", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(function: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        added = commands.add_parser(function.__name__.strip("_"), help=function.__doc__)
        added.set_defaults(command=function)
        return added

    default = SHIPPED if Path(SHIPPED).is_dir() else "results"
    words = f"folder of results (default: {default})"
    folder: dict[str, Any] = {"default": default, "metavar": "DIR", "help": words}
    scale: dict[str, Any] = {"choices": SCALES, "help": "default: WIDEBNN_SCALE, or what suits the device"}
    command(_list).add_argument("--results", **folder)
    of: dict[str, Any] = {"metavar": "ID", "help": "an experiment, or a row of the ledger"}
    command(_show).add_argument("id", **of)
    forecasting = command(_forecast)
    forecasting.add_argument("id", nargs="?", **of)
    forecasting.add_argument("--scale", choices=SCALES, help="default: every scale")
    forecasting.add_argument("--results", **folder)
    running = command(_run)
    running.add_argument("id", **of)
    running.add_argument("--scale", **scale)
    running.add_argument("--results", **folder)
    running.add_argument("--resume", action="store_true", help="go on where a run was interrupted")
    running.add_argument("--executor", metavar="KIND:…", help="processes:N, or dask:ADDRESS of a scheduler")
    summing = command(_summarise)
    summing.add_argument("id", nargs="?", **of)
    summing.add_argument("--scale", choices=SCALES, help="default: the largest that has results")
    summing.add_argument("--results", **folder)
    listing = command(_ledger)
    listing.add_argument("--results", **folder)
    form = listing.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print it as JSON, for programs")
    form.add_argument("--write", metavar="PAGE", help="write the page of the book instead")
    return parser


def _list(options: argparse.Namespace) -> None:
    """list experiments, the rows that they serve, their scales, and which have results (*)"""
    lines = []
    for name, experiment in EXPERIMENTS.items():
        stored = experiment.files(options.results)
        scales = " ".join(f"{s}*" if s in stored else s for s in SCALES if s in experiment.scales)
        rows = ", ".join(claim.id for claim in experiment.claims)
        lines.append((name, rows, scales, experiment.title))
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        print("  ".join(entry.ljust(width) for entry, width in zip(line, widths)).rstrip())


def _show(options: argparse.Namespace) -> None:
    """show what a row claims, or an experiment's rows and configurations"""
    name = options.id
    claims = [claim for claim in CLAIMS if name in (claim.id, claim.experiment)]
    for claim in claims:
        source = ", ".join(part for part in (PAPERS[claim.id[0]][2], claim.where) if part)
        print(f"{claim.id}  {source}".rstrip())
        paper = ": ".join(part for part in (claim.number, claim.paper) if part)
        lines = {"claim": claim.claim, "paper": paper, "rule": claim.rule}
        lines |= {"changed by": claim.would_change} if claim.would_change else {}
        lines |= {"experiment": claim.experiment, "chapter": f"{claim.chapter} {claim.figure}".strip()}
        for what, words in lines.items():
            print(f"  {what + ':':12}{words or '—'}")
        print()
    names = dict.fromkeys(claim.experiment for claim in claims) or [find(name).name]
    for experiment in map(EXPERIMENTS.__getitem__, names):
        print(f"{experiment.name}: {experiment.title}")
        for scale, config in experiment.scales.items():
            print(f"  {scale}, in {_counted(len(experiment.parts(config)), 'part')}")
            for field in dataclasses.fields(config):
                print(f"    {field.name} = {getattr(config, field.name)!r}")
        for name, one in STATED.get(experiment.name, {}).items():
            if one.why_not:
                print(f"  not as in the paper: {name}, there {one.value!r} ({one.where}): {one.why_not}")


def _forecast(options: argparse.Namespace) -> None:
    """say how many hours runs will probably take, on cards by their data sheets"""
    rows = Rows()
    for name in [find(options.id).name] if options.id else EXPERIMENTS:
        for scale in [options.scale] if options.scale else find(name).scales:
            hours: Row = {"experiment": name, "scale": scale}
            for speed in (None, *CARDS):
                expected = forecast(name, scale, options.results, speed=speed)
                device = f"{'as on record' if speed is None else speed.device}, h"
                hours[device] = None if expected is None else expected.seconds / 3_600
            rows.append(hours)
    print(rows.table(list(rows[0])))


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _run(options: argparse.Namespace) -> None:
    """run an experiment, or load what is stored of it"""
    name = options.id
    experiment, scale = find(name), options.scale or current_scale()
    config = experiment.config(scale)
    print(f"{experiment.name} at {scale} scale, in {_counted(len(experiment.parts(config)), 'part')}")
    speed = None if jax.default_backend() == "cpu" else measured_speed()
    expected = forecast(name, scale, options.results, speed=speed)
    if expected is None:
        print("no run is on record that would tell how long this takes", flush=True)
    else:
        sizes = [f"{size / 2**30:.1f} GiB ({kind})" for kind, size in expected.peak_bytes.items()]
        memory = " and ".join(sizes) or "memory not on record"
        times = f"{duration(expected.seconds)}, {duration(expected.compile_seconds)} of it to compile"
        print(f"about {times}, {memory}: {expected.basis}", flush=True)
    with _executor(options.executor) as executor:
        found = run(
            name,
            scale,
            options.results,
            resume=options.resume,
            executor=executor,
            on_row=_say if executor is None else None,
        )
    made = found.provenance
    print(f"{_counted(len(found.rows), 'row')}: {duration(made['seconds'])} on {made['device']}")


def _say(row: Row) -> None:
    shown = [(name, value) for name, value in row.items() if isinstance(value, int | float | str)][:6]
    numbers = (
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in shown
    )
    print("  " + ", ".join(numbers), flush=True)


@contextlib.contextmanager
def _executor(wanted: str | None) -> Iterator[Executor | None]:
    kind, _, where = (wanted or "").partition(":")
    if wanted is None:
        yield None
    elif kind == "processes" and where.isdigit() and int(where) > 0:
        with ProcessPoolExecutor(int(where), multiprocessing.get_context("spawn")) as executor:
            yield executor
    elif kind == "dask" and where:
        from distributed import Client

        with Client(where) as client:
            yield client.get_executor()
    else:
        raise ValueError(f"executor must be processes:N or dask:ADDRESS; got {wanted!r}")


def _summarise(options: argparse.Namespace) -> None:
    """say what stored results say of the claims that rest on them"""
    every = {name: experiment.files(options.results) for name, experiment in EXPERIMENTS.items()}
    found = [name for name, files in every.items() if (options.scale in files if options.scale else files)]
    if not options.id and not found:
        at = f" at scale {options.scale}" if options.scale else ""
        raise ValueError(f"results must be a folder that holds results{at}; got {str(options.results)!r}")
    for name in [options.id] if options.id else found:
        for entry in summarise(name, options.scale, options.results):
            print(entry, end="\n\n")


def _ledger(options: argparse.Namespace) -> None:
    """print every claim with its verdict, for people or programs, or write the page of the book"""
    entries = ledger(options.results)
    if options.write is None:
        print(as_json(entries) if options.json else text(entries))
    else:
        Path(options.write).write_text(page(entries))


if __name__ == "__main__":
    sys.exit(main())
