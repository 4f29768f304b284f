"""Huix, Majewski, Durmus, Moulines, Korba (2022): mean-field variational inference of wide networks."""

import math
from itertools import pairwise

import numpy as np

from widebnn.experiments.claims.measures import (
    chosen,
    difference,
    identity,
    mean,
    ratio,
    values,
)
from widebnn.study import Claim, Finding, Measure, Results, exponent

__all__ = ["HUIX"]


def _collapse(results: Results) -> list[Finding]:
    findings = []
    for loss in values(results.rows, "loss"):
        rows = sorted(chosen(results.rows, loss=loss, scaling="mean-field"), key=lambda row: row["width"])
        for column, name in (("kl_divergence", "KL(q* ‖ P₀)"), ("output_rms", "E f, root mean square")):
            falls = rows[-1][column] / rows[0][column]
            findings.append(Finding(f"{loss}: {name}, widest ÷ narrowest", falls, below=0.1))
    return findings


def _gap(results: Results) -> list[Finding]:
    findings = []
    for loss in values(results.rows, "loss"):
        rows = chosen(results.rows, loss=loss, scaling="mean-field")
        widths = sorted(values(rows, "width"))
        gaps = [mean(chosen(rows, width=width), "gap") for width in widths]
        slope = exponent(widths, gaps)
        findings.append(Finding(f"{loss}: exponent of F̃ − ELBO in N", slope, above=-1.15, below=-0.85))
    return findings


def _suprema(results: Results) -> list[Finding]:
    findings = []
    for tau in values(results.rows, "tau"):
        rows = chosen(results.rows, tau=tau)
        against = [row["gap"] / row["predicted"] for row in rows]
        uncertain = max(row["certificate"] / row["gap"] for row in rows)
        findings += [
            Finding(
                f"τ = {tau:g}: N times the gap ÷ Σ Var φ, greatest over N", max(against), above=0, below=1.5
            ),
            Finding(f"τ = {tau:g}: what the certificate leaves open, of the gap", uncertain, below=0.05),
        ]
    return findings


def _concentration(results: Results) -> list[Finding]:
    findings = []
    replicates = results.config["num_replicates"]
    for delta in values(results.rows, "delta"):
        beyond = max(row["exceedance"] for row in chosen(results.rows, delta=delta))
        error = math.sqrt(max(beyond, 1 / replicates) / replicates)
        what = f"δ = {delta:g}: share beyond M√(log(2/δ)/(2p)), greatest over p"
        findings.append(Finding(what, Measure(beyond, error), below=delta))
    rows = chosen(results.rows, delta=results.rows[0]["delta"])
    rms = [Measure(row["rms"], row["rms_error"]) for row in rows]
    slope = exponent([row["num_train"] for row in rows], rms)
    return [*findings, Finding("exponent of the deviation in p", slope, above=-0.6, below=-0.4)]


def _ratio(dataset: str):
    def summarise(results: Results) -> list[Finding]:
        config = results.config
        of = {"dataset": dataset, "scaling": "mean-field", "prior_variance": config["prior_variances"][0]}
        rows = sorted(chosen(results.rows, **of), key=lambda row: row["width"])
        if not rows:  # a scale without this data set
            return []
        plain = chosen(rows, tau=None)
        slope = exponent([row["width"] for row in plain], [Measure(row["ratio"]) for row in plain])
        findings = [Finding("η = 1: exponent of the ratio in N", slope, above=-1.1, below=-0.9)]
        for tau in config["taus"]:
            ratios = [row["ratio"] for row in chosen(rows, tau=tau)]
            what = f"η = τp/N, τ = {tau:g}: greatest ratio ÷ least, over N"
            findings.append(Finding(what, max(ratios) / min(ratios), below=1.1))
        return findings

    return summarise


def _over_tau(rows, column: str) -> list[Measure]:
    return [mean(chosen(rows, tau=tau), column) for tau in sorted(values(rows, "tau"))]


