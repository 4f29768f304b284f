"""Run the chapters that have changed since their last run, and fill the cache that jupyter-book reads.

A chapter whose cells all pass, and which compiles no more programs than `book/programs.toml` allows, is kept.
"""

import argparse
import asyncio
import hashlib
import os
import sys
import time
import tomllib
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbclient import NotebookClient
from nbclient.exceptions import (
    CellExecutionError,
    CellTimeoutError,
    DeadKernelError,
)

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "_build" / "executed"
BUDGET = tomllib.loads((ROOT / "book" / "programs.toml").read_text())
AT_A_TIME = 2

COMPILED = "/jax/core/compile/backend_compile_duration"
COUNT = (
    "import jax as _jax; _programs = []; _jax.monitoring.register_event_duration_secs_listener("
    f"lambda event, _, **__: event == {COMPILED!r} and _programs.append(event)); del _jax"
)
"""What a kernel runs before the first cell: a program counts whether it is compiled or read from disk."""
ASK = "print(len(_programs), sum(__import__('os').times()[:4]))"
"""After the last cell, the number of programs, and the kernel's processor seconds, user and system."""

QUIET = "--IPKernelApp.log_level=ERROR"


def digest(chapter: Path) -> str:
    """The state of what outputs depend on: chapter, package, shipped results, versions, scale, data."""
    parts = [
        chapter,
        ROOT / "requirements.txt",
        *sorted((ROOT / "widebnn").rglob("*.py")),
    ]
    parts += sorted((ROOT / "book" / "results").glob("*.json"))
    found = hashlib.sha256(sys.version.encode())
    for part in parts:
        found.update(part.read_bytes())
    for variable in ("WIDEBNN_SCALE", "WIDEBNN_DATA"):
        found.update(f"{variable}={os.environ.get(variable, '')}".encode())
    return found.hexdigest()


def place(chapter: Path) -> Path:
    """The file that holds the outputs of a chapter as it is now."""
    return KEPT / f"{chapter.stem}-{digest(chapter)[:16]}.ipynb"


class Progress:
    """A line per chapter when it ends, and until then the cells it has done of all its cells.

    A terminal shows that in one line, which changes; elsewhere there is a line for each quarter of a chapter.
    """

    def __init__(self, num_chapters: int) -> None:
        self.left, self.done = num_chapters, {}

    def cell(self, name: str, done: int, of: int) -> None:
        """Another cell of a chapter has been run."""
        self.done[name] = f"{name}: {done} of {of} cells"
        if sys.stdout.isatty():
            print("\r\033[K" + ", ".join(self.done.values()), end="", flush=True)
        elif 4 * done // of > 4 * (done - 1) // of and done < of:
            print(f"      {self.done[name]}", flush=True)

    def chapter(self, name: str, line: str) -> None:
        """It has come to its end."""
        self.done.pop(name, None)
        self.left -= 1
        start = "\r\033[K" if sys.stdout.isatty() else ""
        print(f"{start}{line}; {self.left or 'none'} left", flush=True)


async def run(chapter: Path, kept: Path, progress: Progress) -> str:
    """Run a chapter and keep its outputs, or say why they are not kept."""
    notebook, start = nbformat.read(chapter, 4), time.perf_counter()
    cells = notebook.cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    notebook.cells = [*cells, nbformat.v4.new_code_cell(ASK)]
    name, done = chapter.stem, 0

    def another(**_):
        nonlocal done
        done += 1
        if done <= len(code):
            progress.cell(name, done, len(code))

    client = NotebookClient(
        notebook,
        kernel_name="python3",
        extra_arguments=[f"--IPKernelApp.exec_lines={COUNT}", QUIET],
        resources={"metadata": {"path": str(chapter.parent)}},
        startup_timeout=600,  # on a busy machine a kernel takes minutes to start
        timeout=600,
        on_cell_executed=another,
    )
    try:
        await client.async_execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        progress.chapter(name, f"   failed in cell {done} of {len(code)}  {name}")
        return f"{name}:\n{error}"
    programs, processor = notebook.cells[-1].outputs[0].text.split()
    seconds = time.perf_counter() - start
    told = f"{seconds:5.0f} s {float(processor):6.0f} processor s {programs:>4} programs  {name}"
    progress.chapter(name, told)
    if int(programs) > BUDGET[name]:
        return f"{name} compiles {programs} programs; its budget in book/programs.toml is {BUDGET[name]}"
    notebook.cells = cells
    for number, cell in enumerate(code, 1):
        cell.execution_count = number
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = number
    notebook.metadata["execution_seconds"] = round(seconds, 1)
    KEPT.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, kept)
    return ""


async def run_all(places: dict[Path, Path]) -> list[str]:
    """Run chapters, a few at a time; what is wrong with those that are not kept."""
    progress, slots = Progress(len(places)), asyncio.Semaphore(AT_A_TIME)

    async def in_turn(chapter, kept):
        async with slots:
            return await run(chapter, kept, progress)

    return [fault for fault in await asyncio.gather(*map(in_turn, places, places.values())) if fault]


def main() -> int:
    """Run what is not kept; put everything into jupyter-book's cache."""
    parser = argparse.ArgumentParser(prog="python -m book.executed", description=__doc__)
    parser.add_argument("cache", help="the cache's folder")
    parser.add_argument("chapters", nargs="+", type=Path, metavar="chapter", help="a notebook in book/")
    options = parser.parse_args()
    start = time.perf_counter()
    places = {chapter: place(chapter) for chapter in map(Path.resolve, options.chapters)}
    stale = {chapter: kept for chapter, kept in places.items() if not kept.exists()}
    print(f"Chapters to run: {len(stale)} of {len(places)}.", flush=True)
    os.environ["JUPYTER_PATH"] = str(Path(sys.prefix, "share", "jupyter"))  # before kernels of the user's own
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # else each kernel's debugger warns of frozen modules
    faults = asyncio.run(run_all(stale))
    if changed := [c.stem for c, kept in places.items() if place(c) != kept]:
        faults.append(
            f"{', '.join(changed)}: edited during the run, or the package, the results or requirements.txt "
            "were; run it again"
        )
    if faults:
        print(*faults, sep="\n", file=sys.stderr)
        return 1
    cache = get_cache(options.cache)
    for chapter, kept in places.items():
        notebook = nbformat.read(kept, 4)
        data = {"execution_seconds": notebook.metadata.pop("execution_seconds")}
        cache.cache_notebook_bundle(
            CacheBundleIn(notebook, str(chapter), data=data), check_validity=False, overwrite=True
        )
    if len(stale) > 1:
        seconds, processor = time.perf_counter() - start, sum(os.times()[:4])
        print(f"{seconds:5.0f} s {processor:6.0f} processor s in all", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
