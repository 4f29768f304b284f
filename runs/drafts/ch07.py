"""Chapter 7 on two runs: over_width for acceptance, mixing_over_width for effective samples."""
import json, sys
path = "book/07-cifar10-over-width.ipynb"
nb = json.load(open(path))
cells = {c["id"]: c for c in nb["cells"]}
def put(id, text): cells[id]["source"] = text.strip("\n").splitlines(keepends=True)
def sub(id, *pairs):
    s = "".join(cells[id]["source"])
    for old, new in pairs:
        assert s.count(old) == 1, (id, old, s.count(old)); s = s.replace(old, new)
    put(id, s)
order = [c["id"] for c in nb["cells"]]
# acceptance before effective samples
moved = ["acceptance-prose", "acceptance-check", "fig-acceptance"]
rest = [i for i in order if i not in moved]
at = rest.index("differ") + 1
order = rest[:at] + moved + rest[at:]
# the section's title before the reminder
order.remove("ess-prose"); order.insert(order.index("table-prose"), "ess-prose")
put("real-title", r"""
## CIFAR-10

The same grid on CIFAR-10, photographs of ten kinds of things in 32 × 32 coloured pixels: 256 of them, at widths up to 4,096. It takes a while, so its results are shipped with the book. There are two runs: `over_width` has three $\beta$ and chains that are long enough for acceptance; {py:obj}`widebnn.experiments.mixing_over_width` has the largest $\beta$ alone and chains that are long enough to count effective samples. `python -m widebnn.experiments run` with either name computes it again, at a scale of your choice.
""")
put("real", r"""
results, mixing = map(
    wb.experiments.shipped, ("over_width", "mixing_over_width")
)
rows = results.rows
for run in (results, mixing):
    print(f"{run.name}: {run.source}")
""")
sub("differ-prose", ("The table lists the fields in which the shipped run differs from the book's own configuration at scale `paper`", "The table lists the fields in which the run for acceptance differs from the book's own configuration at scale `paper`"),
    ("and the test images that the shipped run predicts", "and the test images that the shipped runs predict"))
put("ess-prose", r"""
## Effective samples

Acceptance is not mixing. What counts is the effective number of samples that a step gives, on functions that the data inform. The papers estimate it for projections of the weights and for predictions, and report mean, least and largest.
""")
put("table", r'''
sizes = mixing.config
steps = dict(zip(sizes["samplers"], sizes["num_steps"], strict=True))
quantities = ("weights", "predictions", "potential")
print(*(f"{name}: {num:,} steps" for name, num in steps.items()), sep="\n")


def samples(row, quantity):
    """Effective samples in the run."""
    return (row[f"ess_{quantity}"] or 0) * steps[row["sampler"]]


def ess(quantity):
    """Effective samples per step as the table has them."""

    def shown(row):
        found = samples(row, quantity)
        mark = "?" if found < 10 else "≈" if found < LEAST_RESOLVED else ""
        per_step = row[f"ess_{quantity}"]
        return None if per_step is None else f"{mark}{per_step:.5f}"

    return shown
''')
put("ess-table", r"""
columns = {
    "width": "width",
    "sampler": "sampler",
    "acceptance": "{acceptance:.3f} ± {acceptance_error:.3f}",
}
columns |= {f"ESS/step, {q}": ess(q) for q in quantities}
(largest,) = sizes["step_sizes"]
print(f"β = {largest}")
mixing.rows.table(columns)
""")
nb["cells"] = [cells[i] for i in order]
open(path, "w").write(json.dumps(nb, indent=1, ensure_ascii=False) + "\n")
# --- second half: cells that depend on the long run; texts to be checked against it
nb = json.load(open(path)); cells = {c["id"]: c for c in nb["cells"]}
put("table-prose", "".join(cells["table-prose"]["source"]).split("An ESS below ten")[0] + r"""An ESS below ten is a guess, whatever its decimals; it is marked with a question mark here, and left out of the figure below. From ten on it tells at best an order of magnitude, and is marked with ≈. The ledger calls it *resolved* from 150 on, which stand for a hundred ({py:data}`widebnn.diagnostics.LEAST_RESOLVED`), because a short chain seems to have more than it does. The long run gives most of its steps to pCN and pCNL; Langevin is there for comparison.
""")
put("resolved", r'''
def resolved(row):
    """Whether the weights have enough in bulk and tail too."""
    per_step = [row[f"{kind}_weights"] for kind in KINDS]
    least = min(each or 0 for each in per_step)
    return least * steps[row["sampler"]] >= LEAST_RESOLVED


KINDS = ("ess", "ess_bulk", "ess_tail")
known = [(r["sampler"], r["width"]) for r in mixing.rows if resolved(r)]
print("resolved:", *(f"{name} at {width:,}" for name, width in known))
assert {"pCN", "pCNL"} == {name for name, width in known if width == 4_096}
assert not any("Langevin" in name for name, _ in known)
''')
put("resolved-prose", r"""
pCNL is resolved at every width and pCN in the wider networks; in the narrowest it hardly moves at this $\beta$. None of Langevin's entries is. Each row is one chain, so there is no $\hat R$.
""")
put("fig-ess", r"""
widths = sorted(mixing.rows.values("width"))
fig, axes = plt.subplots(2, 1, figsize=(6, 6.4), sharex=True)
for ax, quantity in zip(axes, ("weights", "predictions"), strict=True):
    curves = {}
    for sampler in sizes["samplers"]:
        ends = [
            series(mixing.rows, sampler, largest, f"ess{end}_{quantity}")
            for end in ("", "_low", "_high")
        ]
        is_shown = ends[0] * steps[sampler] >= 10
        if is_shown.any():
            curves[sampler] = np.where(is_shown, ends, np.nan)
    ylabel = f"ESS per step, {quantity}"
    wb.plots.width_curves(widths, curves, ylabel=ylabel, log_y=True, ax=ax)
    ax.label_outer()
axes[1].get_legend().remove()
""")
json.dump(nb, open(path, "w"), indent=1, ensure_ascii=False); open(path, "a").write("\n")
nb = json.load(open(path)); cells = {c["id"]: c for c in nb["cells"]}
def after(id, new, text, kind="code"):
    cell = {"cell_type": kind, "id": new, "metadata": {}, "source": []}
    if kind == "code": cell |= {"execution_count": None, "outputs": []}
    i = next(k for k, c in enumerate(nb["cells"]) if c["id"] == id)
    nb["cells"].insert(i + 1, cell); cells[new] = cell; put(new, text)
