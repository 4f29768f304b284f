"""Chapters as Colab opens them: the notebook alone, in a kernel that has loaded NumPy, at smoke scale.

The environment is made from `pins.txt`; the first cell of a chapter brings it up to date. In that cell one
thing differs: the package's address is a wheel of this checkout.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted((ROOT / "book").glob("[0-9]*.ipynb"))
PINS = Path(__file__).with_name("pins.txt")
ADDRESS = "git+https://github.com/widebnn/widebnn"
NUMPY = "2.1.3"
STARTED = """\
import sys, types, numpy
sys.modules["google.colab"] = types.SimpleNamespace(output=None)
"""
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def run(*command: str | Path, **options) -> str:
    """What a command prints; its error output in the message where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def python_of_colab() -> str:
    """Python 3.13, by any of its names."""
    program = "import sys; assert sys.version_info[:2] == (3, 13); print(sys.executable)"
    for name in ("python3.13", "python3", sys.executable):
        try:
            # where pyenv keeps several, it gives the one that is asked for
            return run(name, "-c", program, env=os.environ | {"PYENV_VERSION": "3.13"})
        except (OSError, AssertionError):
            continue
    pytest.skip("Colab's Python, 3.13, is not installed here")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def fresh() -> Path:
    """An environment as Colab starts with it, made once per list of pins; copy it before use."""
    made = ROOT / "_build" / "colab" / hashlib.sha256(PINS.read_bytes()).hexdigest()[:16]
    made.parent.mkdir(parents=True, exist_ok=True)
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # workers want it at the same time: one makes it, the others wait
        if not made.exists():
            folder = made.with_suffix(".partial")  # left behind where pip was stopped
            run(python_of_colab(), "-m", "venv", "--clear", "--without-pip", folder)
            options = ("--quiet", "--no-deps", "--no-compile", "--only-binary=:all:")
            run(*PIP, "--python", folder / "bin" / "python", "install", *options, "-r", PINS)
            folder.rename(made)
    return made


@pytest.fixture(scope="session")
def colab(fresh: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment that chapters share: the first of them installs the package, as in Colab."""
    return copy(fresh, tmp_path_factory.mktemp("shared") / "env")


def copy(environment: Path, folder: Path) -> Path:
    """A copy that shares its files: pip replaces files and writes into none."""
    return shutil.copytree(environment, folder, symlinks=True, copy_function=os.link)


@pytest.fixture
def execute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Execute cells in a new kernel of an environment, in an empty folder, with no word of the checkout."""
    for variable in ("PYTHONPATH", "WIDEBNN_SCALE", "WIDEBNN_DATA", "XLA_FLAGS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("PIP_NO_COMPILE", "1")  # to save time
    empty, spec = tmp_path / "empty", tmp_path / "kernels" / "colab" / "kernel.json"
    empty.mkdir()
    spec.parent.mkdir(parents=True)

    def execute(cells: list, environment: Path, at_start: str = "") -> None:
        python = str(environment / "bin" / "python")
        argv = [
            python,
            "-m",
            "ipykernel_launcher",
            "-f",
            "{connection_file}",
            f"--IPKernelApp.exec_lines={STARTED}{at_start}",
        ]
        spec.write_text(json.dumps({"argv": argv, "display_name": "Colab", "language": "python"}))
        notebook = nbformat.v4.new_notebook(cells=cells)
        place = {"metadata": {"path": str(empty)}}
        NotebookClient(notebook, kernel_name="colab", timeout=600, resources=place).execute()

    return execute


def chapter_cells(path: Path, wheel: Path) -> list:
    """The cells of a chapter, the first of which installs the wheel."""
    cells = nbformat.read(path, as_version=4).cells
    assert ADDRESS in cells[1].source
    cells[1].source = cells[1].source.replace(ADDRESS, wheel.as_uri())
    return cells


def printed(cell: nbformat.NotebookNode, name: str = "stdout") -> str:
    return "".join(output.text for output in cell.outputs if output.get("name") == name)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapter_alone(path, colab, wheel, execute):
    versions = nbformat.v4.new_code_cell(
        "from importlib.metadata import version\n"
        "import numpy, widebnn\n"
        "print(numpy.__version__, version('numpy'), widebnn.current_scale(), widebnn.__file__)"
    )
    cells = [*chapter_cells(path, wheel), versions]
    execute(cells, colab)
    loaded, installed, scale, file = printed(cells[-1]).split()
    assert loaded == installed == NUMPY
    assert scale == "smoke"
    assert Path(file).is_relative_to(colab)
    assert not printed(cells[1], "stderr")


def test_numpy_that_nothing_fits_is_replaced(fresh, wheel, execute, tmp_path):
    """As when Colab has fallen behind: the kernel ends, and a new one runs the same cells."""
    environment = copy(fresh, tmp_path / "env")
    cells = chapter_cells(CHAPTERS[0], wheel)[1:3]
    with pytest.raises(CellExecutionError, match="NumPy is another one now: run all cells again"):
        execute(cells, environment, "numpy.__version__ = '2.1.99'")
    execute(cells, environment)


def test_the_gpu_survives(fresh, wheel):
    """Where there is a GPU, jax, jaxlib and plugin come in one version, beside the same NumPy."""
    wanted = ("jax[cuda12]", f"widebnn @ {wheel.as_uri()}", f"numpy=={NUMPY}")
    options = ("--quiet", "--dry-run", "--report", "-")
    report = json.loads(run(*PIP, "--python", fresh / "bin" / "python", "install", *options, *wanted))
    found = {item["metadata"]["name"]: item["metadata"]["version"] for item in report["install"]}
    assert found["jax"] == found["jaxlib"] == found["jax-cuda12-plugin"] == found["jax-cuda12-pjrt"]
    assert found.get("numpy", NUMPY) == NUMPY
