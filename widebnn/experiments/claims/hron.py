"""Hron, Novak, Pennington, Sohl-Dickstein (2022): repriorisation and Langevin Monte Carlo."""

from itertools import pairwise

from widebnn.experiments.claims.measures import chosen, difference, identity, ratio, values, vanishes
from widebnn.study import Claim, Finding, Measure, Results

__all__ = ["HRON"]


def _slices(results: Results) -> list[Finding]:
    rows = results.rows
    sizes = values(rows, "num_train")
    n = max(sizes, key=lambda size: len(chosen(rows, num_train=size)))
    widths = values(rows, "width")
    width = max(widths, key=lambda one: len(chosen(rows, width=one)))
    over_width = _pairs(chosen(rows, num_train=n), "width")
    over_n = _pairs(chosen(rows, width=width), "num_train")
    wide, (few, many) = over_width[-1], (over_n[0], over_n[-1])
    findings = []
    for column, name in (("spread_potential", "deviation of U over the slice"), ("curvature", "curvature")):
        steps = [b["φ"][column] / a["φ"][column] for a, b in pairwise(over_width)]
        findings += [
            Finding(f"{name} in φ, from one width to the next, at most", max(steps), below=1),
            Finding(f"{name}, φ ÷ θ, at the widest", wide["φ"][column] / wide["θ"][column], below=1),
        ]
    each = [pair["φ"]["spread_potential"] / pair["φ"]["num_train"] for pair in (few, many)]
    return [
        *findings,
        Finding(
            "barrier of U, φ ÷ θ, at the widest",
            wide["φ"]["barrier_potential"] / wide["θ"]["barrier_potential"],
            below=1,
        ),
        Finding("deviation of U an image in φ, most images ÷ fewest", each[1] / each[0], above=1),
    ]


def _pairs(rows, over: str):
    """θ and φ at each point, in the order of `over`."""
    return [
        {row["parametrisation"]: row for row in chosen(rows, **{over: value})}
        for value in sorted(values(rows, over))
    ]


def _maps(results: Results) -> list[Finding]:
    findings = []
    for column, name in (("ess_projections", "projections"), ("ess_norm", "‖θ‖²")):
        best = {
            of: max((_ess(row, column) for row in chosen(results.rows, map=of)), key=lambda m: m.value)
            for of in values(results.rows, "map")
        }
        findings += [
            Finding(f"ESS of {name}, best T ÷ best R", ratio(best["T"], best["R"]), above=1),
            Finding(f"ESS of {name}, best T ÷ identity", ratio(best["T"], best["identity"]), above=1),
        ]
    return findings


def _softmax(results: Results) -> list[Finding]:
    findings = []
    widths = sorted(values(results.rows, "width"))
    for column, name in (("ess_projections", "projections of θ"), ("ess_predictions", "predictions")):
        narrow, wide = (
            {row["map"]: _ess(row, column) for row in chosen(results.rows, width=width)}
            for width in (widths[0], widths[-1])
        )
        gains = [ratio(_best_gaussian(at), at["identity"]) for at in (narrow, wide)]
        for width, gain in zip((widths[0], widths[-1]), gains):
            what = f"ESS of {name}, best Gaussian map ÷ identity, width {width:,}"
            findings.append(Finding(what, gain, above=1))
        grows, laplace = difference(gains[1], gains[0]), ratio(wide["Laplace"], _best_gaussian(wide))
        findings += [
            Finding(f"the same, widest less narrowest, {name}", grows, above=0),
            Finding(f"ESS of {name}, Laplace map ÷ best Gaussian, widest", laplace, above=1),
        ]
    return findings


def _best_gaussian(by_map: dict[str, Measure]) -> Measure:
    return max((m for name, m in by_map.items() if name.startswith("Gaussian")), key=lambda m: m.value)


def _ess(row, column: str) -> Measure:
    return Measure(row[column], row[f"{column}_error"])


