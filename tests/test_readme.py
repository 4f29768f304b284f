"""The README's quickstart runs as it stands."""

import io
import re
import runpy
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.slow
def test_quickstart(float32, capsys):
    """And what the paragraph after it says of particles and the evidence."""
    text = README.read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    space: dict = {}
    exec(compile(program, "README.md", "exec"), space)
    prediction = space["draws"].streamed["prediction"]
    assert space["draws"].stopped == "converged"
    assert prediction.effective_sample_size.min() >= 400 and prediction.rhat.max() <= 1.01
    grid, x, std = (np.ravel(space[name]) for name in ("grid", "x", "std"))
    assert min(std[0], std[-1]) > 2 * np.interp(x, grid, std).max()  # beyond the data, and at them
    stored = (README.parent / "book/figures/quickstart.txt").read_text()  # which the front page shows
    printed, stored = (
        re.sub(r"[\d.]+", "0", re.sub(r" +", " ", text)) for text in (capsys.readouterr().out, stored)
    )
    assert printed == stored
    lines = re.findall(r"`((?:run\b|wb\.nngp\.)[^`]*)`", text)
    assert len(lines) == 5
    for line in lines:
        exec(compile(line, "README.md", "exec"), space)
    assert space["run"].log_evidence_error < 1


def test_local_links_exist():
    for target in re.findall(r"\]\((?!http)([^)]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target


def test_figure_is_what_the_shipped_results_draw(monkeypatch):
    """In the looks of today, by its lines; the rest of the file is Matplotlib's affair."""
    drawn = io.StringIO()
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, _, **kw: save(figure, drawn, format="svg", **kw))
    with matplotlib.rc_context():  # the script sets its own
        runpy.run_path(str(README.parent / "book/figures/draw_acceptance.py"))
    stored = (README.parent / "book/figures/acceptance.svg").read_text()
    lines = [re.findall(r"M [\d. ]+|stroke: #\w+", text) for text in (drawn.getvalue(), stored)]
    assert len(lines[0]) > 50
    assert lines[0] == lines[1]
