"""The experiment over width: what its rows hold, and that its summaries are right."""

import dataclasses

import numpy as np
import pytest

import widebnn as wb
from widebnn.experiments import CLAIMS, OverWidth, over_width, series
from widebnn.experiments.chains.over_width import SAMPLERS, _summary
from widebnn.experiments.settings.chain_summaries import mean_of_chains
from widebnn.study import Results, Rows
from widebnn.study.speed import operations

TINY = dataclasses.replace(
    over_width.scales["smoke"], num_train=8, num_test=4, widths=(4,), num_steps=(50,) * 4, burn_in=5
)


@pytest.fixture(scope="module")
def rows():
    return Rows(over_width(TINY))


@pytest.mark.slow
def test_rows_cover_the_grid(rows):
    assert [(r["width"], r["sampler"]) for r in rows] == [(4, s) for s in SAMPLERS]
    for row in rows:
        assert 0 <= row["acceptance"] <= 1
        assert row["ms_per_step"] > 0
        # all of φ: W¹ and b¹, readout and its bias; rotated: rank 8, and the bias
        whole = 64 * row["width"] + row["width"] + 10 * (row["width"] + 1)
        assert row["dimension"] == (
            whole if row["sampler"] in ("Langevin", "random walk") else 9 * row["width"]
        )
        assert (row["ess_weights"] is None) == (row["ess_bulk_weights"] is None)
        if row["ess_weights"] is not None:
            assert 0 < row["ess_low_weights"] <= row["ess_weights"] <= row["ess_high_weights"]
            assert min(row["ess_bulk_weights"], row["ess_tail_weights"]) > 0


@pytest.mark.slow
def test_a_part_of_the_grid_has_the_same_rows(rows):
    (again,) = over_width(dataclasses.replace(TINY, samplers=("pCN",), num_steps=(50,)))
    (before,) = (row for row in rows if row["sampler"] == "pCN")
    assert {**again, "ms_per_step": None} == {**before, "ms_per_step": None}


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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"samplers": ("pCN", "gibbs"), "num_steps": (1, 1)}, ["sampler", "gibbs", "pCNL"]),
        ({"num_steps": (10, 10)}, ["num_steps", "(10, 10)"]),
        ({"dataset": "imagenet"}, ["dataset", "imagenet", "cifar10"]),
    ],
)
def test_bad_configurations_are_refused_where_they_are_made(change, words):
    with pytest.raises(ValueError) as error:
        dataclasses.replace(TINY, **change)
    for word in words:
        assert word in str(error.value)


def test_paper_scale_is_the_papers():
    paper = over_width.scales["paper"]
    assert (paper.num_train, paper.noise_std, paper.thin) == (256, 0.1, 25)
    assert paper.step_sizes == (0.2, 0.1, 0.01)
    assert set(paper.num_steps) == {1_000_000}
    assert isinstance(paper, OverWidth)


def test_series_is_in_the_order_of_width():
    rows = Rows(
        {"width": w, "sampler": "pCN", "step_size": 0.2, "acceptance": w / 10, "ess_weights": None}
        for w in (8, 2, 4)
    )
    np.testing.assert_array_equal(series(rows, "pCN", 0.2), [0.2, 0.4, 0.8])
    assert np.isnan(series(rows, "pCN", 0.2, "ess_weights")).all()
    with pytest.raises(ValueError, match=r"no sampler 'pCN' at step_size 0\.3"):
        series(rows, "pCN", 0.3)
    with pytest.raises(ValueError, match="column must be one of .*; got 'ess'"):
        series(rows, "pCN", 0.2, "ess")


def test_results_tell_the_speed_of_the_widest_steps():
    rows = Rows(
        [
            {"sampler": "pCN", "width": 8, "ms_per_step": 0.1},
            {"sampler": "pCN", "width": 64, "ms_per_step": 1.0},
            {"sampler": "pCN", "width": 64, "ms_per_step": 3.0},
            {"sampler": "Langevin", "width": 64, "ms_per_step": 100.0},
        ]
    )
    found = over_width.flops(Results(rows, {"num_train": 32}, {}))
    assert found == pytest.approx(operations(32, 64) / 0.002)
    assert operations(32, 64) == 4 * 32**2 * 64 + 32**3 / 3


@pytest.mark.parametrize(
    ("ess", "what", "ratio"),
    [(0.006, "widest", 0.3), (0.003, "widest, at most", 0.25), (None, "widest, at most", 0.25)],
)
def test_langevin_that_is_not_resolved_counts_as_the_least_that_would_be(ess, what, ratio):
    per_step = {"pCN": 0.02, "pCNL": 0.03, "Langevin": ess}
    rows = [
        {"width": width, "sampler": name, "step_size": 0.2}
        | {f"ess{kind}_weights": value for kind in ("", "_low", "_high")}
        for width in (8, 16)
        for name, value in per_step.items()
    ]
    config = {"samplers": list(per_step), "num_steps": [2_000] * 3, "num_projections": 100}
    (summarise,) = (claim.summarise for claim in CLAIMS if claim.id == "P-F2")
    finding = summarise(Results(Rows(rows), config, {}))[-1]
    assert finding.what == f"LMC ÷ pCN, β = 0.2, {what}"
    assert finding.value == pytest.approx(ratio) and finding.holds


@pytest.mark.parametrize(
    ("narrow", "middle", "ratio"), [(0.01, 0.04, 2), (None, 0.01, 2), (0.004, None, None)]
)
def test_the_widest_network_is_compared_with_the_narrowest_that_is_resolved(narrow, middle, ratio):
    rows = [
        {"width": width, "sampler": name, "step_size": 0.2}
        | {f"ess{kind}_weights": ess for kind in ("", "_low", "_high")}
        for width, ess in ((8, narrow), (16, middle), (32, 0.02))
        for name in ("pCN", "pCNL", "Langevin")
    ]
    config = {"samplers": ["pCN", "pCNL", "Langevin"], "num_steps": [2_000] * 3, "num_projections": 100}
    (summarise,) = (claim.summarise for claim in CLAIMS if claim.id == "P-F2")
    for finding in summarise(Results(Rows(rows), config, {}))[:2]:
        assert finding.holds == (ratio is not None)
        assert np.isnan(finding.value) if ratio is None else finding.value == pytest.approx(ratio)


def test_the_error_of_a_mean_over_projections_comes_from_their_range():
    rng = np.random.default_rng(0)
    num, num_repeats, per_step = 100, 400, 0.02
    (summarise,) = (claim.summarise for claim in CLAIMS if claim.id == "P-F2")
    config = {"samplers": ["pCN", "pCNL", "Langevin"], "num_steps": [2_000] * 3, "num_projections": num}
    found = []
    for _ in range(num_repeats):
        rows = []
        for width in (8, 16):
            for name in config["samplers"]:
                ess = per_step * (1 + 0.3 * rng.standard_normal(num))
                kinds = {"": float(ess.mean()), "_low": float(ess.min()), "_high": float(ess.max())}
                row = {"width": width, "sampler": name, "step_size": 0.2}
                rows.append(row | {f"ess{kind}_weights": value for kind, value in kinds.items()})
        found.append(summarise(Results(Rows(rows), config, {}))[0])
    true = np.std([finding.value for finding in found])
    assert abs(np.mean([finding.error for finding in found]) / true - 1) < 0.15  # 3.5 % is one deviation
    assert not any(finding.holds for finding in found[:20])  # of equal chains none rises
