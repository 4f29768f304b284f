"""Metrics against scikit-learn and SciPy, or against their definitions written as loops."""

import numpy as np
import pytest
import scipy.stats
from scipy import integrate
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score, roc_curve

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


@pytest.mark.parametrize("labels", [[True, True], [True, False], [False] * 3, [True, False, True]])
def test_boolean_labels_are_zero_and_one(labels):
    p = P[: len(labels), :2] / P[: len(labels), :2].sum(axis=1, keepdims=True)
    for metric in (metrics.accuracy, metrics.nll, metrics.ece):
        found = [metric(p, np.asarray(y)) for y in (labels, np.array(labels, int))]
        assert found[0] == found[1]


def test_a_label_of_probability_zero_costs_infinitely_much():
    assert metrics.nll(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1, 0])) == np.inf


def test_entropy_agrees_with_scipy_and_has_its_bounds():
    np.testing.assert_allclose(metrics.predictive_entropy(P), scipy.stats.entropy(P, axis=1), rtol=1e-5)
    extremes = np.array([[1.0, 0, 0, 0], [0.25, 0.25, 0.25, 0.25]])
    np.testing.assert_allclose(metrics.predictive_entropy(extremes), [0, np.log(4)])


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


@pytest.mark.parametrize("num_bins", [1, 4, 15, 100])
def test_ece_is_its_definition(num_bins):
    p = P.astype(float)
    np.testing.assert_allclose(
        metrics.ece(P, LABELS, num_bins), ece_by_loop(p.tolist(), LABELS, num_bins), rtol=1e-6
    )


def test_edges_of_bins_belong_to_the_upper_one_and_one_to_the_last():
    p = np.array([[0.5, 0.5], [0.75, 0.25], [1.0, 0.0]])
    bins = metrics.reliability(p, np.array([0, 0, 0]), num_bins=4)
    np.testing.assert_array_equal(bins.num_inputs, [0, 0, 1, 2])
    np.testing.assert_allclose(bins.confidence, [np.nan, np.nan, 0.5, 0.875])


def test_adaptive_bins_have_equal_counts_though_confidences_tie():
    p = np.repeat([[0.9, 0.1], [0.6, 0.4]], [7, 4], axis=0)
    bins = metrics.reliability(p, np.zeros(11, int), num_bins=3, adaptive=True)
    np.testing.assert_array_equal(bins.num_inputs, [4, 4, 3])
    np.testing.assert_allclose(metrics.ece(p, np.zeros(11, int), 3, adaptive=True), 1 - p.max(1).mean())


def scores(ties):
    inside, outside = RNG.normal(size=400), RNG.normal(0.7, size=300)
    return (inside.round(1), outside.round(1)) if ties else (inside, outside)


@pytest.mark.parametrize("ties", [False, True])
def test_detection_agrees_with_scikit_learn(ties):
    inside, outside = scores(ties)
    is_outside = np.repeat([0, 1], [len(inside), len(outside)])
    both = np.concatenate([inside, outside])
    np.testing.assert_allclose(metrics.auroc(inside, outside), roc_auc_score(is_outside, both))
    fpr, tpr, _ = roc_curve(1 - is_outside, -both, drop_intermediate=False)
    np.testing.assert_allclose(metrics.fpr95(inside, outside), fpr[tpr >= 0.95][0])


def test_crps_is_over_pairs_of_different_draws():
    """A loop over all pairs; ties, and observations of several outputs."""
    draws, y = RNG.normal(size=(7, 3, 2)).round(1), RNG.normal(size=(3, 2))
    pairs = [abs(a - b) for i, a in enumerate(draws) for j, b in enumerate(draws) if i != j]
    wanted = np.mean(np.abs(draws - y)) - np.mean(pairs) / 2
    np.testing.assert_allclose(metrics.crps(draws, y), wanted, rtol=1e-12)
    np.testing.assert_allclose(metrics.crps(draws + 1e6, y + 1e6), wanted, rtol=1e-8)


def test_draws_may_be_on_any_axis():
    draws, y = RNG.normal(size=(4, 3, 2)), RNG.normal(size=(3, 2))
    last, stds = np.moveaxis(draws, 0, -1), np.exp(draws)
    assert metrics.crps(last, y, axis=-1) == pytest.approx(metrics.crps(draws, y))
    assert metrics.gaussian_mixture_nll(last, np.moveaxis(stds, 0, -1), y, axis=2) == pytest.approx(
        metrics.gaussian_mixture_nll(draws, stds, y)
    )


def test_axis_of_as_many_draws_as_observations_is_told():
    draws, y = np.array([[0.0, 5.0], [2.0, 5.0]]), np.array([4.0, 5.0])
    assert metrics.crps(draws, y, axis=0) == 1.0
    assert metrics.crps(draws.T, y, axis=1) == 1.0
    assert metrics.gaussian_mixture_nll(np.zeros((1, 1)), 1.0, np.zeros(1)) == pytest.approx(
        np.log(2 * np.pi) / 2
    )


def test_coverage_counts_the_ends_in():
    y = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
    assert metrics.coverage(np.zeros(5), np.ones(5), y) == 0.6
    assert metrics.coverage(np.full(5, -np.inf), np.full(5, np.inf), y) == 1.0


def mixture(num_components, num_inputs=3):
    shape = (num_components, num_inputs)
    return RNG.normal(2, 3, size=shape), RNG.uniform(0.3, 2, size=shape)


def test_likelihood_of_a_mixture_is_that_of_its_density():
    (means, stds), y = mixture(4), np.array([0.0, 1.0, 3.0])
    density = scipy.stats.norm.pdf(y, means, stds).mean(axis=0)
    np.testing.assert_allclose(
        metrics.gaussian_mixture_nll(means, stds, y), -np.log(density).mean(), rtol=1e-12
    )
    assert metrics.gaussian_mixture_nll(means, 0.5, y) == pytest.approx(
        -np.log(scipy.stats.norm.pdf(y, means, 0.5).mean(axis=0)).mean()
    )
    assert 500 < metrics.gaussian_mixture_nll(means, stds, y + 200.0) < np.inf  # where it underflows
    one = means[:, :1], stds[:, :1]
    whole = integrate.quad(
        lambda z: np.exp(-metrics.gaussian_mixture_nll(*one, np.array([z]))), -40, 40, limit=200
    )[0]
    assert whole == pytest.approx(1, rel=1e-6)
