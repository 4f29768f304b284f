"""Chapter 17 on runs with γ = 2ε: H-F10 on CIFAR-10, H-AE2, H-F11a on CIFAR-10, H-F11b on two digits."""
import json
path = "book/17-other-maps.ipynb"
nb = json.load(open(path))
cells = {c["id"]: c for c in nb["cells"]}
def put(id, text): cells[id]["source"] = text.strip("\n").splitlines(keepends=True)
def sub(id, *pairs):
    s = "".join(cells[id]["source"])
    for old, new in pairs:
        assert s.count(old) == 1, (id, old, s.count(old)); s = s.replace(old, new)
    put(id, s)
def after(id, new, text, kind="code", tags=None, **metadata):
    cell = {"cell_type": kind, "id": new, "metadata": dict(metadata), "source": []}
    if tags: cell["metadata"]["tags"] = tags
    if kind == "code": cell |= {"execution_count": None, "outputs": []}
    i = next(k for k, c in enumerate(nb["cells"]) if c["id"] == id)
    nb["cells"].insert(i + 1, cell); cells[new] = cell; put(new, text)

sub("imports", ("from widebnn.experiments import SOFTMAX_MAPS\n", "from widebnn.experiments import softmax_maps\n"))
put("reg-text", r"""
## $T$ against $R$ over $\lambda$

Is $R$ worth it? The paper compares both maps on subsets of CIFAR-10. We take eight of its images and a network of eight units with ten outputs, whose determinants are exact, and run Langevin chains on the potentials of both maps. Each is tuned towards an acceptance of 0.98 as in the paper, with the damping $\gamma = 2\varepsilon$ of [](09-width-data-architecture.ipynb), and with $\lambda$ from $\sigma^2$ up. As $\lambda \to \infty$ both maps become the identity. ESS is per step, of random projections of $\theta$ and of $\|\theta\|^2$, with standard errors from the scatter over chains. The last two columns are the effective samples of all chains together and the mean R̂, both of the projections. Where R̂ is not below 1.01, or these samples are fewer than 400, the chains have **not been shown to converge**: read those rows as measures of how slowly a chain moves, not as estimates of a posterior. The cell asserts which have converged: CONVERGED.
""")
sub("iterated-text", ("runs both on the same patients with exact determinants.", "runs both on the eight patients from above with exact determinants."))
put("maps-text", r"""
Does the map of the paper help as it is? The paper says so of a network with three hidden layers on CIFAR-10, without numbers, and names no $\lambda$. {py:obj}`widebnn.experiments.softmax_gain` repeats it at a smaller scale: 256 images, $T$'s form with $\lambda = \sigma^2$ and with $\lambda = k$, an acceptance of 0.9 as in the paper, and $\gamma = 2\varepsilon$.
""")
after("maps-text", "gain", r"""
gain = wb.experiments.shipped("softmax_gain")
print(gain.source)
config = gain.config
total = config["num_chains"] * config["num_steps"]
gain.rows.table(
    {
        "width": "width",
        "map": "map",
        "acceptance": "{acceptance:.3f}",
        "ε": "{step_size:.3f}",
        "ESS per step, projections": measured("ess_projections"),
        "predictions": measured("ess_predictions"),
        "ESS of all": lambda row: round(total * row["ess_projections"]),
        "R̂": "{rhat_projections:.3f}",
    }
)
""")
after("gain", "gain-report", 'wb.experiments.report("H-F11a")')
after("gain-report", "fig-gain", r"""
def curves(rows, name):
    '''Mean and two standard errors over width, for each map.'''
    found = {}
    for label, group in rows.by("map"):
        measures = group.over("width", name, f"{name}_error")
        mean, error = np.array(measures).T
        found[label] = mean, mean - 2 * error, mean + 2 * error
    return found


def over_width(rows):
    '''Effective samples per step of projections and of predictions.'''
    widths = sorted(rows.values("width"))
    fig, axes = plt.subplots(2, 1, figsize=(5, 6.2), sharex=True)
    for ax, of in zip(axes, ("projections", "predictions")):
        found, ylabel = curves(rows, f"ess_{of}"), f"ESS per step, {of}"
        wb.plots.width_curves(widths, found, ylabel=ylabel, ax=ax)
        ax.set_ylim(bottom=0)
        ax.label_outer()
    axes[1].get_legend().remove()


over_width(gain.rows)
""".replace("'''", '"""'), tags=["hide-input"])
after("fig-gain", "laplace-text", r"""
The Laplace map for ten classes factorises a matrix of $10 n$ rows at every step. So the four maps are compared where it is small: two classes of the digits, 3 and 8, with 64 images reduced to four principal components and one hidden layer. The last two columns ... 
""", kind="markdown")
