"""The benchmark of particles against chains and others: what it measures, and what is shipped."""

import itertools
import json
import re

import jax
import pytest

from benchmarks import evidence
from widebnn.tables import folder as results_folder

from .exact import evidence as exact_evidence

METHODS = ["particles", "chains", "BlackJAX tempered SMC", "Laplace"]
MORE = {evidence.NESTED_WIDTH: ["nested sampling"], evidence.NUTS_WIDTH: ["NumPyro NUTS"]}


@pytest.fixture
def loose():
    """As BlackJAX and NumPyro want it."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


def test_shipped_rows_cover_the_sizes_once():
    rows = json.loads((results_folder() / "evidence.json").read_text())
    cases = [tuple(row[name] for name in (*evidence.Case._fields, "method")) for row in rows]
    wanted = [(*size, method) for size in evidence.SIZES for method in METHODS + MORE.get(size[0], [])]
    assert cases == wanted
    for row in rows:
        if "again" not in row:
            assert re.fullmatch(r"not within \d+ s", row["said"])
        elif row["method"] == "chains":
            assert "converged" in row["said"] and row["ess"] > 100
        elif row["method"] in ("particles", "nested sampling"):
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
def test_a_case_is_measured(float32, loose, monkeypatch):
    monkeypatch.setattr(evidence, "NUM_PARTICLES", 16)
    monkeypatch.setattr(evidence, "MOST_DRAWS", 400)
    monkeypatch.setattr(evidence.time, "process_time", itertools.count().__next__)
    rows = evidence.measure(evidence.Case(64, 1, 12, "diabetes"))
    assert [row["method"] for row in rows] == METHODS
    assert all(row["first"] == row["again"] == 1 for row in rows)
    ours, chains, theirs, laplace = rows
    assert "log_evidence" not in chains and "ess" not in laplace
    assert abs(ours["log_evidence"] - theirs["log_evidence"]) < 0.5 and ours["log_evidence_error"] < 0.1
    assert laplace["log_evidence"] < ours["log_evidence"]


@pytest.mark.slow
def test_nested_sampling_has_the_exact_evidence(float32, loose, monkeypatch):
    monkeypatch.setattr(evidence, "NUM_LIVE", 100)
    target, exact = exact_evidence.linear()
    found = evidence.by_nested(target)(jax.random.key(0))
    assert 0.05 < found.log_evidence_error < 0.4
    assert abs(found.log_evidences - exact) < 4 * found.log_evidence_error
    assert evidence.told(found)["log_evidence_error"] == round(found.log_evidence_error, 3)