def _prior_in_theta(results: Results) -> list[Finding]:
    rows = sorted(chosen(results.rows, quantity="KL in θ"), key=lambda row: row["width"])
    limit = Measure(rows[-1]["limit"])
    gaps = [Measure(abs(row["value"]), row["error"]) for row in (rows[0], rows[-1])]
    (in_phi,) = chosen(results.rows, quantity="KL in φ", width=rows[-1]["width"])
    phi = Measure(in_phi["value"], in_phi["error"])
    whole = Measure(rows[-1]["value"] + limit.value, rows[-1]["error"])
    return [
        Finding("KL at the widest ÷ closed form", ratio(whole, limit), above=0.99, below=1.01),
        Finding("distance from the closed form, widest ÷ narrowest", ratio(gaps[1], gaps[0]), below=0.5),
        Finding("KL at the widest, θ ÷ φ", ratio(whole, phi), above=10),
    ]


def _other_layer(results: Results) -> list[Finding]:
    rows = sorted(results.rows, key=lambda row: row["width"])
    wide = rows[-1]
    narrow, bound = (
        Measure(row["sign"] ** 2 / 2, abs(row["sign"]) * row["sign_error"]) for row in (rows[0], wide)
    )
    mean = Measure(wide["mean"], wide["mean_error"])
    return [
        Finding("least divergence at the widest, in nats", bound, above=0.1),
        Finding("the same, widest ÷ narrowest", ratio(bound, narrow), above=0.9),
        Finding("E[s | D] at the widest ÷ limit", ratio(mean, Measure(wide["limit"])), above=0.9, below=1.1),
    ]


