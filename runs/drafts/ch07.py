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
put("table", r"""
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
""")
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
