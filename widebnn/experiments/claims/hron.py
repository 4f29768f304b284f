"""Hron, Novak, Pennington, Sohl-Dickstein (2022): repriorisation and Langevin Monte Carlo."""

import math
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


MODERATE = 1_024  # a width at which the papers still see next to no cost


def _step(results: Results) -> list[Finding]:
    phi = _ratios(results, "dense", "φ")
    findings = [
        Finding(f"φ ÷ θ, dense, width {width:,}", found, below=2)
        for width, found in phi.items()
        if width <= MODERATE
    ]
    dense, convolutional = (_ratios(results, name, "φ, feature space") for name in ("dense", "convolutional"))
    narrowest, widest = min(dense), max(dense)
    grows = difference(dense[widest], dense[narrowest])
    findings.append(Finding("feature space ÷ θ, dense: widest less narrowest", grows, above=0))
    width = max(convolutional)
    nearest = min(dense, key=lambda one: abs(one - width))
    more = difference(convolutional[width], dense[nearest])
    what = f"feature space ÷ θ: convolutional, width {width:,}, less dense, width {nearest:,}"
    return [*findings, Finding(what, more, above=0)]


def _ratios(results: Results, architecture: str, target: str) -> dict[int, Measure]:
    """Of the time of a step to that in θ, by width."""
    return {
        row["width"]: Measure(row["ratio"], row["ratio_error"])
        for row in chosen(results.rows, architecture=architecture, target=target)
    }


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


def _gain_over_width(results: Results) -> list[Finding]:
    found = _gains(results, "width")
    return [*found, Finding("gain, widest ÷ narrowest", _change(results, found), above=1)]


def _gain_over_data(results: Results) -> list[Finding]:
    found = _gains(results, "num_train")
    return [*found, Finding("gain, most images ÷ fewest", _change(results, found), below=1)]


def _gain_dense(results: Results) -> list[Finding]:
    return _gains(results, "num_train")


def _gain_resnet(results: Results) -> list[Finding]:
    found = _gains(results, "num_train")
    return [found[0], Finding("gain, most images ÷ fewest", _change(results, found), below=1)]


LEAST_ACCEPTANCE = 0.98  # of the protocol
LEAST_SAMPLES = 10


def _gains(results: Results, over: str) -> list[Finding]:
    """Effective samples per step of projections, φ ÷ θ, in the order of `over`; NaN outside the protocol."""
    what = {"width": "width {:,}", "num_train": "{:,} images"}[over]
    return [
        Finding(
            f"ESS of projections, φ ÷ θ, {what.format(pair['φ'][over])}",
            (
                ratio(_pooled(pair["φ"]), _pooled(pair["θ"]))
                if min(row["acceptance"] for row in pair.values()) > LEAST_ACCEPTANCE
                else Measure(math.nan)
            ),
            above=1,
        )
        for pair in _pairs(_at_the_end(results), over)
    ]


def _change(results: Results, gains: list[Finding]) -> Measure:
    """The last gain over the first; NaN where some chains have so few effective samples that they disagree.

    Pooled, such chains have nearly as many as they are themselves, whatever the parametrisation: a gain is
    too small then, and falls where it need not.
    """
    rows = _at_the_end(results)
    samples = min(row["pooled_projections"] * row["step"] for row in rows) * results.config["num_chains"]
    first, last = (Measure(gain.value, gain.error) for gain in (gains[0], gains[-1]))
    return ratio(last, first) if samples >= LEAST_SAMPLES else Measure(math.nan)


def _at_the_end(results: Results):
    return chosen(results.rows, step=max(values(results.rows, "step")))


def _pooled(row) -> Measure:
    return Measure(row["pooled_projections"], row["pooled_error_projections"])


def _agreement(results: Results) -> list[Finding]:
    def excess(row) -> Measure:
        error = row["rhat_squared_std_projections"] / math.sqrt(results.config["num_projections"])
        return Measure(row["rhat_squared_projections"] - 1, error)

    return [
        Finding(
            f"R̂² − 1 of projections, φ ÷ θ, {pair['φ']['num_train']:,} images",
            ratio(excess(pair["φ"]), excess(pair["θ"])),
            below=1,
        )
        for pair in _pairs(_at_the_end(results), "num_train")
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
        "H-F6",
        "Figure 6",
        "A step with repriorisation takes about as long as one without, except at very large width.",
        "a small factor up to widths of thousands (FCN), larger for CNNs",
        experiment="step_cost",
        summarise=_step,
        rule="The time of a step of Langevin in φ over that in θ is below 2 in each dense network up to "
        "width 1,024. In feature space, where the published code always is, it is greater in the widest "
        "dense network than in the narrowest, and in the widest convolutional network than in the dense one "
        "nearest in width.",
        chapter="20-step-cost",
        figure="fig-step-cost",
    ),
    Claim(
        "H-F7a",
        "Figure 7, left",
        "Langevin mixes faster in φ than in θ at every width, and the gain grows with it.",
        "50 times the effective samples per step at width 1,024, n = 256",
        experiment="gain_over_width",
        summarise=_gain_over_width,
        rule="By effective samples per step of random projections of θ, three chains pooled, ε and γ tuned "
        "for each: more in φ at each width, and the gain is larger at the widest than at the narrowest. "
        "A gain is not resolved where the acceptance in θ or in φ is not above 0.98, nor its change where "
        "pooled chains have fewer than ten effective samples.",
        chapter="19-width-data-architecture",
        figure="fig-gain-width",
    ),
    Claim(
        "H-F7b",
        "Figure 7, right",
        "The gain shrinks with the number of observations and stays above one.",
        "higher effective sample size in φ at every n, width 512",
        experiment="gain_over_data",
        summarise=_gain_over_data,
        rule="By the same measure as over width: more in φ at each number of images, and the gain is smaller "
        "at the most than at the fewest.",
        chapter="19-width-data-architecture",
        figure="fig-gain-data",
    ),
    Claim(
        "H-F8a",
        "Figure 8, left",
        "A dense network of width 1,024 keeps its gain up to forty observations a unit.",
        "about 10 times at n = 1,024 to 40,960",
        experiment="gain_dense",
        summarise=_gain_dense,
        rule="By the same measure as over width: more in φ at each number of images, from one a unit to "
        "forty. Below paper scale units and images are fewer, and their ratio is the same.",
        chapter="19-width-data-architecture",
        figure="fig-gain-architecture",
    ),
    Claim(
        "H-F8b",
        "Figure 8, right",
        "In a Wide ResNet-20 the gain is there where the top layer is as wide as the data are many.",
        "10 times at n = 1,024, less at 10,240",
        experiment="gain_resnet",
        summarise=_gain_resnet,
        rule="By the same measure as over width: more in φ at the fewest images, and a smaller gain at the "
        "most. At paper scale images outnumber the channels of the top group; at laptop and colab scale they "
        "do not.",
        chapter="19-width-data-architecture",
        figure="fig-gain-architecture",
    ),
    Claim(
        "H-F9",
        "Figure 9",
        "Chains in φ agree long before chains in θ do.",
        "squared R-hat near 1 where it is of order 100 in θ",
        experiment="gain_dense",
        summarise=_agreement,
        rule="R̂² − 1 of three chains of a dense network, started at the same parameters in φ and in θ, mean "
        "over random projections of θ at the end of the run: smaller in φ at each number of images. Its "
        "standard error counts projections, not chains.",
        chapter="19-width-data-architecture",
        figure="fig-gain-rhat",
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
