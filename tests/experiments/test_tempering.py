"""The experiment on temperatures: what its rows hold, and that the prior is where large ones lead."""

import dataclasses
import json
import math

import numpy as np
import pytest

from widebnn.experiments import classification_summary, ood_split, tempering

TINY = dataclasses.replace(
    tempering.config("smoke"),
    num_train=60,
    num_test=40,
    taus=(1e-3, 10.0),
    num_repeats=1,
    num_epochs=60,
    batch_size=20,
    learning_rate=0.05,
    width=16,
    num_draws=10,
)


@pytest.fixture(scope="module")
def rows():
    return list(tempering(TINY))


@pytest.mark.slow
def test_rows_cover_the_grid_and_can_be_saved(rows):
    assert [(row["tau"], row["repeat"]) for row in rows] == [(1e-3, 0), (10.0, 0)]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    for row in rows:
        assert row["eta"] == pytest.approx(row["tau"] * 60 / 16)
        for name in ("mean", "std"):
            assert sum(row["weights"][name]) == pytest.approx(1, abs=1e-4)
        for name in ("inside", "outside"):
            assert sum(row["entropy_histogram"][name]) == pytest.approx(1, abs=1e-4)
        assert len(row["weights"]["unit_norm"]) == len(row["weights"]["unit_std"]) == 16


@pytest.mark.slow
def test_large_temperature_leads_to_the_prior_and_small_to_the_data(rows):
    cold, warm = rows
    assert warm["std"] == pytest.approx(math.sqrt(0.2), rel=0.01)
    assert warm["mean_norm"] < 0.01 < 0.1 < cold["mean_norm"]
    assert warm["kl"] < 1e-3 * cold["kl"]
    assert warm["nll"] == pytest.approx(math.log(5), abs=0.1)
    assert cold["nll"] < 1 and cold["accuracy"] > 0.75
    assert warm["entropy"] > 0.97 * math.log(5)
    assert cold["entropy"] < cold["entropy_outside"]


def test_digits_outside_are_classes_that_were_held_out():
    images = ood_split("digits", "digits", 100, 50)
    assert images.num_classes == 5 == images.labels_train.max() + 1 == images.labels_test.max() + 1
    assert images.x_train.shape == (100, 64) and images.x_test.shape == images.x_outside.shape == (50, 64)
    assert images.black == pytest.approx(images.x_train.min())


def test_grey_images_are_enlarged_to_colour():
    flat, colour = (ood_split("digits", "digits", 10, 10, colour=c) for c in (False, True))
    assert colour.x_outside.shape == (10, 32, 32, 3)
    np.testing.assert_allclose(colour.x_outside[:, 2::4, 1::4, 2].reshape(10, 64), flat.x_outside, atol=1e-5)


def test_quality_of_a_forecaster_that_knows_when_it_does_not_know():
    sure, unsure = np.tile([1.0, 0.0], (20, 1)), np.full((20, 2), 0.5)
    row = classification_summary(sure, np.zeros(20, int), unsure)
    assert (row["accuracy"], row["nll"], row["ece"], row["auroc"], row["fpr95"]) == (1, 0, 0, 1, 0)
    assert row["entropy_histogram"]["inside"][0] == row["entropy_histogram"]["outside"][-1] == 1
    assert row["reliability"] == {"confidence": [1.0], "accuracy": [1.0]}
    with pytest.raises(ValueError, match="outside must have the 2 classes of inside; got 3"):
        classification_summary(sure, np.zeros(20, int), np.full((2, 3), 1 / 3))


def test_paper_scale_has_what_the_paper_states():
    paper = tempering.config("paper")
    assert (paper.num_train, paper.num_repeats, paper.num_draws) == (60_000, 5, 50)
    assert (paper.prior_variance, paper.initial_std) == (0.2, 1e-3)
    assert min(paper.taus) < paper.width / paper.num_train < max(paper.taus)
