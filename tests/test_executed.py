"""Chapters as `make book` runs them: what is kept, and what is said of those that are not."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

BOOK = Path(__file__).parents[1] / "book"
CELLS = {
    "whole": ["x = 1", "x + 1", "3;"],
    "broken": ["x = 1", "x / 0"],
    "dear": ["import jax\njax.jit(lambda x: x + 1)(1.0)"],
}


@pytest.mark.slow
def test_a_chapter_is_kept_that_passes_within_its_budget(tmp_path):
    book = tmp_path / "book"
    (book / "results").mkdir(parents=True)
    (tmp_path / "requirements.txt").write_text("")
    shutil.copy(BOOK / "executed.py", book)
    (book / "programs.toml").write_text("\n".join(f"{name} = 0" for name in CELLS))
    for name, sources in CELLS.items():
        notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, sources)])
        nbformat.write(notebook, book / f"{name}.ipynb")

    def run(*names):
        command = [sys.executable, "-m", "book.executed", "cache", *(f"book/{name}.ipynb" for name in names)]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout

    rc, out = run(*CELLS)
    assert rc == 1, out
    assert "ZeroDivisionError" in out
    assert "dear compiles 1 programs; its budget in book/programs.toml is 0" in out
    assert "Chapters to run: 3 of 3." in out and "bringing up" not in out and "none left" in out
    (kept,) = (tmp_path / "_build" / "executed").iterdir()
    _, value, hidden = nbformat.read(kept, 4).cells
    assert value.outputs[0].data["text/plain"] == "2" and value.execution_count == 2 and not hidden.outputs
    rc, out = run("whole")
    assert rc == 0 and "Chapters to run: 0 of 1." in out, out
