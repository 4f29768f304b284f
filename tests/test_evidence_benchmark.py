"""The benchmark of particles against chains, BlackJAX and Laplace: what it measures, and what is shipped."""

import itertools
import json

import jax
import pytest

from benchmarks import evidence
from widebnn.tables import folder as results_folder

METHODS = ["particles", "chains", "BlackJAX tempered SMC", "Laplace"]


def test_shipped_rows_cover_the_sizes_once():
    rows = json.loads((results_folder() / "evidence.json").read_text())
    cases = [(row["width"], row["depth"], row["num_data"], row["method"]) for row in rows]
    assert cases == [(*size, method) for size in evidence.SIZES for method in METHODS]
    for particles, chains in zip(rows[0::4], rows[1::4]):
        assert "converged" in chains["said"] and chains["ess"] > 100 and particles["log_evidence_error"] > 0


@pytest.mark.slow
def test_a_case_is_measured(float32, monkeypatch):
    monkeypatch.setattr(evidence, "NUM_PARTICLES", 16)
    monkeypatch.setattr(evidence, "MOST_DRAWS", 400)
    monkeypatch.setattr(evidence.time, "process_time", itertools.count().__next__)
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):  # for BlackJAX
        rows = evidence.measure(evidence.Case(64, 1, 12))
    assert [row["method"] for row in rows] == METHODS
    assert all(row["first"] == row["again"] == 1 for row in rows)
    ours, chains, theirs, laplace = rows
    assert "log_evidence" not in chains and "ess" not in laplace
    assert abs(ours["log_evidence"] - theirs["log_evidence"]) < 0.5 and ours["log_evidence_error"] < 0.1
    assert laplace["log_evidence"] < ours["log_evidence"]
