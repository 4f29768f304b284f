"""Pezzetti, Favaro, Peluchetti (2025): pCN and pCNL."""

from collections.abc import Callable

from widebnn.experiments.claims.measures import chosen, difference, ratio, values, vanishes
from widebnn.study import Claim, Finding, Measure, Results

__all__ = ["PEZZETTI"]


def _algorithm(name: str) -> Callable[[Results], list[Finding]]:
    def summarise(results: Results) -> list[Finding]:
        findings = []
        for target in values(chosen(results.rows, algorithm=name), "target"):
            printed, right = (
                chosen(results.rows, algorithm=name, target=target, acceptance=acceptance)[0]
                for acceptance in ("printed", "right")
            )
            what = f"{target}: mean {printed['quantity']}"
            off = difference(_of(printed, "posterior"), _of(printed, "chain"))
            scale = Measure(abs(off.value))
            findings.append(Finding(f"{what}, posterior less chain as printed", off, above=0))
            against = [(right, "posterior", "right chain less posterior")]
            if printed["law"] is not None:
                against.append((printed, "law", "chain as printed less its law"))
            for row, wanted, words in against:
                share = ratio(difference(_of(row, "chain"), _of(row, wanted)), scale)
                findings.append(Finding(f"{what}, {words}, of that", share, above=-0.2, below=0.2))
        return findings

    return summarise


def _of(row, name: str) -> Measure:
    return Measure(row[name], row[f"{name}_error"])


_RULE_OF_ACCEPTANCE = (
    "What is missing from an acceptance of one falls as a power of the width (exponent below 0, with a first "
    "correction for finite width), to less than half from the narrowest network to the widest. At β = 0.5."
)


PEZZETTI = (
    Claim(
        "P-T2.1",
        "Theorem 2.1",
        "The acceptance of pCN on the posterior of φ tends to 1 with the width, at any fixed β.",
        "→ 1, without a rate",
        experiment="theorems",
        summarise=vanishes("rejection, pCN"),
        rule=_RULE_OF_ACCEPTANCE,
        chapter="07-theorems",
        figure="fig-theorem-acceptance",
    ),
    Claim(
        "P-T2.2",
        "Theorem 2.2",
        "So does that of pCNL, at any fixed δ.",
        "→ 1, without a rate",
        experiment="theorems",
        summarise=vanishes("rejection, pCNL"),
        rule=_RULE_OF_ACCEPTANCE,
        chapter="07-theorems",
        figure="fig-theorem-acceptance",
    ),
    Claim(
        "P-T3.1",
        "Theorem 3.1",
        "So does that of pCN on the inner parameters, the readout drawn from its conditional.",
        "→ 1, without a rate",
        experiment="theorems",
        summarise=vanishes("rejection, pCN, inner"),
        rule=_RULE_OF_ACCEPTANCE,
        chapter="07-theorems",
        figure="fig-theorem-acceptance",
    ),
    Claim(
        "P-A1",
        "Algorithm 1",
        "pCN as printed accepts by the likelihood of T(φ), which is another target than the posterior.",
        "stated to sample the posterior",
        experiment="algorithms",
        summarise=_algorithm("pCN"),
        rule="By the misfit at the data on a network of four units: as printed its mean is too small, and is "
        "that of the law in which the likelihood counts twice (to a fifth of the difference); accepted by"
        " −U it is that of the posterior.",
        errs=True,
        chapter="10-errata",
        figure="fig-two-laws",
    ),
    Claim(
        "P-A2",
        "Algorithm 2",
        "pCNL as printed accepts by a ratio that its proposal does not go with.",
        "stated to sample the posterior",
        experiment="algorithms",
        summarise=_algorithm("pCNL"),
        rule="By the mean square of an entry, on a network of four units and at U = 0: as printed it is too "
        "small, at U = 0 one half (to a fifth of the difference); with the ratio of pCNL it is that of "
        "the posterior.",
        errs=True,
        chapter="10-errata",
        figure="fig-rules",
    ),
)