HRON = (
    Claim(
        "H-F2",
        "Figure 2",
        "In a linear model the posterior of φ is the prior.",
        "exact",
        experiment="identities",
        summarise=identity("prior", "variation of U in φ ÷ in θ"),
        rule="How much the potential of φ varies over prior draws, in units of how much that of θ does. On "
        "random problems in float64: below 1e-9.",
        chapter="01-linear-models",
        figure="fig-ridge",
    ),
    Claim(
        "H-F3",
        "Figure 3",
        "Functions of T(φ), φ from the prior, approach the NNGP posterior as the width grows.",
        "a picture: three hidden layers, one input, three observations",
        experiment="theorems",
        summarise=vanishes("Wasserstein"),
        rule="The second Wasserstein distance of the law of f(x) from the NNGP posterior, root mean square "
        "over x, has a bound that falls as a power of the width (exponent below 0), to less than half "
        "from the narrowest network to the widest.",
        chapter="06-infinite-width",
        figure="fig-approach",
    ),
    Claim(
        "H-T2.1",
        "Theorem 2.1",
        "KL(N(0, I) ‖ P(φ | D)) tends to 0 as the width grows.",
        "→ 0, without a rate",
        experiment="theorems",
        summarise=vanishes("KL in φ"),
        rule="It falls as a power of the width (exponent below 0, with a first correction for finite width), "
        "to less than half from the narrowest network to the widest.",
        chapter="07-theorems",
        figure="fig-theorem-kl",
    ),
    Claim(
        "H-P2.2",
        "Proposition 2.2",
        "The law of the functions of T(φ), φ from the prior, tends to the NNGP posterior.",
        "→ 0, without a rate",
        experiment="theorems",
        summarise=vanishes("Kolmogorov"),
        rule="The Kolmogorov distance of the law of f(x) at the worst x falls as a power of the width "
        "(exponent below 0), to less than half from the narrowest network to the widest.",
        chapter="07-theorems",
        figure="fig-theorem-functions",
    ),
    Claim(
        "H-P2.3",
        "Proposition 2.3",
        "KL(N(0, I) ‖ P(θ | D)) tends to the divergence between NNGP prior and posterior.",
        "a closed form, above 0",
        experiment="theorems",
        summarise=_prior_in_theta,
        rule="At the widest network it is within a hundredth of the closed form and ten times that of φ or "
        "more; the distance from the closed form falls to less than half from the narrowest.",
        chapter="07-theorems",
        figure="fig-theorem-kl",
    ),
    Claim(
        "H-P3.1",
        "Proposition 3.1",
        "Under the posterior of φ the gradient of U vanishes as the width grows.",
        "→ 0 in probability",
        experiment="theorems",
        summarise=vanishes("gradient, 5 %", "gradient, median", "gradient, 95 %"),
        rule="Three quantiles of its norm fall as powers of the width (exponent below 0), to less than half "
        "from the narrowest network to the widest.",
        chapter="07-theorems",
        figure="fig-theorem-gradient",
    ),
    Claim(
        "H-F5",
        "Figure 5",
        "The posterior is smoother in φ than in θ, the more so the wider the network and the fewer the "
        "images.",
        "pictures of slices: φ flattens over width at n = 128, and roughens over n at width 128",
        experiment="landscape",
        summarise=_slices,
        rule="In φ the potential's deviation over the slice and its curvature fall from each width to the "
        "next; at the widest they and the barrier are below those in θ; over n the deviation grows "
        "faster than n. There is one triple of networks at each point, and no standard error.",
        chapter="08-landscape",
        figure="fig-landscape-numbers",
    ),
    Claim(
        "H-F10",
        "Figure 10",
        "The map T of the readout mixes better than the Jacobian map R over all regularisers.",
        "R is competitive at times, T clearly preferable; subsets of CIFAR-10",
        experiment="over_reg",
        summarise=_maps,
        rule="The best T has more effective samples per step than the best R and than the identity, of "
        "projections and of the squared norm. On eight diabetes patients and width 8, where "
        "determinants are exact.",
        chapter="09-other-maps",
        figure="fig-reg",
    ),
    Claim(
        "H-F11",
        "Figure 11",
        "Repriorisation by the Gaussian map helps under a softmax likelihood too, more so at larger width.",
        "higher effective sample size than without; the Laplace map would likely do better still",
        experiment="over_maps",
        summarise=_softmax,
        rule="The better of two Gaussian maps has more effective samples per step than the identity at the "
        "narrowest and the widest network, the gain grows, and the Laplace map beats it at the widest. On 64 "
        "digits of two classes, at an acceptance of 0.9.",
        chapter="09-other-maps",
        figure="fig-maps",
    ),
    Claim(
        "H-AB",
        "Appendix B",
        "The potential is the same in data space and in feature space.",
        "exact",
        experiment="identities",
        summarise=identity("spaces", "data space against feature space"),
        rule="The largest difference over prior draws, in units of how much the potential varies. On random "
        "problems in float64: below 1e-9.",
        chapter="03-repriorisation",
        figure="fig-roots",
    ),
    Claim(
        "H-AC",
        "Appendix C",
        "With several outputs the potential is a sum over columns of y.",
        "exact",
        experiment="identities",
        summarise=identity("outputs", "whole against columns"),
        rule="The largest difference over prior draws, in units of how much the potential varies. On random "
        "problems in float64: below 1e-9.",
        chapter="07-theorems",
    ),
    Claim(
        "H-AD",
        "Appendix D",
        "In a linear model the stable step of Langevin grows by √(1 + ‖XᵀX‖/σ²).",
        "exact",
        experiment="identities",
        summarise=identity("stable step", "gain measured against formula"),
        rule="The largest stable step is found by bisection on the eigenvalues of a leapfrog step; its gain "
        "differs from the formula by less than 1e-9 of itself, on random problems in float64.",
        chapter="01-linear-models",
        figure="fig-gains",
    ),
    Claim(
        "H-AE1",
        "Appendix E.1",
        "The readout is the only layer that may be mapped in every network.",
        "a counterexample with a bounded nonlinearity",
        experiment="counterexample",
        summarise=_other_layer,
        rule="With a sigmoid and the first layer mapped, whatever the map, the divergence between prior and "
        "posterior stays above ½ E[sign Σv/√d | D]² (Pinsker): above 0.1 nats at the widest network and "
        "no less than nine tenths of that at the narrowest; the mean of Σv/√d has the limit that the "
        "paper's formula gives.",
        chapter="09-other-maps",
        figure="fig-counter",
    ),
)
