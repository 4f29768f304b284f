"""Draw the README's figure from the shipped results: `python book/figures/draw_acceptance.py`."""

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import widebnn as wb

matplotlib.rcParams["svg.hashsalt"] = "widebnn"

rows = wb.results("over_width", "laptop").rows
widths = np.array(sorted(rows.values("width")))
with wb.plots.style():
    fig, axes = plt.subplots(1, 2, figsize=(6.4, 3.4), sharey=True)
for ax, step_size in zip(axes, (0.2, 0.1), strict=True):
    curves = {}
    for sampler in ("pCN", "pCNL", "Langevin", "random walk"):
        chosen = rows.where(sampler=sampler, step_size=step_size)
        found = chosen.over("width", "acceptance", "acceptance_error")
        mean, error = np.array(found).T
        curves[sampler] = mean, mean - 2 * error, mean + 2 * error
    ylabel = f"acceptance, β = {step_size}"
    wb.plots.width_curves(widths, curves, ylabel=ylabel, ax=ax)
    ax.set_ylim(-0.03, 1.03)
    ax.get_legend().remove()
fig.legend(
    *axes[0].get_legend_handles_labels(),
    loc="outside upper center",
    ncols=4,
    frameon=False,
)
fig.savefig(
    Path(__file__).with_name("acceptance.svg"), metadata={"Date": None}
)
