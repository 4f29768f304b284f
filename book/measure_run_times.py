"""Run chapters at the present scale, compiling all, and write how long each took into its header."""

import argparse
import os
import re
import time
from pathlib import Path

import jax
import nbformat
from nbclient import NotebookClient

import widebnn as wb

SLOWER = 1.7
"""How many times as long another machine with two cores takes: `make book` took 17 min here, and 29 there."""

ROW = re.compile(r"^\| \*\*Run time\*\* \| (.*) \|$", re.MULTILINE)


def device() -> str:
    """What ran it, in a reader's words."""
    kind = jax.devices()[0].device_kind
    return f"{os.cpu_count()} CPU cores" if kind == "cpu" else kind


def with_run_time(header: str, scale: str, measured: str) -> str:
    """The header whose row of run times has this scale's entry, in the order of the scales."""
    row = ROW.search(header)
    if row is None:
        raise ValueError(f"the header has no row '| **Run time** | … |':\n{header}")
    times = dict(entry.split(": ", 1) for entry in row[1].split(" · ") if ": " in entry) | {scale: measured}
    entries = [f"{name}: {times[name]}" for name in wb.scale.SCALES if name in times]
    return header[: row.start(1)] + " · ".join(entries) + header[row.end(1) :]


def in_words(seconds: float) -> str:
    """From the time measured here to that of a slower machine."""
    times = seconds, SLOWER * seconds
    unit, name = (1, "s") if times[1] < 120 else (60, "min")
    return " to ".join(f"{time / unit:.0f}" for time in times) + f" {name}"


def seconds(chapter: Path) -> float:
    """Wall time of a chapter from a fresh kernel, which takes no program from disk."""
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    start = time.perf_counter()
    NotebookClient(
        nbformat.read(chapter, as_version=4), timeout=None, resources={"metadata": {"path": "book"}}
    ).execute()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chapters", nargs="+", type=Path, metavar="chapter", help="a notebook in book/")
    scale = wb.current_scale()
    for chapter in parser.parse_args().chapters:
        measured = in_words(seconds(chapter))
        # Read again: a run of hours must not undo what was edited meanwhile.
        notebook = nbformat.read(chapter, as_version=4)
        notebook.cells[0].source = with_run_time(notebook.cells[0].source, scale, f"{measured} on {device()}")
        nbformat.write(notebook, chapter)
        print(f"{chapter}: {scale}: {measured}")


if __name__ == "__main__":
    main()
