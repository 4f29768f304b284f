"""Exact statements: they hold, and what is wrong is seen."""

import jax
import jax.numpy as jnp
import pytest

from book.experiments import identities as module
from book.experiments.identities import IDENTITY, identities
from widebnn import targets, vi

from .judging import judged


@pytest.mark.slow
def test_slips_are_seen(monkeypatch):
    model = type(targets.linear(jnp.ones((1, 1)), jnp.ones((1, 1)), 1.0))
    exact = model.repriorised  # the map of another noise level takes its place
    monkeypatch.setattr(model, "repriorised", lambda self: exact(self, reg=2 * self.noise_std**2))
    monkeypatch.setattr(vi, "kl_weights", lambda num_batches, kind: jnp.ones(num_batches))
    with jax.enable_x64(True):
        for name in ("prior", "stable step", "minibatches"):
            assert IDENTITY[name](jax.random.key(0), 8, 3, 1, 0.3) > 1e-3


@pytest.mark.slow
def test_a_map_of_another_noise_level_is_seen(monkeypatch):
    exact = targets.repriorised
    with jax.enable_x64(True):
        assert IDENTITY["readout"](jax.random.key(0), 8, 3, 2, 0.3) < 1e-9
        assert IDENTITY["Jacobian"](jax.random.key(0), 8, 3, 2, 0.3)[0] < 1e-9
        monkeypatch.setattr(targets, "repriorised", lambda bnn, x, y: exact(bnn, x, y, reg=0.18))
        assert IDENTITY["readout"](jax.random.key(0), 8, 3, 2, 0.3) > 1e-3
        assert IDENTITY["Jacobian"](jax.random.key(0), 8, 3, 2, 0.3)[0] > 1e-3


@pytest.mark.slow
def test_a_sampled_gradient_that_slips_is_seen(monkeypatch):
    step = module._step

    def slipped(q, z, g):
        """1 + exp ρ in the place of 1 + exp(−ρ)."""
        found = step(q, z, g)
        return found._replace(rho=jax.tree.map(lambda d, rho: d * jnp.exp(-rho), found.rho, q.rho))

    with jax.enable_x64(True):
        assert IDENTITY["minibatches"](jax.random.key(0), 8, 3, 1, 0.3) < 1e-9
        monkeypatch.setattr(module, "_step", slipped)
        assert IDENTITY["minibatches"](jax.random.key(0), 8, 3, 1, 0.3) > 1e-3


@pytest.mark.parametrize("claim", identities.findings)
def test_one_bad_problem_is_enough(claim):
    rows = [
        {"identity": kind, "error": error, "printed": 0.001} for kind in IDENTITY for error in (1e-15, 1e-6)
    ]
    assert judged(identities, claim, rows) == "fails"


@pytest.mark.parametrize("claim", [row for row in identities.findings if row[2] == "E"])
def test_what_is_as_printed_corrects_nothing(claim):
    rows = [{"identity": kind, "error": 1e-15, "printed": 0.0} for kind in IDENTITY]
    assert judged(identities, claim, rows) == "holds in part"
