"""Run the chapters that have changed since their last run, and fill the cache that jupyter-book reads.

As a pytest plugin (`-p book.executed`) this keeps the outputs of every chapter whose cells all pass, and
holds the number of programs that each compiles to its budget in `book/programs.toml`.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import time
import tomllib
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
NBVAL = ["-n", "2", "--dist", "loadfile", "--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=600"]

PLACE = pytest.StashKey[Path]()
FAILED = pytest.StashKey[bool]()
SECONDS = pytest.StashKey[float]()

BUDGET = tomllib.loads((ROOT / "book" / "programs.toml").read_text())
COMPILED = "/jax/core/compile/backend_compile_duration"
COUNT = (
    "import jax as _jax; _programs = []; _jax.monitoring.register_event_duration_secs_listener("
    f"lambda event, _, **__: event == {COMPILED!r} and _programs.append(event)); del _jax"
)
"""What a kernel runs before the first cell: a program counts whether it is compiled or read from disk."""
ASKED = {"programs": "len(_programs)", "processor": "round(sum(__import__('os').times()[:4]))"}
"""After the last cell, the number of programs, and the kernel's processor seconds, user and system."""


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


class Programs(pytest.Item):
    """After the last cell of a chapter: it has compiled no more programs than its budget."""

    def runtest(self) -> None:
        """Ask the kernel what the chapter has cost."""
        kernel = self.parent.kernel
        message = kernel.kc.execute("", silent=True, user_expressions=ASKED)
        while (reply := kernel.kc.get_shell_msg(timeout=60))["parent_header"]["msg_id"] != message:
            pass
        told = {
            name: int(value["data"]["text/plain"])
            for name, value in reply["content"]["user_expressions"].items()
        }
        self.user_properties += told.items()
        chapter = self.parent.path.stem
        if told["programs"] > BUDGET[chapter]:
            pytest.fail(
                f"{chapter} compiles {told['programs']} programs; its budget in book/programs.toml is "
                f"{BUDGET[chapter]}",
                pytrace=False,
            )


class Progress:
    """A line per chapter when it ends, and until then the cells it has done of all its cells.

    A terminal shows that in one line, which changes; elsewhere there is a line for each quarter of a chapter.
    """

    def __init__(self) -> None:
        self.size: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self.processor = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Let xdist say nothing of its own."""
        if (xdist := session.config.pluginmanager.getplugin("dsession")) is not None:
            xdist.terminal = None

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Count the cells of each chapter, which every worker has collected."""
        self.size = Counter(cell.split("::")[0] for cell in ids)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Show nothing for a cell that passed."""
        return ("passed", "", "") if report.passed else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the seconds of cells; the last one, which counts programs, ends its chapter."""
        chapter = report.nodeid.split("::")[0]
        self.seconds[chapter] += report.duration
        if report.when != "teardown":
            return
        self.done[chapter] += 1
        done, size = self.done[chapter], self.size[chapter]
        if done < size:
            self._cells(done, size - 1)
            return
        told = dict(report.user_properties)
        self.processor += told.get("processor", 0)
        left = sum(self.done[name] < size for name, size in self.size.items())
        start = "\r\033[K" if sys.stdout.isatty() else ""
        print(
            f"{start}{self.seconds[chapter]:5.0f} s {told.get('processor', '?'):>6} processor s "
            f"{told.get('programs', '?'):>4} programs  {Path(chapter).stem}; {left or 'none'} left",
            flush=True,
        )

    def _cells(self, done: int, size: int) -> None:
        if sys.stdout.isatty():
            running = [
                f"{Path(name).stem}: {done} of {self.size[name] - 1} cells"
                for name, done in self.done.items()
                if done < self.size[name]
            ]
            print("\r\033[K" + ", ".join(running), end="", flush=True)
        elif len(self.size) == 1 and 4 * done // size > 4 * (done - 1) // size:
            print(f"      {done} of {size} cells", flush=True)

    def pytest_sessionfinish(self) -> None:
        """Say what all chapters took."""
        if len(self.size) > 1:
            print(f"        {self.processor:6} processor s in all", flush=True)


def pytest_configure(config: pytest.Config) -> None:
    """Report progress from the process that hears of all chapters; xdist says no more than that it starts."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress())
        config.pluginmanager.set_blocked("terminaldistreporter")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count the programs of each chapter after its last cell."""
    last = {item.parent: i for i, item in enumerate(items) if isinstance(item, IPyNbCell)}
    for notebook, i in sorted(last.items(), key=lambda pair: -pair[1]):
        items.insert(i + 1, Programs.from_parent(notebook, name="programs"))


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let the kernel count, before the first cell; `trylast`, when it has been started."""
    if isinstance(item, IPyNbCell) and item.cell_num == 0:
        item.parent.kernel.kc.execute(COUNT, silent=True)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note where outputs belong before anything runs: what they depend on may be edited meanwhile."""
    for notebook in {item.parent for item in session.items if isinstance(item, IPyNbCell)}:
        notebook.stash[PLACE] = place(notebook.path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    """Remember which chapters failed, and how long their cells took."""
    report = yield
    if isinstance(item, IPyNbCell | Programs):
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
    cells = [item for item in getattr(session, "items", []) if isinstance(item, IPyNbCell)]
    for notebook in dict.fromkeys(cell.parent for cell in cells):
        own = [cell for cell in cells if cell.parent is notebook]
        if any(cell.test_outputs is None for cell in own) or notebook.stash[FAILED]:
            continue
        for number, cell in enumerate(own, 1):
            cell.cell.outputs, cell.cell.execution_count = shown(cell), number
        notebook.nb.metadata["execution_seconds"] = round(notebook.stash[SECONDS], 1)
        KEPT.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook.nb, notebook.stash[PLACE])


def main() -> int:
    """Run what is not kept; put everything into jupyter-book's cache."""
    parser = argparse.ArgumentParser(prog="python -m book.executed", description=__doc__)
    parser.add_argument("cache", help="the cache's folder")
    parser.add_argument("chapters", nargs="+", type=Path, metavar="chapter", help="a notebook in book/")
    options = parser.parse_args()
    start = time.perf_counter()
    places = {chapter: place(chapter) for chapter in map(Path.resolve, options.chapters)}
    stale = [str(chapter) for chapter, kept in places.items() if not kept.exists()]
    print(f"Chapters to run: {len(stale)} of {len(places)}.", flush=True)
    if stale:
        plain = ["-qq", "-o", "console_output_style=classic"]  # no share that is done beside our own lines
        command = [sys.executable, "-m", "pytest", *plain, "-p", "book.executed", *NBVAL, *stale]
        # Without it a kernel's debugger warns of frozen modules, and threads of BLAS spin and take the cores.
        quiet = {"PYDEVD_DISABLE_FILE_VALIDATION": "1", "OPENBLAS_NUM_THREADS": "1"}
        if rc := subprocess.run(command, cwd=ROOT, env=os.environ | quiet).returncode:
            return rc
    if changed := [c.stem for c, kept in places.items() if place(c) != kept]:
        print(
            f"{', '.join(changed)}: edited during the run, or the package, the results or requirements.txt "
            "were; run it again",
            file=sys.stderr,
        )
        return 1
    cache = get_cache(options.cache)
    for chapter, kept in places.items():
        notebook = nbformat.read(kept, 4)
        data = {"execution_seconds": notebook.metadata.pop("execution_seconds")}
        cache.cache_notebook_bundle(
            CacheBundleIn(notebook, str(chapter), data=data), check_validity=False, overwrite=True
        )
    print(f"{time.perf_counter() - start:5.0f} s altogether", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
