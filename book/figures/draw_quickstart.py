"""Keep what the program of the README prints, and draw what it predicts."""

import contextlib
import io
import re
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import widebnn as wb

matplotlib.rcParams["svg.hashsalt"] = "widebnn"

here = Path(__file__).parent
(program,) = re.findall(
    r"```python\n(.*?)```",
    (here / "../../README.md").read_text(),
    flags=re.DOTALL,
)
printed, ran = io.StringIO(), {}
with contextlib.redirect_stdout(printed):
    exec(program, ran)
(here / "quickstart.txt").write_text(printed.getvalue())

grid, mean, std = (np.ravel(ran[name]) for name in ("grid", "mean", "std"))
with wb.plots.style():
    fig, ax = plt.subplots(figsize=(5.5, 3.0))
ax.fill_between(grid, mean - 2 * std, mean + 2 * std, alpha=0.3)
ax.plot(grid, mean)
ax.plot(ran["x"], ran["y"], "ko")
ax.set(xlabel="input x", ylabel="y")
fig.savefig(here / "quickstart.svg", metadata={"Date": None})
