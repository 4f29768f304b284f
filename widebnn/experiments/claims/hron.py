"""Hron, Novak, Pennington, Sohl-Dickstein (2022): repriorisation and Langevin Monte Carlo."""

import math

from widebnn.experiments.claims.measures import chosen, difference, ratio, values
from widebnn.study import Claim, Finding, Measure, Results

__all__ = ["HRON"]


def _pairs(rows, over: str):
    """θ and φ at each point, in the order of `over`."""
    return [
        {row["parametrisation"]: row for row in chosen(rows, **{over: value})}
        for value in sorted(values(rows, over))
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
)
