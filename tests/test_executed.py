"""Chapters as `make book` runs them: what is kept, and what is said of those that are not."""

import sys

import nbformat
import pytest

from book import executed

CELLS = {
    "whole": ["x = 1", "x + 1", "3;"],
    "broken": ["x = 1", "x / 0"],
    "dear": ["import jax\njax.jit(lambda x: x + 1)(1.0)"],
}


@pytest.mark.slow
def test_a_chapter_is_kept_that_passes_within_its_budget(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(executed, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(executed, "BUDGET", dict.fromkeys(CELLS, 0))
    monkeypatch.setattr(executed, "digest", lambda chapter: "as it is")
    for variable in ("JUPYTER_PATH", "PYDEVD_DISABLE_FILE_VALIDATION"):
        monkeypatch.setenv(variable, "")  # put back afterwards
    paths = {name: tmp_path / f"{name}.ipynb" for name in CELLS}
    for name, sources in CELLS.items():
        nbformat.write(
            nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, sources)]), paths[name]
        )

    def run(*names):
        arguments = ["book.executed", str(tmp_path / "cache"), *(str(paths[name]) for name in names)]
        monkeypatch.setattr(sys, "argv", arguments)
        return executed.main(), *capsys.readouterr()

    rc, out, err = run(*CELLS)
    assert rc == 1
    assert (
        "ZeroDivisionError" in err
        and "dear compiles 1 programs; its budget in book/programs.toml is 0" in err
    )
    assert "Chapters to run: 3 of 3." in out and "whole: 2 of 3 cells" in out and "none left" in out
    (kept,) = (tmp_path / "kept").iterdir()
    _, value, hidden = nbformat.read(kept, 4).cells
    assert value.outputs[0].data["text/plain"] == "2" and value.execution_count == 2 and not hidden.outputs
    rc, out, _ = run("whole")
    assert rc == 0 and "Chapters to run: 0 of 1." in out
