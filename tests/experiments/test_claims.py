"""Claims on made-up rows: verdicts that follow the numbers, and the errors behind them."""

import numpy as np
import pytest

from book.experiments.algorithms import algorithms
from book.experiments.collapse import collapse
from book.experiments.counterexample import counterexample
from book.experiments.elbo_ratio import elbo_ratio
from book.experiments.findings import verdict
from book.experiments.landscape import landscape
from book.experiments.learned_scales import learned_scales, over_the_limit
from book.experiments.over_reg import over_reg
from book.experiments.resnet import resnet
from book.experiments.theorems import theorems
from book.experiments.tuned_chains import best_damping
from widebnn.tables import Measure, Results, Rows

from .judging import findings, judged, said, verdict_on


@pytest.mark.parametrize("claim", ["P-A1", "P-A2"])
@pytest.mark.parametrize(
    ("printed", "right", "word"),
    [(0.5, 1.0, "corrected"), (1.0, 1.0, "not reproduced"), (0.5, 0.5, "reproduced in part")],
)
def test_algorithms_are_judged_by_their_chains(claim, printed, right, word):
    none = {"law": None, "law_error": None}
    rows = [
        {"algorithm": algorithm, "target": target, "acceptance": acceptance, "quantity": "square"}
        | Measure(mean, 0.005).columns("chain")
        | Measure(1.0, 0.0).columns("posterior")
        | (Measure(0.5, 0.0).columns("law") if acceptance == "printed" and has_law else none)
        for algorithm, target, has_law in (
            ("pCN", "network", True),
            ("pCNL", "network", False),
            ("pCNL", "U = 0", True),
        )
        for acceptance, mean in (("printed", printed), ("right", right))
    ]
    assert judged(algorithms, claim, rows) == word


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
TUNED = {"pCN": 1.0, "pCNL": 2.0, "Langevin": 5.0}


def of_efficiency(claim, rows, num_chains=10):
    return said(claim, Results(Rows(rows), {"num_chains": num_chains}, {}))


@pytest.mark.parametrize(
    ("claim", "per_second", "word"),
    [
        ("X-1", PAPERS | {"function-space HMC": 5.0, "unit-wise": 9.0}, "reproduced"),
        ("X-1", PAPERS | {"function-space HMC": 5.0, "unit-wise": 1.0}, "reproduced in part"),
        ("X-1", PAPERS | {"function-space HMC": 2.1, "unit-wise": 1.0}, "not reproduced"),
        ("P-C2", TUNED, "reproduced"),
        ("P-C2", TUNED | {"pCN": 9.0}, "not reproduced"),
    ],
)
def test_efficiency_is_in_effective_samples_per_second(claim, per_second, word):
    assert verdict(of_efficiency(claim, [sampled(*each) for each in per_second.items()])) == word


def test_efficiency_of_few_chains_is_open():
    rows = [sampled(*each) for each in (PAPERS | {"function-space HMC": 5.0, "unit-wise": 5.0}).items()]
    answers = [finding.answer for finding in of_efficiency("X-1", rows, num_chains=4)]
    assert answers == ["open"] * 2  # 6.5 errors, where t asks for 9


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, "reproduced"),
        ({"ess_per_second": 0.1, "ess_per_step": 0.01, "ess_per_step_error": 0.001}, "contradicted"),
        ({"ess": 149.0}, "not testable at this scale"),
    ],
)
def test_efficiency_of_hmc_is_compared_over_targets(change, word):
    rows = [sampled("HMC", 1.0, "repriorised"), sampled("HMC", 1.0, "marginal"), sampled("HMC", 9.0) | change]
    assert verdict(of_efficiency("X-2", rows)) == word


def test_efficiency_of_tuned_samplers_is_that_of_the_narrowest():
    wide = {"pCN": 9.0, "pCNL": 9.0, "Langevin": 1.0}
    rows = [sampled(*each) | {"width": 128} for each in wide.items()]
    assert (
        verdict(of_efficiency("P-C2", [*rows, *(sampled(*each) for each in TUNED.items())])) == "reproduced"
    )


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


UNIFORM = np.random.default_rng(0).multinomial(1_000, np.full(20, 1 / 20), size=4)


