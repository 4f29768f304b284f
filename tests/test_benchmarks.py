"""The peers that we are timed against sample the same posterior, and what is shipped is whole."""

import json
import math
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import widebnn as wb
from benchmarks import effective_samples, machine, regressor_fit
from benchmarks.__main__ import COSTS, EFFICIENCY, PEERS, STEPS, chosen, comparisons, follow, size
from benchmarks.depth import SIZES
from benchmarks.effective_samples import PCN, Posterior, median_times
from benchmarks.paper_lmc import lmc_steps
from benchmarks.paper_pcn import log_density, pcn_steps
from benchmarks.peak_memory import peak_memory
from benchmarks.steps import posterior
from benchmarks.timing import compare, has
from benchmarks.vi_epoch import TORCH_PYTHON, our_epochs, torch_epochs, vi_epoch
from book.experiments.efficiency import timed

pytestmark = pytest.mark.usefixtures("float32")

SHIPPED = Path(__file__).parents[1] / "book" / "results" / "bench.json"


@pytest.mark.slow
def test_the_papers_density_is_ours():
    with jax.enable_x64(True):
        data = wb.data.digits(20, 5)
        x, y = jnp.asarray(data.x_train, jnp.float64), jnp.asarray(data.y_train, jnp.float64)
        bnn = posterior(data, width=8).bnn
        target = wb.targets.repriorised(bnn, x, y)
        density = log_density(bnn, target.template)

        @jax.jit
        @jax.vmap
        def both(key):
            u = target.draw_prior(key)
            return density(ravel_pytree(u)[0], x, y), target.logdensity(u)

        theirs, ours = both(jax.random.split(jax.random.key(0)))
    np.testing.assert_allclose(np.diff(theirs), np.diff(ours), rtol=1e-10)


@pytest.mark.slow
def test_the_papers_steps_accept_as_ours_do():
    data = wb.data.digits(20, 5)
    bnn = posterior(data, width=16).bnn
    theirs = pcn_steps(bnn, data.x_train, data.y_train, 0.05)
    theirs(500)
    target = wb.targets.rotated(wb.targets.marginal(bnn, data.x_train, data.y_train))
    draws = wb.sample(jax.random.key(0), target, wb.samplers.pcn(0.05), num_samples=3_000, num_chains=1)
    rates = draws.stats["acceptance_rate"]
    error = rates.std() / np.sqrt(float(wb.effective_sample_size(rates)))
    assert abs(theirs(3_000) - rates.mean()) < 5 * np.sqrt(2) * error


def acceptance(sampler, target, num_samples=2_000):
    draws = wb.sample(
        jax.random.key(0), target, sampler, num_samples=num_samples, burn_in=500, num_chains=2, progress=False
    )
    rates = draws.stats["acceptance_rate"]
    return rates.mean(), rates.std() / np.sqrt(float(wb.effective_sample_size(rates)))


@pytest.mark.slow
def test_the_papers_langevin_steps_accept_as_those_we_follow():
    data = wb.data.digits(20, 5)
    bnn = posterior(data, width=16).bnn
    step_size, damping = 0.1, 0.1
    theirs = lmc_steps(bnn, data.x_train, data.y_train, step_size, damping)
    theirs(500)
    target = wb.targets.rotated(wb.targets.marginal(bnn, data.x_train, data.y_train))
    whole, informed = (
        sum(leaf.size for leaf in jax.tree.leaves(tree))
        for tree in (bnn.template(data.x_train), target.template)
    )
    sampler = wb.samplers.langevin(step_size, damping, metropolis=False, num_flat=whole - informed)
    ours, error = acceptance(sampler, target)
    assert abs(theirs(2_000) - ours) < 5 * np.sqrt(3) * error


def test_a_ratio_is_peer_over_ours():
    row = compare("x", ours=lambda: 2.0, peer=lambda: 6.0, rounds=3)
    assert (row["ours"], row["peer"], row["ratio"], row["spread"]) == (2.0, 6.0, 3.0, (3.0, 3.0))


def test_shipped_tables_are_whole():
    bench = json.loads(SHIPPED.read_text())
    rows = {row["id"]: row for row in bench["rows"]}
    wanted = {f"{benchmark.__name__}_{width}" for benchmark, widths in STEPS for width in widths}
    wanted |= {"gradient_exponent_whitened_depth3"}
    wanted |= {f"gradient_whitened_vs_weights_{size(width, depth)}" for width, depth in SIZES}
    listed = {(*network, name) for network, names in EFFICIENCY.items() for name in names}
    papers = {(width, depth, f"paper {name}") for width, depth, name in listed if name in PCN}
    by_sampler = {name: id for id, names in PEERS.items() for name in names}
    compared = {
        (width, depth, name): f"{by_sampler[name]}_{size(width, depth)}"
        for width, depth, name in listed | papers
        if name in by_sampler
    }
    wanted |= set(compared.values())
    assert wanted <= set(rows)
    for row in rows.values():
        low, high = row["spread"]
        assert 0 < low <= row["ratio"] <= high < math.inf
    made = {(row["width"], row.get("depth", 1), row["sampler"]) for row in bench["efficiency"]}
    assert listed <= made
    assert all(row["ess_per_second"] > 0 for row in bench["efficiency"])
    assert len(bench["waterfall"]) == 6


