"""The experiment beyond one hidden layer: what it says of chains."""

import importlib
import json

import numpy as np

import widebnn as wb

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
