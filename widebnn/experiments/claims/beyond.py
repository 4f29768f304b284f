"""What reaches beyond the three papers."""

import math

from widebnn.experiments.claims.measures import chosen, difference, ratio, values
from widebnn.study import Claim, Finding, Measure, Results, vanishing

__all__ = ["BEYOND"]


PAPERS = ("pCN", "pCNL", "Langevin")


def _faster(results: Results) -> list[Finding]:
    findings = []
    for width in values(chosen(results.rows, sampler="unit-wise"), "width"):
        rows = chosen(results.rows, width=width, target="rotated")
        best = max((row for row in rows if row["sampler"] in PAPERS), key=lambda row: row["ess_per_second"])
        for name in ("function-space HMC", "unit-wise"):
            what = f"width {width:,}: ESS per second, {name} ÷ {best['sampler']}, log₁₀"
            gain = _gain(chosen(rows, sampler=name)[0], best, "ess_per_second")
            findings.append(Finding(what, gain, above=0))
    return findings


def _targets(results: Results) -> list[Finding]:
    whole, *others = chosen(results.rows, sampler="HMC")
    mean, std = Measure(whole["potential"], whole["potential_error"]), Measure(whole["potential_std"])
    findings = []
    for row in others:
        shift = ratio(difference(Measure(row["potential"], row["potential_error"]), mean), std)
        what = f"{row['target']} against {whole['target']}"
        findings.append(Finding(f"{what}: shift of U in its deviations", shift, above=-0.5, below=0.5))
        for column, words in (("ess_per_step", "step"), ("ess_per_second", "second")):
            gain = _gain(row, whole, column)
            findings.append(Finding(f"{what}: ESS per {words}, log₁₀ of the ratio", gain, above=0))
    return findings


def _gain(row, other, column: str) -> Measure:
    """log₁₀ of a ratio, whose error is that of the effective samples; times are medians."""
    relative = [one["ess_per_step_error"] / one["ess_per_step"] for one in (row, other)]
    return Measure(math.log10(row[column] / other[column]), math.hypot(*relative) / math.log(10))


def _fresh(results: Results) -> list[Finding]:
    rows = sorted(results.rows, key=lambda row: row["width"])
    rejected = [Measure(row["rejection"], row["rejection_error"]) for row in rows]
    findings = [*vanishing("share of fresh units rejected", [row["width"] for row in rows], rejected)]
    for column, name in (("ess_potential", "U"), ("ess_weights", "projections")):
        first, last = (Measure(row[column], row[f"{column}_error"]) for row in (rows[0], rows[-1]))
        what = f"ESS per sweep of {name}"
        findings += [
            Finding(f"{what}, widest less narrowest", difference(last, first), above=0),
            Finding(f"{what}, widest", last, above=0.75),
        ]
    return findings


BEYOND = (
    Claim(
        "X-1",
        "",
        "Function-space HMC and the unit-wise sampler outrun every sampler of the papers, per second and "
        "over width.",
        experiment="efficiency",
        summarise=_faster,
        rule="By the least effective samples per second of U, projections of the weights and predictions, on "
        "one target: at each width function-space HMC and the unit-wise sampler each have more than the "
        "best of pCN, pCNL and Langevin.",
        chapter="12-faster",
        figure="fig-efficiency",
    ),
    Claim(
        "X-2",
        "",
        "Marginalising the readout and rotating the inputs change no posterior and gain effective samples.",
        experiment="efficiency",
        summarise=_targets,
        rule="Of HMC on all of φ, without the readout, and with inputs rotated too: the mean of U is that on "
        "all of φ (to half of its deviation), and there are more effective samples per step and per "
        "second.",
        chapter="12-faster",
        figure="fig-cifar10",
    ),
    Claim(
        "X-5",
        "",
        "Fresh prior draws of single units are accepted ever more often, and a sweep tends to an "
        "independent draw.",
        experiment="unitwise",
        summarise=_fresh,
        rule="The share that is rejected falls as a power of the width (exponent below 0, with a first "
        "correction for finite width), to less than half from the narrowest network to the widest; "
        "effective samples per sweep, of U and of the mean projection, rise, and to above three quarters.",
        chapter="11-unitwise",
        figure="fig-unitwise",
    ),
)
