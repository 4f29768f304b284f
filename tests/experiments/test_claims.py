"""Claims on made-up rows: verdicts that follow the numbers, and the errors behind them."""

import numpy as np
import pytest

from book.experiments.collapse import collapse
from book.experiments.counterexample import counterexample
from book.experiments.elbo_ratio import elbo_ratio
from book.experiments.landscape import landscape
from book.experiments.learned_scales import over_the_limit
from book.experiments.over_reg import over_reg, reg_of_t
from book.experiments.resnet import resnet
from book.experiments.theorems import theorems
from book.experiments.tuned_chains import best_damping
from widebnn.tables import Results, Rows

from .judging import findings, judged, said


def test_collapse_has_errors_of_the_cross_entropy_alone():
    scatter = [0.9, 1.0, 1.1]
    rows = [
        {"loss": loss, "scaling": "mean-field", "width": width, "repeat": repeat}
        | dict.fromkeys(("kl_divergence", "output_rms"), factor / width)
        for loss, factors in (("square", [1.0]), ("cross-entropy", scatter))
        for width in (16, 4_096)
        for repeat, factor in enumerate(factors)
    ]
    found = findings(collapse, "V-P2", rows)
    assert [finding.value for finding in found] == pytest.approx([16 / 4_096] * 4)
    relative = np.std(scatter, ddof=1) / np.sqrt(3)
    assert [finding.error for finding in found[:2]] == [None, None]
    for finding in found[2:]:
        assert finding.error == pytest.approx(np.sqrt(2) * relative * 16 / 4_096) and finding.degrees == 2


def test_a_mean_that_vanishes_in_noise_is_no_counterexample():
    (row,) = counterexample(**counterexample.settings("smoke", widths=(16,), noise_std=100.0))
    assert abs(row["sign"]) < 0.01 and abs(row["mean"]) < 0.01
    assert not findings(counterexample, "H-AE1", [row])[0].holds


def sampled(sampler, per_second, target="rotated", potential=0.0):
    return {
        "width": 64,
        "target": target,
        "sampler": sampler,
        "ess": 500.0,
        "ess_per_step": per_second / 10,
        "ess_per_step_error": per_second / 100,
        "ess_per_second": per_second,
        "potential": potential,
        "potential_error": 0.01,
        "potential_std": 1.0,
    }


PAPERS = {"pCN": 1.0, "pCNL": 2.0, "Langevin": 0.5}


def of_efficiency(claim, rows, num_chains=10):
    return said(claim, Results(Rows(rows), {"num_chains": num_chains}, {}))


def test_efficiency_of_few_chains_is_open():
    rows = [sampled(*each) for each in (PAPERS | {"function-space HMC": 5.0, "unit-wise": 5.0}).items()]
    answers = [finding.answer for finding in of_efficiency("X-1", rows, num_chains=4)]
    assert answers == ["open"] * 2  # 6.5 errors, where t asks for 9


def test_errors_of_elbo_ratios_are_those_of_draws():
    row = {"dataset": "mnist", "scaling": "mean-field", "prior_variance": 0.2, "log_likelihood": -50.0}
    rows = [
        row
        | {
            "width": width,
            "tau": tau,
            "ratio": ratio * (1.02 if width == 16 else 1),
            "log_likelihood_error": 1,
        }
        for width in (16, 64, 256)
        for tau, ratio in ((None, 1 / width), (0.1, 3.0))
    ]
    config = {"prior_variances": [0.2], "taus": [0.1], "num_samples": 4}
    slope, level = findings(elbo_ratio, "V-F3", rows, **config)
    assert slope.value == pytest.approx(-1, abs=0.01) and slope.error > 0 and slope.degrees == 1
    assert level.value == pytest.approx(1.02) and level.degrees == 3
    assert level.error == pytest.approx(1.02 * np.sqrt(2) / 50)


def test_landscapes_have_errors_over_triples_and_students_t():
    scatter = [0.9, 1.0, 1.1]  # of three triples
    rows = [
        {
            "repeat": repeat,
            "width": width,
            "num_train": num_train,
            "parametrisation": name,
            "spread_potential": factor * num_train**2 * share,
            "curvature": factor * share,
            "barrier_potential": factor * share,
        }
        for repeat, factor in enumerate(scatter)
        for width, num_train in ((16, 32), (64, 32), (64, 8))
        for name, share in (("θ", 10.0), ("φ", 16 / width))
    ]
    found = findings(landscape, "H-F5", rows)
    assert {finding.degrees for finding in found} == {2}
    relative = np.std(scatter, ddof=1) / np.sqrt(3)
    step = next(one for one in found if one.what.startswith("curvature in φ"))
    assert step.value == pytest.approx(1 / 4)
    assert step.error == pytest.approx(np.sqrt(2) * relative / 4)
    growth = found[-1]
    assert growth.value == pytest.approx(4)
    assert growth.error == pytest.approx(4 * np.sqrt(2) * relative)


def test_scores_of_learned_scales_are_those_of_shipped_tables():
    found = over_the_limit()
    assert len(found) == 6 and all(gain.error > 0 for gain in found.values())


