"""The benchmark of seconds to 400 effective samples: what it measures, and what it leaves out."""

import json

import jax.numpy as jnp
import pytest

from benchmarks import first_draws
from benchmarks.first_draws import Case, measure
from widebnn import Until
from widebnn.tables import folder as results_folder


def test_shipped_rows_cover_the_grid_once():
    rows = json.loads((results_folder() / "firstdraws.json").read_text())
    cases = [(row["depth"], row["width"], row["method"]) for row in rows]
    assert len(cases) == len(set(cases)) == 4 * (3 + 3 + 3)
    assert {row["num_data"] for row in rows} == {32}
    for row in rows:
        assert row["stopped"] in ("converged", "seconds", "num_samples", "burn-in")
        if row["stopped"] == "converged":
            assert row["ess"] >= 400 and row["rhat"] <= 1.01


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "stopped"), [(1e9, "converged"), (1e-9, "burn-in")])
def test_a_case_is_measured(float32, monkeypatch, budget, stopped):
    class Data:
        x_train, y_train = jnp.eye(6, 4), jnp.ones((6, 2))

    monkeypatch.setattr(first_draws.wb.data, "cifar10", lambda **sizes: Data)
    monkeypatch.setattr(first_draws, "ENOUGH", Until(ess=100, rhat=1.1, seconds=budget))
    (row,) = measure(Case("HMC, whitened", 16, 2, 6))
    assert row["stopped"] == stopped and row["seconds"] > 0
    assert ("ess" in row) == (stopped == "converged")
