"""The experiment over width: what its rows hold, and that its summaries are right."""

import numpy as np
import pytest

import widebnn as wb
from book.experiments import over_width
from book.experiments.chain_summaries import mean_of_chains
from book.experiments.findings import Finding, verdict
from book.experiments.over_width import PAPERS, _summary
from widebnn.tables import Results, Rows

from ..exact.streams import autoregressive


def test_standard_error_knows_the_autocorrelation():
    x = autoregressive(np.random.default_rng(0), 0.9, (400, 2_000), axis=1)
    errors = [mean_of_chains(chain[None]).error for chain in x]
    true = x.mean(axis=1).std()
    assert abs(np.mean(errors) / true - 1) < 0.15  # the deviation of 400 means is known to 3.5 %


def test_a_chain_that_always_accepts_has_an_acceptance_without_error():
    stats = {"acceptance_rate": np.ones((1, 10))}
    draws = wb.Draws({}, stats, {}, None, 0.1, 1, 0, seconds=1.0)
    assert _summary(draws, 10) == {"acceptance": 1, "acceptance_error": 0, "ms_per_step": 100}


KINDS = ("ess", "ess_low", "ess_high", "ess_bulk", "ess_tail")


def made(*, langevin=0.01, acceptance=0.5, **by_width):
    """Rows at β = 0.2 of effective samples per step, of weights and of predictions alike."""
    return [
        {"width": int(width[1:]), "sampler": name, "step_size": 0.2, "ms_per_step": 1.0}
        | {f"{kind}_{of}": ess if "pCN" in name else langevin for kind in KINDS for of in QUANTITIES}
        | {"acceptance": acceptance, "acceptance_error": 0.0}
        for width, ess in by_width.items()
        for name in PAPERS
    ]


QUANTITIES = "weights", "predictions"
SETTINGS = {"samplers": PAPERS, "num_steps": [2_000] * 4, "num_projections": 100, "num_train": 8}


def found(rows, *beside):
    results, *others = (Results(Rows(each), SETTINGS, {}) for each in (rows, *beside))
    findings = over_width.mixing_over_width.findings["P-F2"](results, others)
    return findings, verdict(findings)


@pytest.mark.parametrize(
    ("narrow", "middle", "ratio"), [(0.1, 0.8, 8), (None, 0.1, 8), (0.07, None, None), (0.7, 0.7, 0.8 / 0.7)]
)
def test_the_widest_network_is_compared_with_the_narrowest_that_is_resolved(narrow, middle, ratio):
    """150 effective samples of 2,000 steps are 0.075 a step."""
    rows = made(w8=narrow, w16=middle, w32=0.8, acceptance=0.0)
    findings, word = found(rows)
    assert len(findings) == 8 and word == ("holds" if ratio == 8 else "holds in part")
    for finding in findings:
        if "narrowest" in finding.what:
            assert finding.is_known == (ratio is not None)
            assert np.isnan(finding.value) if ratio is None else finding.value == pytest.approx(ratio)
    if ratio == 8:
        of_predictions = findings[4]
        error = 3 * np.sqrt(1 / 200 + 1 / 1_600)  # each as well known as a single entry
        assert of_predictions.error / of_predictions.value == pytest.approx(error)
        assert findings[0].chains.ess == pytest.approx(200)


def test_widths_of_all_runs_count_and_of_one_width_the_last():
    findings, word = found(made(w16=0.4, w32=0.8), made(w8=0.1, w16=0.2))
    assert word == "holds"
    assert findings[0].what == "pCN, weights, β = 0.2: 32 ÷ 8, the narrowest resolved"
    assert [findings[0].value, findings[1].value] == pytest.approx([8, 8])


@pytest.mark.parametrize(
    ("langevin", "acceptance", "ratio"),
    [(0.2, 0.5, 0.25), (0.01, 0.0, 0.0005 / 0.8), (None, 0.08, 0.0805 / 0.8)],
)
def test_langevin_has_no_more_effective_samples_than_accepted_moves(langevin, acceptance, ratio):
    findings, word = found(made(w8=0.1, w32=0.8, langevin=langevin, acceptance=acceptance))
    of_langevin = [finding for finding in findings if "LMC" in finding.what]
    assert word == "holds" and len(of_langevin) == 4
    for finding in of_langevin:
        assert finding.value == pytest.approx(ratio) and ("at most" in finding.what) == (langevin != 0.2)


@pytest.mark.parametrize("kind", ["ess", "ess_bulk", "ess_tail"])
def test_what_bulk_or_tail_does_not_resolve_has_no_number(kind):
    rows = made(w8=0.1, w16=0.2)
    for row in rows:
        row[f"{kind}_weights"] = 0.07
    findings, _ = found(rows)
    assert [finding.is_known for finding in findings] == [False] * 4 + [True] * 4
    assert [finding.chains.ess for finding in findings[:4]] == [pytest.approx(140)] * 4


def test_the_error_of_a_mean_over_projections_comes_from_their_range():
    rng = np.random.default_rng(0)
    num, num_repeats, per_step = 100, 400, 0.2
    settings, found = SETTINGS | {"samplers": ["pCN"], "num_steps": [2_000]}, []
    for _ in range(num_repeats):
        rows = made(w8=per_step, w16=per_step)
        for row in rows:
            ess = per_step * (1 + 0.3 * rng.standard_normal(num))
            row |= {"ess_weights": ess.mean(), "ess_low_weights": ess.min(), "ess_high_weights": ess.max()}
        results = Results(Rows(rows), settings, {})
        narrow, wide = over_width.over_widths([results], 0.2, "pCN", "weights")
        found.append(wide.per_step / narrow.per_step)
    true = np.std([ratio.value for ratio in found])
    assert abs(np.mean([ratio.error for ratio in found]) / true - 1) < 0.15  # 3.5 % is one deviation
    assert not any(Finding("", ratio, above=1).holds for ratio in found[:20])  # of equal chains none rises