def test_a_gain_is_resolved_where_both_maps_have_enough_effective_samples():
    ess = {"identity": 0.0003, "T": 0.003, "R": 0.001}
    rows = [
        {"map": name, "reg": None if name == "identity" else 1.0}
        | {f"ess_{of}": value for of in ("projections", "norm")}
        | {f"ess_{of}_error": 1e-5 for of in ("projections", "norm")}
        | {f"rhat_{of}": 1 + value for of in ("projections", "norm")}
        for name, value in ess.items()
    ]
    found = findings(over_reg, "H-F10", rows, num_chains=8, num_steps=25_000)
    assert [finding.resolved for finding in found] == [True, False] * 2
    assert [finding.decides for finding in found] == [True, False, False, False]
    assert found[0].chains == pytest.approx((200.0, 1.003))
    assert found[1].chains == pytest.approx((60.0, 1.003))
    assert [round(finding.value) for finding in found] == [3, 10] * 2


@pytest.mark.parametrize(
    ("ess", "word"),
    [((3, 2, 1, 1), "holds"), ((3, 1, 2, 1), "holds"), ((1, 2, 1, 0.5), "fails"), ((2, 1, 1.9, 3), "open")],
)
def test_the_regulariser_nearest_to_the_noise_is_compared_with_every_other(ess, word):
    """Ten effective samples in a thousand steps are one unit; no map has the last."""
    of = zip(("T", "T", "T", "identity"), (0.01, 0.001, 1.0, None), ess, strict=True)
    rows = [
        {"map": name, "reg": reg, "ess_projections": 0.01 * value}
        | {"ess_projections_error": 0.0003, "rhat_projections": 1.001}
        for name, reg, value in of
    ]
    settings = {"num_chains": 8, "num_steps": 25_000, "noise_std": 0.1}
    assert judged(reg_of_t, "H-F7e", rows, **settings) == word
    found = [f.value for f in findings(reg_of_t, "H-F7e", rows, **settings)]
    assert found == pytest.approx([ess[0] / one for one in ess[1:]])


def test_the_damping_is_twice_the_step_and_at_most_one():
    assert [float(best_damping(step_size)) for step_size in (0.125, 0.5, 3.0)] == [0.25, 1.0, 1.0]


@pytest.mark.parametrize(
    ("num_repeats", "num_epochs", "said"),
    [
        (3, 40, "holds"),
        (2, 40, "open"),
        (3, 39, "open"),
        (1, 10, "open"),
    ],
)
def test_few_repeats_or_short_fits_of_resnet_decide_nothing(num_repeats, num_epochs, said):
    numbers = {  # by τ: accuracy, confidence, NLL, ECE
        1e-5: (0.8, 0.85, 0.5, 0.05),
        1e-3: (0.75, 0.45, 1.0, 0.3),
        0.1: (0.1, 0.11, 2.3, 0.01),
    }
    names = "accuracy", "confidence", "nll", "ece"
    rows = [
        {"norm": "batch", "tau": tau, "repeat": repeat}
        | {name: number + 1e-4 * repeat for name, number in zip(names, of_tau, strict=True)}
        for tau, of_tau in numbers.items()
        for repeat in range(num_repeats)
    ]
    claim = resnet, "V-F2"
    config = {"norms": ["batch"], "num_repeats": num_repeats, "num_epochs": num_epochs}
    assert judged(*claim, rows, **config) == said


def by_law(power: float, relative: float = 0.01):
    """Every quantity with the same law A·dᵖ."""
    names = [
        "KL in φ",
        *(f"gradient, {q}" for q in ("5 %", "median", "95 %")),
        *(f"rejection, {name}" for name in ("pCN", "pCNL", "pCN, inner")),
        "Kolmogorov",
        "Wasserstein",
    ]
    for width in (64, 128, 256, 512, 1_024):
        value = 0.5 * (width / 64) ** power
        for name in names:
            known = {"rhat": 1.001, "ess": 900.0} if "rejection" in name else {"rhat": None}
            yield {"quantity": name, "width": width, "value": value, "error": relative * value} | known
        # the gap to the closed form; a constant one does not vanish either
        gap = {"quantity": "KL in θ", "width": width, "value": value, "error": relative * value}
        yield gap | {"limit": 100.0}


@pytest.mark.parametrize("claim", theorems.findings)
def test_theorems_hold_for_a_quantity_that_vanishes_and_for_no_other(claim):
    assert len(theorems.findings) == 9
    assert judged(theorems, claim, by_law(-0.5)) == judged(theorems, claim, by_law(-1.0)) == "holds"
    assert judged(theorems, claim, by_law(0.0)) != "holds"
    assert judged(theorems, claim, by_law(0.5)) != "holds"
    assert judged(theorems, claim, by_law(-0.5, relative=0.5)) != "holds"  # too noisy to know


def test_a_distance_that_is_lost_in_noise_is_not_resolved():
    lost = [row | {"value": -0.001} if row["width"] == 1_024 else row for row in by_law(-1.0)]
    exponent, fall = findings(theorems, "H-P2.2", lost)
    assert str(exponent) == "not resolved" and not exponent.holds
    assert fall.holds