def _curves(results: Results) -> list[Finding]:
    rows = chosen(results.rows, **({"norm": results.rows[0]["norm"]} if "norm" in results.rows[0] else {}))
    accuracy, nll, ece, confidence = (_over_tau(rows, c) for c in ("accuracy", "nll", "ece", "confidence"))
    peak = max(range(len(ece)), key=lambda i: ece[i].value)
    under = difference(accuracy[peak], confidence[peak])
    return [
        Finding("accuracy, largest τ less smallest", difference(accuracy[-1], accuracy[0]), below=0),
        Finding("NLL, largest τ less smallest", difference(nll[-1], nll[0]), above=0),
        Finding("ECE, greatest less that at the smallest τ", difference(ece[peak], ece[0]), above=0),
        Finding("ECE, greatest less that at the largest τ", difference(ece[peak], ece[-1]), above=0),
        Finding("accuracy less confidence where ECE is greatest", under, above=0),
    ]


def _weights(results: Results) -> list[Finding]:
    prior = Measure(math.sqrt(results.config["prior_variance"]))
    std, norm = (_over_tau(results.rows, column) for column in ("std", "mean_norm"))
    cold, warm = (_share_below(results, i, prior.value / 2) for i in (0, -1))
    return [
        Finding("mean σ ÷ the prior's, largest τ", ratio(std[-1], prior), above=0.95, below=1.05),
        Finding("root mean square of μ ÷ the prior's σ, largest τ", ratio(norm[-1], prior), below=0.05),
        Finding("root mean square of μ, smallest τ ÷ largest", ratio(norm[0], norm[-1]), above=1),
        Finding("share of σ below half the prior's, smallest τ", cold, above=0.5),
        Finding("share of σ below half the prior's, largest τ", warm, below=0.01),
    ]


def _share_below(results: Results, i: int, level: float) -> float:
    """Of σ, by the histogram of the first repeat at the i-th τ."""
    tau = sorted(values(results.rows, "tau"))[i]
    histogram = chosen(results.rows, tau=tau, repeat=0)[0]["weights"]
    upper = np.array(histogram["std_edges"])[1:]
    return float(np.sum(np.array(histogram["std"])[upper <= level]))


def _entropies(results: Results) -> list[Finding]:
    rows = chosen(results.rows, **({"norm": results.rows[0]["norm"]} if "norm" in results.rows[0] else {}))
    inside, outside = (_over_tau(rows, column) for column in ("entropy", "entropy_outside"))
    most = Measure(results.rows[0]["entropy_histogram"]["edges"][-1])  # log of the number of classes
    findings = [
        Finding("entropy, outside less inside, smallest τ", difference(outside[0], inside[0]), above=0),
        Finding("entropy inside ÷ its largest value, smallest τ", ratio(inside[0], most), below=0.25),
    ]
    for name, curve in (("inside", inside), ("outside", outside)):
        rises = [difference(b, a) for a, b in pairwise(curve)]
        least = min(rises, key=lambda m: m.value)
        findings += [
            Finding(f"entropy {name}, from one τ to the next, at least", least, above=0),
            Finding(f"entropy {name} ÷ its largest value, largest τ", ratio(curve[-1], most), above=0.9),
        ]
    return findings


_RULE_OF_CURVES = (
    "From the smallest to the largest τ accuracy falls and NLL rises; ECE is greater in between than at "
    "both ends; where it is greatest, accuracy exceeds confidence."
)
_RULE_OF_ENTROPIES = (
    "At the smallest τ entropies are below a quarter of their largest value inside, and higher outside; "
    "they rise from each τ to the next, inside and outside, to nine tenths of it."
)
_RULE_OF_RATIO = (
    "At η = 1 the ratio falls as 1/N (exponent within a tenth of −1); with η = τp/N it stays within a tenth"
    " of itself over all N. Scaling 1/N, prior variance 1/5."
)

