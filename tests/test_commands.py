"""What the README, CONTRIBUTING and the page on running tell a reader to type is there."""

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "book/running.md", "book/experiments/README.md")
MODULES = (
    "benchmarks",
    "benchmarks.evidence",
    "benchmarks.first_draws",
    "benchmarks.tabular",
    "book.executed",
    "book.experiments",
    "book.measure_run_times",
)


def test_make_has_each_target_that_is_named():
    named = {
        name for page in PAGES for name in re.findall(r"(?m)(?:^|`)make ([a-z]+)", (ROOT / page).read_text())
    }
    has = re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text())
    assert {"tour", "test", "book", "bench", "lock"} <= named <= set(has)


def test_programs_on_pages_are_those_that_tests_run():
    """By `test_readme`, and by `experiments/test_experiment`."""
    assert [(ROOT / page).read_text().count("```python") for page in PAGES] == [1, 0, 0, 1]


@pytest.mark.parametrize("module", MODULES)
def test_help_answers(module, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [module, "--help"])
    for imported in (module, f"{module}.__main__"):
        monkeypatch.delitem(sys.modules, imported, raising=False)
    with pytest.raises(SystemExit) as end:
        runpy.run_module(module, run_name="__main__")
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("usage: ")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """What `make setup` needs, and a path on which only the commands of a test are found."""
    for name in ("Makefile", ".ci/install", "requirements.txt", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy2(ROOT / name, tmp_path / name)
    found = tmp_path / "bin"
    found.mkdir()
    for name in ("make", "bash", "uname", "wc", "cat", "tail", "grep", "mktemp", "dirname", "touch", "mkdir"):
        (found / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(found))
    return tmp_path


def stub(file: Path, script: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!{shutil.which('bash')}\n{script}\n")
    file.chmod(0o755)


def setup_fails(checkout: Path) -> str:
    """The last line of `make setup`, before make's own."""
    done = subprocess.run(["make", "setup"], cwd=checkout, capture_output=True, text=True)
    assert done.returncode == 2
    *_, line, _ = done.stderr.splitlines()
    return line


def test_without_a_recent_python_make_says_what_to_install(checkout):
    stub(checkout / "bin/python3", "exit 1")  # as `sys.version_info < (3, 12)` ends
    assert setup_fails(checkout).startswith(
        "make: found no Python 3.12 or later; install one from python.org"
    )


@pytest.mark.parametrize(
    ("pip", "advice"),
    [
        ("ERROR: Could not install packages: [Errno 28] No space left on device", "free 3 GB"),
        ("WARNING: Retrying after connection broken by 'NewConnectionError'", "connect to the network"),
        ("No module named pip", r"remove it \(rm -rf .venv\)"),
    ],
)
def test_where_an_installation_fails_make_says_what_to_do(checkout, pip, advice):
    """Also in an environment that is broken."""
    stub(checkout / ".venv/bin/python", f'echo "{pip}" >&2; exit 1')
    assert re.fullmatch(f"make: .*{advice}.* run make again", setup_fails(checkout))
