"""Exact statements: they hold, and what is wrong is seen."""

import jax
import jax.numpy as jnp
import pytest

from widebnn import targets, vi
from widebnn.experiments import CLAIMS, IDENTITIES, Results, identities
from widebnn.experiments.theory.identities import IDENTITY
from widebnn.study.experiment import verdict

SERVED = {claim.id: claim for claim in CLAIMS if claim.experiment == "identities"}


def judged(rows):
    results = Results(rows, {}, {})
    return {name: verdict(claim, claim.summarise(results)) for name, claim in SERVED.items()}


@pytest.mark.slow
def test_all_hold_in_float64():
    seen = []
    rows = identities(IDENTITIES["smoke"], on_row=seen.append)
    assert rows == seen and not jax.config.jax_enable_x64
    assert set(judged(rows).values()) == {"reproduced"} and len(SERVED) == 5


@pytest.mark.slow
def test_slips_are_seen(monkeypatch):
    model = type(targets.linear(jnp.ones((1, 1)), jnp.ones((1, 1)), 1.0))
    exact = model.repriorised  # the map of another noise level takes its place
    monkeypatch.setattr(model, "repriorised", lambda self: exact(self, reg=2 * self.noise_std**2))
    monkeypatch.setattr(vi, "kl_weights", lambda num_batches, kind: jnp.ones(num_batches))
    with jax.enable_x64(True):
        for name in ("prior", "stable step", "minibatches"):
            assert IDENTITY[name](jax.random.key(0), 8, 3, 1, 0.3) > 1e-3


@pytest.mark.parametrize("name", SERVED)
def test_one_bad_problem_is_enough(name):
    kinds = ("prior", "spaces", "outputs", "stable step", "minibatches")
    rows = [{"identity": kind, "error": error} for kind in kinds for error in (1e-15, 1e-6)]
    assert judged(rows)[name] == "not reproduced"
