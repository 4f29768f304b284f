"""The experiment beyond one hidden layer: rows against importance sampling, parts, claims on made-up rows."""

import importlib
import json

import numpy as np
import pytest

import widebnn as wb
from book.experiments.findings import verdict
from widebnn.tables import Results, Rows

from .judging import said

MODULE = importlib.import_module("book.experiments.architectures")


def summary(potential):
    """Of two chains, kept every other step for a second."""
    return MODULE._summary(
        wb.Draws(
            collected={"potential": potential, "predictions": np.zeros((*potential.shape, 3))},
            stats={"acceptance_rate": np.zeros(potential.shape)},
            streamed={},
            position=None,
            step_size=None,
            thin=2,
            burn_in=0,
            seconds=1.0,
        )
    )


def test_chains_that_do_not_move_have_no_number():
    found = summary(np.zeros((2, 20)))
    for name in ("ess", "ess_bulk", "ess_tail", "rhat"):
        assert found[f"{name}_potential"] is None
    assert found["acceptance_error"] is None
    assert found["acceptance"] == 0 and found["ms_per_step"] == 12.5
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    stuck = np.stack([np.zeros(20), np.arange(20.0)])
    assert summary(stuck)["rhat_potential"] is summary(stuck)["ess_bulk_potential"] is None


def test_bulk_and_tail_see_chains_that_disagree():
    """Independent draws of every other step: half an effective sample a step, few where the chains differ."""
    independent = np.random.default_rng(0).normal(size=(2, 2_000))
    agreeing, apart = summary(independent), summary(np.array([[-2.0], [2.0]]) + independent)
    for name in ("ess_bulk", "ess_tail"):
        assert 0.35 < agreeing[f"{name}_potential"] < 0.65
        assert apart[f"{name}_potential"] < 0.05
    assert agreeing["potential"] == pytest.approx(independent.mean())
    assert apart["ess_potential"] == pytest.approx(agreeing["ess_potential"])  # chain by chain


def rows(gain, **rates):
    """A setting of two widths: of each sampler two acceptances, and pCNL's effective samples over pCN's."""
    made, rates = [], rates | {"Langevin, γ = 0.01": rates["Langevin"]}
    for name, pair in rates.items():
        for width, rate in zip((8, 64), pair, strict=True):
            ess = 0.1 * (gain[width == 64] if name == "pCNL" else 1.0)
            made.append(
                {"architecture": "dense", "dataset": "digits", "depth": 1, "width": width, "sampler": name}
                | {"num_steps": 1_000, "acceptance": rate, "acceptance_error": 0.01}
                | {"ess_potential": ess, "ess_potential_error": 0.001}
                | {"ess_bulk_potential": ess, "ess_tail_potential": ess, "rhat_potential": 1.02}
            )
    return made


def judged(made):
    findings = said("P-X", Results(Rows(reversed(made)), {"num_chains": 2}, {}))
    return verdict(findings), findings


def test_verdicts_follow_the_numbers():
    rising = {"pCN": (0.1, 0.6), "pCNL": (0.5, 0.9), "Langevin": (0.5, 0.3)}
    assert judged(rows((1.0, 3.0), **rising))[0] == "holds"
    falling = {"pCN": (0.6, 0.5), "pCNL": (0.5, 0.4), "Langevin": (0.3, 0.5)}
    assert judged(rows((3.0, 1.0), **falling))[0] == "fails"
    assert judged(rows((3.0, 1.0), **rising))[0] == "holds in part"


def test_too_few_effective_samples_resolve_no_gap():
    made = rows((1.0, 3.0), pCN=(0.1, 0.6), pCNL=(0.5, 0.9), Langevin=(0.5, 0.3))
    made[0]["ess_bulk_potential"] = 0.07  # 140 of two chains of 1,000 steps
    *_, gap = judged(made)[1]
    assert np.isnan(gap.value) and not gap.holds
