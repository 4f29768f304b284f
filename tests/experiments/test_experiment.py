"""Declarations: parts that are the whole, findings, verdicts."""

import dataclasses
import math

import pytest

from widebnn.experiments import CLAIMS, DECLARED, EXPERIMENTS, VERDICTS, Claim, Experiment, Finding
from widebnn.scale import SCALES
from widebnn.study.experiment import verdict


@dataclasses.dataclass(frozen=True)
class Grid:
    widths: tuple[int, ...] = (2, 4, 8)
    steps: tuple[int, ...] = (30, 20, 10)
    taus: tuple[float, ...] = (0.1, 1.0)
    num_repeats: int = 2


def grid(config, on_row=lambda row: None):
    """Repeats outside, as some experiments have them."""
    rows = [
        {"width": width, "steps": steps, "repeat": repeat, "tau": tau}
        for width, steps in zip(config.widths, config.steps)
        for repeat in range(config.num_repeats)
        for tau in config.taus
    ]
    for row in rows:
        on_row(row)
    return rows


def experiment(**changes):
    options = {"over": (("widths", "steps"), ("taus",)), "order": ("width", "repeat")} | changes
    return Experiment("grid", "a grid", {"smoke": Grid()}, grid, effort=lambda c: 1.0, **options)


def test_parts_make_the_whole():
    one = experiment()
    parts = one.parts(Grid())
    assert len(parts) == 6 and len(set(parts)) == 6
    assert parts[1] == Grid(widths=(2,), steps=(30,), taus=(1.0,))
    assert one.joined([grid(part) for part in parts]) == grid(Grid())
    assert experiment(order=()).joined([grid(part) for part in parts]) != grid(Grid())


def test_an_experiment_that_is_not_split_is_one_part():
    one = experiment(over=(), order=())
    assert one.parts(Grid()) == [Grid()]
    assert one.joined([grid(Grid())]) == grid(Grid())


def test_parts_of_a_real_experiment_give_the_rows_of_the_whole():
    one = DECLARED["elbo_ratio"]
    config = dataclasses.replace(one.config("smoke"), num_train=(20, 10), widths=(4, 8), scalings=("ntk",))
    parts = one.parts(config)
    assert len(parts) == 4
    assert one.joined([one.function(part) for part in parts]) == one.function(config)


@pytest.mark.parametrize("name", DECLARED)
def test_declarations_are_of_a_kind(name):
    one = DECLARED[name]
    assert one.name == name and EXPERIMENTS[name] is one.configs
    kinds = {type(config) for config in one.configs.values()}
    assert len(kinds) == 1 and set(one.configs) == set(SCALES)
    for config in one.configs.values():
        assert one.effort(config) > 0
        assert len(one.parts(config)) == len(set(one.parts(config)))
    assert one.effort(one.configs["smoke"]) < one.effort(one.configs["laptop"])
    assert one.effort(one.configs["laptop"]) < one.effort(one.configs["colab"])
    if one.steps is not None:
        assert 0 < one.steps(one.configs["smoke"]) < one.steps(one.configs["colab"])
    if one.floats is not None:
        assert 0 < 4 * one.floats(one.configs["colab"]) < 12 * 2**30, "Colab's card has 15 GiB"


@pytest.mark.parametrize(
    ("finding", "holds", "wanted", "shown"),
    [
        (Finding("", 1.0, 0.1, above=0), True, "above 0", "1.00 ± 0.10"),
        (Finding("", 1.0, 0.34, above=0), False, "above 0", "1.00 ± 0.34"),
        (Finding("", -1.0, 12.0, below=40), True, "below 40", "-1 ± 12"),
        (Finding("", 1.0, None, above=0.999), True, "above 0.999", "1"),
        (Finding("", -1.02, 0.01, above=-1.1, below=-0.9), True, "-1.1 to -0.9", "-1.020 ± 0.010"),
        (Finding("", -1.08, 0.01, above=-1.1, below=-0.9), False, "-1.1 to -0.9", "-1.080 ± 0.010"),
        (Finding("", math.nan, above=0), False, "above 0", "not resolved"),
    ],
)
def test_findings_hold_by_three_standard_errors(finding, holds, wanted, shown):
    assert (finding.holds, finding.wanted, str(finding)) == (holds, wanted, shown)


def test_verdicts_follow_from_what_holds():
    yes, no = Finding("", 1.0, above=0), Finding("", -1.0, above=0)
    claim, erratum = Claim("H-F1", "Figure 1", "a claim"), Claim("P-A1", "Algorithm 1", "an error", errs=True)
    cases = {
        (): "not yet run",
        (yes, yes): "reproduced",
        (yes, no): "reproduced in part",
        (no,): "not reproduced",
    }
    for findings, expected in cases.items():
        assert verdict(claim, findings) == expected
        assert verdict(erratum, findings) == (expected if expected != "reproduced" else "corrected")
    assert {*cases.values(), "corrected"} == set(VERDICTS)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.id}-{claim.experiment}")
def test_claims_are_whole(claim):
    assert claim.claim.endswith(".") and (claim.id.startswith("X") or (claim.where and claim.paper))
    assert bool(claim.experiment) == bool(claim.rule) == (claim.summarise is not None)
    if claim.experiment:
        assert claim.experiment in DECLARED and claim.chapter and claim.rule.endswith(".")
