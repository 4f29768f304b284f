"""The experiment on ResNet-20: its grid and its rows, on a network that compiles in seconds."""

import dataclasses
import json
import math

import pytest
from flax import nnx

from widebnn import vi
from widebnn.experiments import resnet
from widebnn.models import Conv, Dense

from .judging import claim_of, judged

TINY = dataclasses.replace(
    resnet.config("smoke"),
    num_train=40,
    num_test=20,
    taus=(1e-3, 100.0),
    norms=("batch", "none"),
    num_epochs=40,
    batch_size=20,
    learning_rate=0.1,
    initial_std=0.2,
    num_draws=5,
    augment=True,
)


class OneLayer(nnx.Module):
    """Takes what ResNet-20 takes."""

    def __init__(self, in_channels, out_features, *, norm, rngs):
        options = {"scale": 1, "bias_std": 0, "initial_std": 0.01, "rngs": rngs}
        self.conv = Conv(in_channels, 2, stride=8, padding="centred", **options)
        self.norm = nnx.BatchNorm(2, rngs=rngs) if norm == "batch" else None
        self.readout = Dense(32, out_features, **options)

    def __call__(self, x):
        h = self.conv(x)
        h = h if self.norm is None else self.norm(h)
        return self.readout(nnx.relu(h).reshape(len(x), -1)) / 64


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(vi, "ResNet20", OneLayer)
    return list(resnet(TINY))


@pytest.mark.slow
def test_rows_cover_the_grid_and_a_large_temperature_leads_to_the_prior(rows):
    assert [(row["norm"], row["tau"]) for row in rows] == [(n, t) for n in TINY.norms for t in TINY.taus]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    for norm, cold, warm in (("batch", *rows[:2]), ("none", *rows[2:])):
        assert warm["eta"] == pytest.approx(100 * 40 / 64)
        prior_std = math.sqrt({"batch": 0.2, "none": 1.0}[norm])
        assert warm["std"] == pytest.approx(prior_std, rel=0.03)
        assert warm["kl"] < 0.01 * cold["kl"]
        assert warm["mean_norm"] < cold["mean_norm"]


def test_paper_scale_has_what_the_paper_states():
    paper = resnet.config("paper")
    assert (paper.dataset, paper.outside, paper.num_train) == ("cifar10", "svhn", 50_000)
    assert (paper.num_repeats, paper.num_draws, paper.num_test) == (5, 50, 5_000)
    assert paper.augment and "batch" in paper.norms


@pytest.mark.parametrize(
    ("num_repeats", "num_epochs", "said"),
    [
        (3, 40, "reproduced"),
        (2, 40, "not testable at this scale"),
        (3, 39, "not testable at this scale"),
        (1, 10, "not testable at this scale"),
    ],
)
def test_few_repeats_or_short_fits_decide_nothing(num_repeats, num_epochs, said):
    numbers = {  # by τ: accuracy, confidence, NLL, ECE
        1e-5: (0.8, 0.85, 0.5, 0.05),
        1e-3: (0.75, 0.45, 1.0, 0.3),
        0.1: (0.1, 0.11, 2.3, 0.01),
    }
    names = "accuracy", "confidence", "nll", "ece"
    rows = [
        {"norm": "batch", "tau": tau, "repeat": repeat}
        | {name: number + 1e-4 * repeat for name, number in zip(names, of_tau, strict=True)}
        for tau, of_tau in numbers.items()
        for repeat in range(num_repeats)
    ]
    claim = claim_of(resnet, "V-F2")
    config = {"norms": ["batch"], "num_repeats": num_repeats, "num_epochs": num_epochs}
    assert judged(claim, rows, **config) == said