after("fig-ess", "mixing-report", 'wb.experiments.report("P-F2")')
sub("limit-prose", ("The cell compares the estimates with it. At the largest $\\beta$ they are a part of the limit, and rest on so few effective samples that they prove no trend. At half that $\\beta$ the limit itself is fewer than ten in a run of this length, so whatever passes for ten or more is too high.",
 "The cell compares with it what is resolved. pCNL, which accepts nearly always in a wide network, comes close. pCN has about the share that its acceptance suggests, so that it has more to gain from the width."))
put("limit", r"""
def limit(step_size):
    a = np.sqrt(1 - step_size**2)
    return (1 - a) / (1 + a)


print(f"β = {largest}: the limit is {limit(largest):.5f} per step")
share = {}
for row in mixing.rows:
    if resolved(row):
        name, width = row["sampler"], row["width"]
        share[name, width] = row["ess_weights"] / limit(largest)
        print(f"{name:4}, width {width:5,}: {share[name, width]:.0%} of it")
assert share["pCNL", 4_096] > 0.8
assert share["pCN", 4_096] < 0.5
""")
put("cost-prose", r"""
## What a step costs

A step of pCNL or Langevin needs a gradient, a step of pCN only a potential. {cite:t}`pezzetti2025` conclude that pCNL is not worth it. Per step it has more effective samples at every width. Per second the table has it ahead as well, even in the widest network, where pCN has gained most; but each sampler runs at the same $\beta$, which suits one better than the other, and other work ran beside the run, so that its seconds are rough. Where both come to {eq}`eq-pcn-limit`, which a still wider network would let them, pCN is ahead by what a gradient costs. [](14-faster.ipynb) compares tuned samplers by the second, on a quiet machine.
""")
put("cost", r"""
report = wb.experiments.report("P-C")
gain, slower = report.findings
assert gain.value < 1 < slower.value
mixing.rows.where(width=4_096).table(
    {
        "sampler": "sampler",
        "per 1,000 steps, papers'": lambda row: (
            row["ess_weights"] and 1e3 * row["ess_weights"]
        ),
        "ms per step": "{ms_per_step:.1f}",
    }
)
""")
after("cost", "cost-report", "report")
sub("short", ("Effective sample sizes take far longer runs than acceptance. None of the shipped ones is resolved, and what they say is an order of magnitude at best.",
 "Effective sample sizes take far longer runs than acceptance. Those of pCN grow with the width; pCNL has more per step, at the price of a gradient."))
json.dump(nb, open(path, "w"), indent=1, ensure_ascii=False); open(path, "a").write("\n")