def test_named_samplers_run_where_they_are_listed_beside_ours():
    assert dict(chosen()) == {network: list(names) for network, names in EFFICIENCY.items()}
    assert dict(chosen(["BlackJAX mgrad"])) == {
        (1_024, 1): ["unit-wise", "function-space HMC", "BlackJAX mgrad"]
    }
    assert not dict(chosen([COSTS]))
    weights = ["function-space HMC, one radian", "function-space HMC on weights"]
    assert dict(chosen(weights[1:])) == {(1_024, 2): weights, (4_096, 2): weights}


def test_functions_of_a_deep_network_are_the_same_on_whitened_layers_and_on_weights(monkeypatch):
    monkeypatch.setitem(effective_samples.BURN_IN, "function-space HMC, one radian", 3)
    whitened = Posterior(wb.data.digits(12, 5), width=32, depth=2)
    weights = whitened.on_weights()
    assert len(jax.tree.leaves(weights.positions)[-1]) == effective_samples.NUM_CHAINS
    assert jax.tree.map(jnp.shape, weights.positions) != jax.tree.map(jnp.shape, whitened.positions)

    def values(posterior):
        functions = posterior.collect.items()
        target = posterior.target
        found = jax.vmap(lambda position: {name: function(target, position) for name, function in functions})
        return jax.jit(found)(posterior.positions)

    ours, theirs = values(whitened), values(weights)
    for name in whitened.collect:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=2e-3)
        assert np.ptp(ours[name], axis=0).min() > 0  # chains differ


@pytest.mark.slow
def test_samplers_are_followed_timed_and_compared(monkeypatch):
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
    (row,) = comparisons("64", rows, chains.draws)
    assert row["id"] == "ess_vs_paper_pcn_64"
    assert row["ratio"] == pytest.approx(papers["ms_per_step"] / ours["ms_per_step"])


@pytest.mark.parametrize(
    ("interpreter", "rows", "said"),
    [
        ("vi_epoch.TORCH_PYTHON", vi_epoch, "skipped vi_epoch_vs_torch: {} has no PyTorch"),
        ("peak_memory.NUMPYRO_PYTHON", peak_memory, "skipped peak_memory_vs_numpyro: {} has no NumPyro"),
    ],
)
def test_rows_without_their_peer_are_skipped(interpreter, rows, said, monkeypatch, capsys, tmp_path):
    empty = tmp_path / "python"
    empty.write_text("#!/bin/sh\nexit 1\n")
    empty.chmod(0o755)
    monkeypatch.setattr(f"benchmarks.{interpreter}", str(empty))
    assert list(rows()) == []
    assert said.format(empty) in capsys.readouterr().out


PEAK = """
import numpy as np
from benchmarks.numpyro_hmc import peak_mib

before = peak_mib()
held = np.ones(2**24)  # 128 MiB
print(peak_mib() - before)
del held
print(peak_mib() - before)
"""


def test_peak_memory_is_that_of_the_process():
    """One of its own, where no other test has had more."""
    command, root = [sys.executable, "-c", PEAK], Path(__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    held, freed = map(float, done.stdout.split())
    assert 100 < held < 200 and freed > 100  # the peak stays


class Fitted:
    """In place of an estimator."""

    def __init__(self, width=128, num_samples=1, until=None, random_state=0):
        self.stopped_ = "converged" if random_state == 0 else "draws"

    def fit(self, x, y):
        assert x.shape == (len(y), 5) and len(y) in (30, 31)
        return self


def test_a_machine_is_named_and_measured(monkeypatch):
    for name, small in (("SIDE", 32), ("NUM_FLOATS", 1_000), ("NUM_NORMALS", 1_000)):
        monkeypatch.setattr(machine, name, small)
    found = machine.machine()
    assert found["processor"] == machine.processor() and len(found["processor"]) > 2
    assert all(value > 0 for name, value in found.items() if name != "processor")


def test_seconds_of_a_fit_that_did_not_converge_are_not_reported(monkeypatch, capsys):
    monkeypatch.setattr(wb, "BNNRegressor", Fitted)
    monkeypatch.setattr(regressor_fit, "ROUNDS", {30: 1, 31: 2})
    rows = list(regressor_fit.regressor_fits())
    kinds = [("process", 30), ("regressor", 30), ("process", 31)]
    assert [row["id"] for row in rows] == [f"{kind}_fit_vs_gpr_{n}" for kind, n in kinds]
    assert all(row["unit"] == "s/fit" and row["ratio"] > 1 for row in rows)  # nothing was fitted by ours
    assert rows[0]["ratio"] == rows[0]["peer"] / rows[0]["ours"]
    assert "skipped regressor_fit_vs_gpr_31: ours ended by draws" in capsys.readouterr().out


@pytest.mark.skipif(
    not has(TORCH_PYTHON, "torch"), reason="PyTorch, of the optional extra `bench`, is not installed"
)
def test_torch_descends_the_same_objective():
    """The objective of ten epochs on digits, at a temperature where both of its terms count."""
    data = wb.data.digits(1_280, 10)
    width, temperature = 100, 0.15
    ours = our_epochs(data, width, temperature, 10).elbo.value
    with torch_epochs(data, width, temperature) as epoch:
        theirs = [epoch()[1] for _ in range(10)]
    np.testing.assert_allclose(-ours / len(data.x_train), theirs, rtol=0.01)
