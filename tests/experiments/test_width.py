"""The experiment over width: what its rows hold, and that its summaries are right."""

import numpy as np
import pytest

import widebnn as wb
from book.experiments.chain_summaries import mean_of_chains
from book.experiments.findings import Finding, verdict
from book.experiments.over_width import PAPERS, _resolved, _summary
from widebnn.tables import Results, Rows

from .judging import said


def test_standard_error_knows_the_autocorrelation():
    rng = np.random.default_rng(0)
    num_chains, n, rho = 400, 2_000, 0.9
    noise = rng.standard_normal((num_chains, n))
    x = np.empty_like(noise)
    x[:, 0] = noise[:, 0]
    for t in range(1, n):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * noise[:, t]
    errors = [mean_of_chains(chain[None]).error for chain in x]
    true = x.mean(axis=1).std()
    assert abs(np.mean(errors) / true - 1) < 0.15  # the deviation of 400 means is known to 3.5 %


def test_a_chain_that_always_accepts_has_an_acceptance_without_error():
    stats = {"acceptance_rate": np.ones((1, 10))}
    draws = wb.Draws({}, stats, {}, None, 0.1, 1, 0, seconds=1.0)
    assert _summary(draws, 10) == {"acceptance": 1, "acceptance_error": 0, "ms_per_step": 100}


def made(**by_width):
    """Rows at β = 0.2 of effective samples per step, of weights and of predictions alike."""
    kinds = ("ess", "ess_low", "ess_high", "ess_bulk", "ess_tail")
    return [
        {"width": int(width[1:]), "sampler": name, "step_size": 0.2}
        | {f"{kind}_{quantity}": ess for kind in kinds for quantity in ("weights", "predictions")}
        for width, ess in by_width.items()
        for name in PAPERS
    ]


def found(id, rows):
    config = {"samplers": PAPERS, "num_steps": [2_000] * 4, "num_projections": 100}
    findings = said(id, Results(Rows(rows), config, {}))
    return findings, verdict(findings)


@pytest.mark.parametrize(("narrow", "middle", "ratio"), [(0.1, 0.4, 2), (None, 0.1, 2), (0.07, None, None)])
def test_the_widest_network_is_compared_with_the_narrowest_that_is_resolved(narrow, middle, ratio):
    """150 effective samples of 2,000 steps are 0.075 a step."""
    findings, word = found("P-F2", made(w8=narrow, w16=middle, w32=0.2))
    assert len(findings) == 8 and word == ("reproduced" if ratio else "not testable at this scale")
    for finding in findings:
        if "narrowest" in finding.what:
            assert finding.is_known == (ratio is not None)
            if finding.is_known and "predictions" in finding.what:  # each as well known as a single entry
                assert finding.error / finding.value == pytest.approx(3 * np.sqrt(1 / 200 + 1 / 400))
            else:
                assert finding.holds == finding.is_known
            assert np.isnan(finding.value) if ratio is None else finding.value == pytest.approx(ratio)
            assert finding.chains.ess == (ratio and pytest.approx(200))


@pytest.mark.parametrize("kind", ["ess", "ess_bulk", "ess_tail"])
def test_what_bulk_or_tail_does_not_resolve_has_no_number(kind):
    rows = made(w8=0.1, w16=0.2)
    for row in rows:
        row[f"{kind}_weights"] = 0.07
    findings, word = found("P-F2", rows)
    assert word == "not testable at this scale"
    assert [np.isnan(finding.value) for finding in findings] == [True] * 4 + [False] * 4
    assert [finding.chains.ess for finding in findings[:4]] == [None] * 2 + [pytest.approx(140)] * 2


def test_the_error_of_a_mean_over_projections_comes_from_their_range():
    rng = np.random.default_rng(0)
    num, num_repeats, per_step = 100, 400, 0.2
    config = {"samplers": ["pCN"], "num_steps": [2_000], "num_projections": num}
    results, found = Results(Rows(), config, {}), []
    for _ in range(num_repeats):
        rows = []
        for width in (8, 16):
            ess = per_step * (1 + 0.3 * rng.standard_normal(num))
            kinds = {
                "": ess.mean(),
                "_low": ess.min(),
                "_high": ess.max(),
                "_bulk": per_step,
                "_tail": per_step,
            }
            row = {"width": width, "sampler": "pCN"}
            rows.append(row | {f"ess{kind}_weights": float(value) for kind, value in kinds.items()})
        (narrow, _), (wide, _) = _resolved(results, Rows(rows), "weights")
        found.append(wide / narrow)
    true = np.std([ratio.value for ratio in found])
    assert abs(np.mean([ratio.error for ratio in found]) / true - 1) < 0.15  # 3.5 % is one deviation
    assert not any(Finding("", ratio, above=1).holds for ratio in found[:20])  # of equal chains none rises
