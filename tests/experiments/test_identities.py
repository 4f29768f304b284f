"""Exact statements: they hold, and what is wrong is seen."""

import jax
import jax.numpy as jnp
import pytest

from widebnn import targets, vi
from widebnn.experiments import CLAIMS, IDENTITIES, Results, identities
from widebnn.experiments.experiment import verdict

SERVED = {claim.id: claim for claim in CLAIMS if claim.experiment == "identities"}


def judged(rows):
    results = Results(rows, {}, {})
    return {name: verdict(claim, claim.summarise(results)) for name, claim in SERVED.items()}


def test_all_hold_in_float64():
    seen = []
    rows = identities(IDENTITIES["smoke"], on_row=seen.append)
    assert rows == seen and not jax.config.jax_enable_x64
    assert set(judged(rows).values()) == {"reproduced"} and len(SERVED) == 5


def test_slips_are_seen(monkeypatch):
    whole = targets.linear

    class Narrower:
        """A linear model whose map is that of another noise level."""

        def __init__(self, x, y, noise_std):
            self.given, self.x, self.noise_std = whole(x, y, noise_std), x, noise_std
            self.potential, self.draw_prior = self.given.potential, self.given.draw_prior
            self.template = self.given.template

        def repriorised(self):
            return self.given.repriorised(reg=2 * self.noise_std**2)

    monkeypatch.setattr(targets, "linear", Narrower)
    monkeypatch.setattr(vi, "kl_weights", lambda num_batches, kind: jnp.ones(num_batches))
    found = judged(identities(IDENTITIES["smoke"]))
    assert found == {
        "H-F2": "not reproduced",
        "H-AB": "reproduced",
        "H-AC": "reproduced",
        "H-AD": "not reproduced",
        "V-A1": "not reproduced",
    }


@pytest.mark.parametrize("name", SERVED)
def test_one_bad_problem_is_enough(name):
    kinds = ("prior", "spaces", "outputs", "stable step", "minibatches")
    rows = [{"identity": kind, "error": error} for kind in kinds for error in (1e-15, 1e-6)]
    assert judged(rows)[name] == "not reproduced"
