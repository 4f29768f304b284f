"""Measures, findings and verdicts; trends over a grid."""

import dataclasses
import math

import numpy as np
import pytest

from book.experiments.findings import WORDS, Chains, Finding, verdict
from book.experiments.trends import exponent, vanishing
from widebnn.tables import Measure


def test_differences_and_ratios_carry_errors():
    rng = np.random.default_rng(0)
    a, b = Measure(3.0, 0.03), Measure(2.0, 0.04)
    drawn = [rng.normal(m.value, m.error, 200_000) for m in (a, b)]
    for found, draws in ((a - b, drawn[0] - drawn[1]), (a / b, drawn[0] / drawn[1])):
        assert found.value == pytest.approx(draws.mean(), rel=1e-3)
        assert found.error == pytest.approx(draws.std(), rel=0.02)  # 0.2 % is one deviation


@pytest.mark.parametrize("below", [0.0, -1.0, math.nan])
def test_a_ratio_to_what_is_not_positive_is_not_resolved(below):
    assert math.isnan((Measure(1.0, 0.1) / below).value)


@pytest.mark.parametrize(
    ("finding", "answer", "wanted", "shown"),
    [
        (Finding("", Measure(1.0, 0.1), above=0), "yes", "above 0", "1.00 ± 0.10"),
        (Finding("", Measure(1.0, 0.34), above=0), "open", "above 0", "1.00 ± 0.34"),
        (Finding("", Measure(1.0, 0.1), above=0, degrees=2), "open", "above 0", "1.00 ± 0.10"),
        (Finding("", Measure(-0.4, 0.1), above=0), "no", "above 0", "-0.40 ± 0.10"),
        (Finding("", Measure(-1.0, 12.0), below=40), "yes", "below 40", "-1 ± 12"),
        (Finding("", 1.0, above=0.999), "yes", "above 0.999", "1"),
        (Finding("", -1e-9, above=0), "no", "above 0", "-1e-09"),
        (Finding("", Measure(-1.02, 0.01), above=-1.1, below=-0.9), "yes", "-1.1 to -0.9", "-1.020 ± 0.010"),
        (Finding("", Measure(-1.08, 0.01), above=-1.1, below=-0.9), "open", "-1.1 to -0.9", "-1.080 ± 0.010"),
        (Finding("", math.nan, above=0), "not resolved", "above 0", "not resolved"),
        (Finding("", 1.0, above=0, resolved=False), "not resolved", "above 0", "1, not resolved"),
    ],
)
def test_findings_hold_by_three_standard_errors(finding, answer, wanted, shown):
    assert (finding.answer, finding.wanted, str(finding)) == (answer, wanted, shown)
    assert finding.holds == (answer == "yes")


def test_verdicts_follow_from_what_holds():
    yes, no = Finding("", 1.0, above=0), Finding("", -1.0, above=0)
    cases = {
        (): "open",
        (yes, yes): "holds",
        (yes, no): "holds in part",
        (no,): "fails",
        (no, Finding("", Measure(-0.2, 0.1), above=0)): "fails",
    }
    assert verdict([Finding("", Measure(-0.2, 0.1), above=0)] * 2) == OPEN  # none holds, and none says no
    for findings, expected in cases.items():
        assert verdict(findings) == expected
    unknown = Finding("", 1.0, above=0, resolved=False)
    assert verdict([unknown, Finding("", math.nan, above=0)]) == OPEN
    assert verdict([no, no], is_papers=False) == OPEN and verdict([yes, no], is_papers=False) == PART
    assert {*cases.values()} == set(WORDS)


OPEN, PART = "open", "holds in part"
OUTCOMES = [
    (Measure(12.0, 0.5), "holds", "holds"),
    (Measure(11.0, 0.5), PART, PART),  # the size is not sure, and the sign is
    (2.0, PART, PART),
    (Measure(2.0, 0.5), "fails", OPEN),
    (Measure(8.0, 3.0), OPEN, OPEN),  # neither the size nor the absence of an effect is excluded
    (Measure(0.2, 0.1), "fails", "fails"),
    (math.nan, OPEN, OPEN),
]


@pytest.mark.parametrize(("value", "at_papers", "elsewhere"), OUTCOMES)
def test_a_size_is_judged_at_the_papers_setting_and_a_sign_anywhere(value, at_papers, elsewhere):
    others = [Finding("", 1.0, above=0), Finding("", -1.0, above=0)]
    one = Finding("gain", value, above=10, null=1, decides=True)
    for is_papers, expected in ((True, at_papers), (False, elsewhere)):
        assert verdict([others[0], one, others[1]], is_papers=is_papers) == expected
        if isinstance(value, Measure):
            below = Finding("", Measure(-value.value, value.error), below=-10, null=-1, decides=True)
            assert verdict([below], is_papers=is_papers) == expected
    assert verdict([dataclasses.replace(one, resolved=False)]) == OPEN
    with pytest.raises(ValueError, match="one that decides at most; got 2"):
        verdict([one, one])


def test_an_error_from_few_values_counts_as_much_as_students_t_says():
    """Of means of three normal values with their own standard errors, 0.135 % lie so far above 0."""
    few = Finding("", Measure(10.0, 1.0), above=0, degrees=2)
    assert few.margin == pytest.approx(19.2, abs=0.05) and not few.holds
    draws = np.random.default_rng(0).normal(size=(200_000, 3))
    z = draws.mean(axis=1) / (draws.std(axis=1, ddof=1) / np.sqrt(3))
    assert (z > few.margin).mean() == pytest.approx(0.00135, abs=3 * np.sqrt(0.00135 / 200_000))
    assert dataclasses.replace(few, degrees=math.inf).margin == 3.0


def test_a_power_of_the_width_is_found_with_errors_and_without():
    widths = [64, 256, 1_024, 4_096]
    for error in (0.001, None):
        found = [Measure(3 * width**-0.5, error and error * width**-0.5) for width in widths]
        assert exponent(widths, found).value == pytest.approx(-0.5, abs=1e-3)
    falls = list(vanishing("x", widths, [Measure(3 * w**-0.5, 0.001 * w**-0.5) for w in widths]))
    assert all(finding.holds for finding in falls) and falls[1].value == pytest.approx(1 / 8)
    stays = list(vanishing("x", widths, [Measure(3.0, 0.01)] * 4))
    assert not any(finding.holds for finding in stays)
    lost = next(vanishing("x", widths, [Measure(-0.1, 0.5)] * 4))
    assert math.isnan(lost.value)


@pytest.mark.parametrize(
    ("chains", "have_converged", "words"),
    [
        (Chains(400.0, 1.0099), True, "400 effective samples, R̂ 1.0099"),
        (Chains(4_000.0, 1.01), False, "4,000 effective samples, R̂ 1.0100"),
        (Chains(399.0, 1.001), False, "399 effective samples, R̂ 1.0010"),
        (Chains(4_000.0), False, "4,000 effective samples, R̂ not known"),
        (Chains(None, 1.001), False, "effective samples not known, R̂ 1.0010"),
    ],
)
def test_chains_converge_by_both_bounds(chains, have_converged, words):
    assert chains.have_converged is have_converged and str(chains) == words
