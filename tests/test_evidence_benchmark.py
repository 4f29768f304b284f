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
    cases = [tuple(row[name] for name in (*evidence.Case._fields, "method")) for row in rows]
    assert cases == [(*size, method) for size in evidence.SIZES for method in METHODS]
    for row in rows:
        if "again" not in row:
            assert row["said"] == f"not within {evidence.LIMIT_S} s"
        elif row["method"] == "chains":
            assert "converged" in row["said"] and row["ess"] > 100
        elif row["method"] == "particles":
            assert row["log_evidence_error"] > 0


def test_what_takes_too_long_is_ended():
    with pytest.raises(TimeoutError), evidence.limited(0.05):
        while True:
            pass
    with evidence.limited(0.05):
        pass
    for _ in range(10**6):  # some 0.05 s, in which nothing ends it
        pass


@pytest.mark.slow
def test_a_case_is_measured(float32, monkeypatch):
    monkeypatch.setattr(evidence, "NUM_PARTICLES", 16)
    monkeypatch.setattr(evidence, "MOST_DRAWS", 400)
    monkeypatch.setattr(evidence.time, "process_time", itertools.count().__next__)
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):  # for BlackJAX
        rows = evidence.measure(evidence.Case(64, 1, 12, "diabetes"))
    assert [row["method"] for row in rows] == METHODS
    assert all(row["first"] == row["again"] == 1 for row in rows)
    ours, chains, theirs, laplace = rows
    assert "log_evidence" not in chains and "ess" not in laplace
    assert abs(ours["log_evidence"] - theirs["log_evidence"]) < 0.5 and ours["log_evidence_error"] < 0.1
    assert laplace["log_evidence"] < ours["log_evidence"]
