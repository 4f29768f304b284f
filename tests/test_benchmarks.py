"""The peers that we are timed against sample the same posterior, and what is shipped is whole."""

import json
import math
from pathlib import Path

import pytest

import widebnn as wb
from benchmarks import effective_samples
from benchmarks.__main__ import EFFICIENCY, WIDTHS, follow
from benchmarks.effective_samples import Posterior, median_times
from benchmarks.steps import DEEP
from benchmarks.timing import compare
from benchmarks.vi_epoch import vi_epoch
from book.experiments.efficiency import timed

pytestmark = pytest.mark.usefixtures("float32")

SHIPPED = Path(__file__).parents[1] / "book" / "results" / "bench.json"


def test_a_ratio_is_peer_over_ours():
    row = compare("x", ours=lambda: 2.0, peer=lambda: 6.0, rounds=3)
    assert (row["ours"], row["peer"], row["ratio"], row["spread"]) == (2.0, 6.0, 3.0, (3.0, 3.0))


def test_shipped_tables_are_whole():
    bench = json.loads(SHIPPED.read_text())
    wanted = {f"pcn_step_vs_paper_{width}" for width in WIDTHS}
    wanted |= {f"gradient_whitened_vs_weights_{width}x{depth}" for width, depth in DEEP}
    wanted |= {"vi_epoch_vs_torch"}
    assert {row["id"] for row in bench["rows"]} == wanted
    for row in bench["rows"]:
        low, high = row["spread"]
        assert 0 < low <= row["ratio"] <= high < math.inf
    made = {(row["width"], row.get("depth", 1), row["sampler"]) for row in bench["efficiency"]}
    assert {(*network, name) for network, names in EFFICIENCY.items() for name in names} <= made
    assert all(row["ess_per_second"] > 0 for row in bench["efficiency"])
    assert len(bench["waterfall"]) == 6


@pytest.mark.slow
def test_samplers_are_followed_and_timed(monkeypatch):
    """The papers' pCN makes the effective samples of ours."""
    for name, small in (("ENOUGH", 5.0), ("TUNING_STEPS", 50), ("ROUNDS", 1), ("TIMED_SECONDS", 0.01)):
        monkeypatch.setattr(effective_samples, name, small)
    name = "pCN, acceptance 0.4"
    chains = follow(Posterior(wb.data.digits(12, 5), 64, num_projections=5), [name])
    rows = {name: timed(chains.found[name], ms) for name, ms in median_times(chains.clocks).items()}
    ours, papers = rows[name], rows[f"paper {name}"]
    assert 0.2 < ours["acceptance"] < 0.6 and 0 < ours["step_size"] < 1 and ours["error"] > 0
    assert ours["ess"] == pytest.approx(4 * ours["num_steps"] * ours["ess_per_step"])
    assert papers["ess"] == ours["ess"] and papers["ms_per_step"] > 0 < ours["ms_per_step"]


def test_rows_without_their_peer_are_skipped(monkeypatch, capsys, tmp_path):
    empty = tmp_path / "python"
    empty.write_text("#!/bin/sh\nexit 1\n")
    empty.chmod(0o755)
    monkeypatch.setattr("benchmarks.vi_epoch.TORCH_PYTHON", str(empty))
    assert list(vi_epoch()) == []
    assert f"skipped vi_epoch_vs_torch: {empty} has no PyTorch" in capsys.readouterr().out
