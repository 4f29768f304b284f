"""Metrics against scikit-learn and SciPy, or against their definitions written as loops."""

import numpy as np
import pytest
import scipy.stats
from sklearn.metrics import accuracy_score, log_loss, roc_curve

from widebnn import metrics

RNG = np.random.default_rng(0)


def predictions(num_inputs=500, num_classes=10, sharpness=2.0):
    """Probabilities that have something to do with the labels, in float32 as a network gives them."""
    labels = RNG.integers(num_classes, size=num_inputs)
    logits = RNG.normal(size=(num_inputs, num_classes)) + sharpness * np.eye(num_classes)[labels]
    p = np.exp(1.5 * logits)
    return (p / p.sum(axis=1, keepdims=True)).astype(np.float32), labels


P, LABELS = predictions()


def test_accuracy_and_likelihood_agree_with_scikit_learn():
    assert metrics.accuracy(P, LABELS) == accuracy_score(LABELS, P.argmax(axis=1))
    p = P.astype(float)
    wanted = log_loss(LABELS, p / p.sum(axis=1, keepdims=True), labels=np.arange(10))
    np.testing.assert_allclose(metrics.nll(P, LABELS), wanted, rtol=1e-5)


@pytest.mark.parametrize("labels", [[True, True], [True, False, True]])
def test_boolean_labels_are_zero_and_one(labels):
    p = P[: len(labels), :2] / P[: len(labels), :2].sum(axis=1, keepdims=True)
    for metric in (metrics.accuracy, metrics.nll, metrics.ece):
        found = [metric(p, np.asarray(y)) for y in (labels, np.array(labels, int))]
        assert found[0] == found[1]


def test_a_label_of_probability_zero_costs_infinitely_much():
    assert metrics.nll(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1, 0])) == np.inf


def ece_by_loop(p, labels, num_bins):
    """Their equation (81), bins from 0 to B − 1."""
    total = 0.0
    for b in range(num_bins):
        members = [
            i
            for i, row in enumerate(p)
            if b / num_bins <= max(row) < (b + 1) / num_bins or (b == num_bins - 1 and max(row) == 1)
        ]
        if members:
            right = sum(list(p[i]).index(max(p[i])) == labels[i] for i in members) / len(members)
            mean = sum(max(p[i]) for i in members) / len(members)
            total += len(members) / len(p) * abs(right - mean)
    return total


@pytest.mark.parametrize("num_bins", [1, 15])
def test_ece_is_its_definition(num_bins):
    p = P.astype(float)
    np.testing.assert_allclose(
        metrics.ece(P, LABELS, num_bins), ece_by_loop(p.tolist(), LABELS, num_bins), rtol=1e-6
    )
    edges = np.array([[0.5, 0.5], [0.75, 0.25], [1.0, 0.0]])  # belong to the upper bin, and 1 to the last
    labels = np.array([1, 0, 0])
    assert metrics.ece(edges, labels, 4) == pytest.approx(ece_by_loop(edges.tolist(), labels, 4))


def test_crps_is_over_pairs_of_different_draws():
    """A loop over all pairs; ties, and observations of several outputs."""
    draws, y = RNG.normal(size=(7, 3, 2)).round(1), RNG.normal(size=(3, 2))
    pairs = [abs(a - b) for i, a in enumerate(draws) for j, b in enumerate(draws) if i != j]
    wanted = np.mean(np.abs(draws - y)) - np.mean(pairs) / 2
    np.testing.assert_allclose(metrics.crps(draws, y), wanted, rtol=1e-12)
    np.testing.assert_allclose(metrics.crps(draws + 1e6, y + 1e6), wanted, rtol=1e-8)


def test_draws_may_be_on_any_axis_and_it_is_told_where_there_are_as_many_as_observations():
    draws, y = RNG.normal(size=(4, 3, 2)), RNG.normal(size=(3, 2))
    assert metrics.crps(np.moveaxis(draws, 0, -1), y, axis=-1) == pytest.approx(metrics.crps(draws, y))
    draws, y = np.array([[0.0, 5.0], [2.0, 5.0]]), np.array([4.0, 5.0])
    assert metrics.crps(draws, y, axis=0) == 1.0 == metrics.crps(draws.T, y, axis=1)


def test_quality_of_a_forecaster_that_knows_when_it_does_not_know():
    sure, unsure = np.tile([1.0, 0.0], (20, 1)), np.full((20, 2), 0.5)
    row = metrics.classification_summary(sure, np.zeros(20, int), unsure)
    assert (row["accuracy"], row["nll"], row["ece"], row["auroc"], row["fpr95"]) == (1, 0, 0, 1, 0)
    assert row["entropy_histogram"]["inside"][0] == row["entropy_histogram"]["outside"][-1] == 1
    assert row["reliability"] == {"confidence": [1.0], "accuracy": [1.0]}
    row = metrics.classification_summary(P[:400], LABELS[:400], P[400:])
    np.testing.assert_allclose(row["entropy"], scipy.stats.entropy(P[:400], axis=1).mean(), rtol=1e-6)
    inside, outside = (scipy.stats.entropy(p.astype(float), axis=1) for p in (P[:400], P[400:]))
    is_inside = np.repeat([1, 0], [400, 100])
    fpr, tpr, _ = roc_curve(is_inside, -np.append(inside, outside), drop_intermediate=False)
    assert row["fpr95"] == fpr[tpr >= 0.95][0]