HUIX = (
    Claim(
        "V-P2",
        "Proposition in Section 2",
        "Without cooling the best q tends to the prior as N grows, for the square loss and the cross-"
        "entropy.",
        "KL → 0, without a rate",
        experiment="collapse",
        summarise=_collapse,
        rule="For both losses the divergence and the mean outputs are at the widest network below a tenth "
        "of those at the narrowest. Scaling 1/N; one fit each, and no standard error.",
        chapter="14-plain-elbo",
        figure="fig-collapse",
    ),
    Claim(
        "V-T1",
        "Theorem 1",
        "The ELBO and its mean-field limit differ by at most C p/N.",
        "a bound, slope −1 in N",
        experiment="mean_field_gap",
        summarise=_gap,
        rule="The exponent of the gap in N lies within 0.15 of −1 for both losses. Scaling 1/N.",
        chapter="14-plain-elbo",
        figure="fig-mean-field-gap",
    ),
    Claim(
        "V-T2",
        "Theorem 2",
        "The suprema of the ELBO and of its limit differ by at most C p/N.",
        "a bound",
        experiment="suprema",
        summarise=_suprema,
        rule="The gap is at all N below 1.5 times the outputs' variance under the best limit, which is a "
        "constant over N, and the search for that limit is certified to a twentieth of the gap.",
        chapter="14-plain-elbo",
        figure="fig-suprema",
    ),
    Claim(
        "V-C",
        "Equation (27)",
        "The mean of p losses is within M√(log(2/δ)/(2p)) of its expectation; log(δ/2) is printed.",
        "log(δ/2) under the root",
        experiment="concentration",
        summarise=_concentration,
        rule="The corrected bound is exceeded by a share below δ at all p, and the deviation falls as one "
        "over √p (exponent within a tenth of −½). The printed root, of a negative number, has no real "
        "value.",
        errs=True,
        chapter="14-plain-elbo",
        figure="fig-hoeffding",
    ),
    Claim(
        "V-F1",
        "Figure 1",
        "Over τ a two-layer network goes from accurate and confident to the prior, and is least calibrated "
        "between.",
        "MNIST: accuracy falls and NLL rises at large τ, ECE is low at both ends",
        experiment="tempering",
        summarise=_curves,
        rule=_RULE_OF_CURVES,
        chapter="15-tempering",
        figure="fig-tempering-curves",
    ),
    Claim(
        "V-F2",
        "Figure 2",
        "So does ResNet-20, with augmentation and batch normalisation.",
        "CIFAR-10: the same trends",
        experiment="resnet",
        summarise=_curves,
        rule=_RULE_OF_CURVES,
        chapter="16-resnet",
        figure="fig-resnet-curves",
    ),
    Claim(
        "V-F3",
        "Figure 3",
        "Before training the KL term outweighs the likelihood as N grows, and η = τp/N balances them "
        "(MNIST).",
        "the ratio falls with N at η = 1 and is level otherwise",
        experiment="elbo_ratio",
        summarise=_ratio("mnist"),
        rule=_RULE_OF_RATIO,
        chapter="14-plain-elbo",
        figure="fig-elbo-ratio",
    ),
    Claim(
        "V-F4",
        "Figure 4",
        "Before training the KL term outweighs the likelihood as N grows, and η = τp/N balances them "
        "(Boston).",
        "the ratio falls with N at η = 1 and is level otherwise",
        experiment="elbo_ratio",
        summarise=_ratio("boston"),
        rule=_RULE_OF_RATIO,
        chapter="14-plain-elbo",
        figure="fig-elbo-ratio",
    ),
    Claim(
        "V-F5",
        "Figure 5",
        "At large τ the variational means and deviations are those of the prior, at small τ deviations are "
        "near 0.",
        "histograms on MNIST",
        experiment="tempering",
        summarise=_weights,
        rule="At the largest τ the mean deviation is within a twentieth of the prior's, the means are below"
        " a twentieth of it and hardly a deviation lies below half of it; at the smallest τ most do, "
        "and the means are larger.",
        chapter="15-tempering",
        figure="fig-tempering-weights",
    ),
    Claim(
        "V-F6",
        "Figure 6",
        "Predictive entropies rise with τ inside and outside the distribution (CIFAR-10 against SVHN).",
        "confident inside and diffuse outside at small τ, spiky at high values at large τ",
        experiment="resnet",
        summarise=_entropies,
        rule=_RULE_OF_ENTROPIES,
        chapter="16-resnet",
        figure="fig-resnet-entropy",
    ),
    Claim(
        "V-F6",
        "Figure 6",
        "Predictive entropies rise with τ inside and outside the distribution (MNIST against Fashion-MNIST).",
        "the same, on data that the paper does not use",
        experiment="tempering",
        summarise=_entropies,
        rule=_RULE_OF_ENTROPIES,
        chapter="15-tempering",
        figure="fig-tempering-entropy",
    ),
    Claim(
        "V-A1",
        "Algorithm 1",
        "Minibatch objectives whose shares of the KL term sum to one sum to the ELBO.",
        "Bayes by Backprop",
        experiment="identities",
        summarise=identity("minibatches", "sum of minibatches against the ELBO"),
        rule="The larger relative difference of two ways to share the KL divergence, equal and geometric "
        "shares. On random problems in float64: below 1e-9.",
        chapter="14-plain-elbo",
    ),
)