@pytest.mark.parametrize(("change", "verdict"), [(0, "reproduced"), (60, "contradicted")])
def test_ranks_of_learned_scales_must_be_uniform(change, verdict):
    ranks = UNIFORM.copy()
    ranks[2, [0, 10]] += change, -min(change, ranks[2, 10])
    rows = [{"quantity": name, "ranks": row.tolist()} for name, row in zip("abcd", ranks, strict=True)]
    assert judged(learned_scales, "X-8", rows) == verdict


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
    [((3, 2, 1), "reproduced"), ((1, 2, 0.5), "contradicted"), ((2, 1.9, 3), "not testable at this scale")],
)
def test_the_regulariser_nearest_to_the_noise_is_compared_with_every_other(ess, word):
    """Ten effective samples in a thousand steps are one unit; no map has the last."""
    of = zip(("T", "T", "identity"), (0.01, 1.0, None), ess, strict=True)
    rows = [
        {"map": name, "reg": reg, "ess_projections": 0.01 * value}
        | {"ess_projections_error": 0.0003, "rhat_projections": 1.001}
        for name, reg, value in of
    ]
    settings = {"num_chains": 8, "num_steps": 25_000, "noise_std": 0.1}
    assert judged(over_reg, "H-F7e", rows, **settings) == word
    assert [f.value for f in findings(over_reg, "H-F7e", rows, **settings)] == pytest.approx(
        [ess[0] / ess[1], ess[0] / ess[2]]
    )


def test_the_damping_is_twice_the_step_and_at_most_one():
    assert [float(best_damping(step_size)) for step_size in (0.125, 0.5, 3.0)] == [0.25, 1.0, 1.0]


@pytest.mark.parametrize(
    ("num_repeats", "num_epochs", "said"),
    [
        (3, 40, "reproduced"),
        (2, 40, "not testable at this scale"),
        (3, 39, "not testable at this scale"),
        (1, 10, "not testable at this scale"),
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
            rhat = 1.001 if "rejection" in name else None
            yield {"quantity": name, "width": width, "value": value, "error": relative * value, "rhat": rhat}
        # the gap to the closed form; a constant one does not vanish either
        gap = {"quantity": "KL in θ", "width": width, "value": value, "error": relative * value}
        yield gap | {"limit": 100.0}


@pytest.mark.parametrize("claim", theorems.findings)
def test_theorems_hold_for_a_quantity_that_vanishes_and_for_no_other(claim):
    assert len(theorems.findings) == 9
    assert judged(theorems, claim, by_law(-0.5)) == judged(theorems, claim, by_law(-1.0)) == "reproduced"
    assert judged(theorems, claim, by_law(0.0)) != "reproduced"
    assert judged(theorems, claim, by_law(0.5)) != "reproduced"
    assert judged(theorems, claim, by_law(-0.5, relative=0.5)) != "reproduced"  # too noisy to know


def test_a_distance_that_is_lost_in_noise_is_not_resolved():
    lost = [row | {"value": -0.001} if row["width"] == 1_024 else row for row in by_law(-1.0)]
    exponent, fall = findings(theorems, "H-P2.2", lost)
    assert str(exponent) == "not resolved" and not exponent.holds
    assert fall.holds


def test_unitwise_rejection_must_vanish_and_sweeps_be_independent():
    def judged(power, ess):
        rows = Rows(
            {
                "width": width,
                "rejection": 0.4 * (width / 64) ** power,
                "rejection_error": 1e-3,
                "ess_potential": ess(width),
                "ess_potential_error": 0.02,
                "ess_weights": ess(width),
                "ess_weights_error": 0.02,
                "rhat_potential": 1.02,
                "rhat_weights": 1.0 + 1 / width,
            }
            for width in (512, 64, 128, 256)  # in any order
        )
        findings = said("X-5", Results(rows, {"num_chains": 8, "num_sweeps": 300}, {}))
        assert [f.chains and f.chains.rhat for f in findings[-4:]] == [1.02] * 2 + [1 + 1 / 64] * 2
        return verdict(findings)

    assert judged(-1, lambda width: 1 - 10 / width) == "reproduced"
    assert judged(0, lambda width: 0.5) == "not reproduced"
    assert judged(-1, lambda width: 0.5) == "reproduced in part"


@pytest.mark.parametrize(
    ("deep", "angle", "shift", "said"),
    [
        (0.9, 1.5, 0.0, "reproduced"),
        (0.3, 1.5, 0.0, "reproduced in part"),
        (0.9, 1.0, 0.0, "reproduced in part"),
        (0.9, 1.5, 1.0, "reproduced in part"),
        (0.3, 1.0, 1.0, "not reproduced"),
    ],
)
def test_whitening_must_allow_longer_steps_for_gradients_of_equal_worth(deep, angle, shift, said):
    rows = Rows(
        {
            "depth": depth,
            "width": width,
            "target": name,
            "repeat": repeat,
            "step_size": 0.2 * (angle if name == "whitened" else 1) + 1e-3 * repeat,
            "ess_per_gradient": 0.08 * (deep if depth == 3 else 1) + 1e-4 * repeat,
            "potential": 7 + (5 * shift if name == "whitened" else 0) + 0.01 * repeat,
            "potential_std": 5.0,
            "ess": 300.0 + repeat,
            "rhat": 1.01 + 0.001 * repeat,
        }
        for depth in (3, 1)
        for width in (256, 128)
        for name in (("weights", "whitened") if depth > 1 else ("whitened",))
        for repeat in range(5)
    )
    assert verdict_on("X-6", Results(rows, {}, {})) == said
