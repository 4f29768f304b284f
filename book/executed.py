"""Chapters are run once: nbval runs and checks them, and the book is built from what they put out.

As a pytest plugin (`-p book.executed`) this keeps the outputs of every chapter whose cells all pass.
`python -m book.executed CACHE CHAPTER …` runs the chapters that have changed since, and fills the cache that
jupyter-book reads.
"""

import hashlib
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbval.plugin import IPyNbCell

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "_build" / "executed"
NBVAL = [
    "-n",
    "2",
    "--dist",
    "loadfile",
    "--nbval-lax",
    "--nbval-current-env",
    "--nbval-cell-timeout=600",
]

PLACE = pytest.StashKey[Path]()
FAILED = pytest.StashKey[bool]()
SECONDS = pytest.StashKey[float]()


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
    """In place of a dot per cell, a line per chapter when it ends."""

    def __init__(self) -> None:
        self.left: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Count the cells of each chapter, which every worker has collected."""
        self.left = Counter(cell.split("::")[0] for cell in ids)

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, str] | None:
        """Show nothing for a cell that passed."""
        return ("passed", "", "") if report.passed else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the seconds of cells; the last cell ends its chapter."""
        chapter = report.nodeid.split("::")[0]
        self.seconds[chapter] += report.duration
        self.left[chapter] -= report.when == "teardown"
        if not self.left[chapter]:
            print(
                f"{self.seconds[chapter]:5.0f} s  {Path(chapter).stem}",
                flush=True,
            )


def pytest_configure(config: pytest.Config) -> None:
    """Report progress from the process that hears of all chapters."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress())


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note where outputs belong before anything runs: what they depend on may be edited meanwhile."""
    for notebook in {
        item.parent for item in session.items if isinstance(item, IPyNbCell)
    }:
        notebook.stash[PLACE] = place(notebook.path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo
) -> Iterator[None]:
    """Remember which chapters failed, and how long their cells took."""
    report = yield
    if isinstance(item, IPyNbCell):
        stash = item.parent.stash
        stash[FAILED] = stash.get(FAILED, False) or report.failed
        stash[SECONDS] = stash.get(SECONDS, 0.0) + call.duration
    return report


def shown(cell: IPyNbCell) -> list:
    """Outputs of a cell; without the value of a last line that ends with a semicolon.

    IPython leaves that value out by a look at its history, which a kernel of nbval does not keep.
    """
    is_quiet = cell.cell.source.rstrip().endswith(";")
    return [o for o in cell.test_outputs if not (is_quiet and o.output_type == "execute_result")]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep each chapter of which every cell has run and passed."""
    cells = [
        item
        for item in getattr(session, "items", [])
        if isinstance(item, IPyNbCell)
    ]
    for notebook in dict.fromkeys(cell.parent for cell in cells):
        own = [cell for cell in cells if cell.parent is notebook]
        if (
            any(cell.test_outputs is None for cell in own)
            or notebook.stash[FAILED]
        ):
            continue
        for number, cell in enumerate(own, 1):
            cell.cell.outputs, cell.cell.execution_count = shown(cell), number
        notebook.nb.metadata["execution_seconds"] = round(
            notebook.stash[SECONDS], 1
        )
        KEPT.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook.nb, notebook.stash[PLACE])


def main() -> int:
    """Run what is not kept; put everything into jupyter-book's cache."""
    folder, *names = sys.argv[1:]
    chapters = [Path(name).resolve() for name in names]
    start = time.perf_counter()
    places = {chapter: place(chapter) for chapter in chapters}
    stale = [str(path) for path, kept in places.items() if not kept.exists()]
    scale = os.environ.get("WIDEBNN_SCALE", "the device's")
    print(
        f"{len(stale)} of {len(chapters)} chapters are to be run, two at a time,"
        f" at {scale} scale:",
        flush=True,
    )
    if stale:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "book.executed",
            *NBVAL,
            *stale,
        ]
        # Without it, each kernel's debugger warns of frozen modules.
        quiet = {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        if rc := subprocess.run(
            command, cwd=ROOT, env=os.environ | quiet
        ).returncode:
            return rc
    if changed := [c.stem for c, kept in places.items() if place(c) != kept]:
        print(
            f"{', '.join(changed)}: edited during the run, or the package, the"
            " results or requirements.txt were; run it again",
            file=sys.stderr,
        )
        return 1
    cache = get_cache(folder)
    for chapter, kept in places.items():
        notebook = nbformat.read(kept, 4)
        seconds = notebook.metadata.pop("execution_seconds")
        data = {"execution_seconds": seconds}
        cache.cache_notebook_bundle(
            CacheBundleIn(notebook, str(chapter), data=data),
            check_validity=False,
            overwrite=True,
        )
    print(f"{time.perf_counter() - start:5.0f} s  altogether", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
