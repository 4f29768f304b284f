"""How good probabilities of classes are: accuracy, likelihood, calibration, and a sense of the unknown.

All take predictive probabilities (one row an input, one column a class) as NumPy or JAX arrays, and compute
on the host in float64.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int
from scipy.special import entr

from widebnn._check import at_least

__all__ = [
    "Reliability",
    "accuracy",
    "auroc",
    "confidence",
    "ece",
    "fpr95",
    "nll",
    "predictive_entropy",
    "reliability",
]

Probabilities = Float[Array | np.ndarray, "n k"]
Labels = Int[Array | np.ndarray, " n"]
Scores = Float[Array | np.ndarray, "..."]


class Reliability(NamedTuple):
    """Inputs in bins by confidence; the arrays of a reliability diagram.

    Attributes
    ----------
    edges
        Where bins begin and end, in [0, 1].
    num_inputs
        Inputs in each bin.
    confidence, accuracy
        Mean confidence, and share classified rightly, in each bin; NaN in an empty one.
    """

    edges: Float[np.ndarray, "bin+1"]
    num_inputs: Int[np.ndarray, "bin"]
    confidence: Float[np.ndarray, "bin"]
    accuracy: Float[np.ndarray, "bin"]


def accuracy(probabilities: Probabilities, labels: Labels) -> float:
    """Share of inputs whose most probable class is their label.

    Raises
    ------
    ValueError
        If `probabilities` are none, or `labels` do not fit them.
    """
    p, labels = _checked(probabilities, labels)
    return float((p.argmax(axis=1) == labels).mean())


def nll(probabilities: Probabilities, labels: Labels) -> float:
    """Minus the log probability of the label, in nats, mean over inputs; infinite where it is 0 for one.

    Raises
    ------
    ValueError
        If `probabilities` are none, or `labels` do not fit them.
    """
    p, labels = _checked(probabilities, labels)
    with np.errstate(divide="ignore"):
        return float(-np.log(p[np.arange(len(p)), labels]).mean())


def confidence(probabilities: Probabilities) -> Float[np.ndarray, " n"]:
    """conf(x), the probability of the most probable class (Huix et al. 2022, Appendix C.2).

    Raises
    ------
    ValueError
        If `probabilities` are none.
    """
    return _probabilities(probabilities).max(axis=1)


def predictive_entropy(probabilities: Probabilities) -> Float[np.ndarray, " n"]:
    """−Σ_c p_c log p_c of each input, in nats: between 0 and log k.

    Raises
    ------
    ValueError
        If `probabilities` are none.
    """
    return entr(_probabilities(probabilities)).sum(axis=1)


def reliability(
    probabilities: Probabilities, labels: Labels, num_bins: int = 15, *, adaptive: bool = False
) -> Reliability:
    """Confidence against accuracy, bin by bin.

    Parameters
    ----------
    probabilities
        One row an input.
    labels
        Classes, 0 to k − 1.
    num_bins
        B; the published code of Huix et al. has 15.
    adaptive
        False for bins [b/B, (b + 1)/B) of confidence, b = 0, …, B − 1, the last of which holds 1 as well;
        True for bins of equal counts, to one (Nguyen & O'Connor 2015).

    Raises
    ------
    ValueError
        If `probabilities` are none, `labels` do not fit them or `num_bins` is below 1; with adaptive bins,
        above the number of inputs.

    Notes
    -----
    In Huix et al. (2022), Appendix C.2, b runs from 1 to B: taken to the letter, confidences below 1/B are in
    no bin, and 1 is in one of its own.
    """
    p, labels = _checked(probabilities, labels)
    at_least(1, num_bins=num_bins)
    conf, is_right = p.max(axis=1), p.argmax(axis=1) == labels
    if adaptive:
        if num_bins > len(p):
            raise ValueError(f"num_bins must be at most {len(p)}, the number of inputs; got {num_bins}")
        order = np.argsort(conf, kind="stable")
        bins = np.empty(len(p), int)
        starts = [part[0] for part in np.array_split(np.arange(len(p)), num_bins)]
        bins[order] = np.searchsorted(starts, np.arange(len(p)), side="right") - 1
        edges = np.append(conf[order][starts], conf.max())
    else:
        edges = np.arange(num_bins + 1) / num_bins
        bins = np.minimum(np.searchsorted(edges, conf, side="right") - 1, num_bins - 1)
    count, sum_of_confidence, num_right = (
        np.bincount(bins, weights, minlength=num_bins) for weights in (None, conf, is_right)
    )
    with np.errstate(invalid="ignore"):
        return Reliability(edges, count, sum_of_confidence / count, num_right / count)


def ece(probabilities: Probabilities, labels: Labels, num_bins: int = 15, *, adaptive: bool = False) -> float:
    """Expected calibration error, Σ_b |S_b|/n |acc(S_b) − conf(S_b)| (Huix et al. 2022, eq. 81).

    Parameters and errors are those of `reliability`.
    """
    bins = reliability(probabilities, labels, num_bins, adaptive=adaptive)
    return float(np.nansum(bins.num_inputs * np.abs(bins.accuracy - bins.confidence)) / bins.num_inputs.sum())


def auroc(inside: Scores, outside: Scores) -> float:
    """Area under the ROC curve: the chance that an input from outside has the larger score, a tie counting ½.

    Parameters
    ----------
    inside, outside
        Scores in and out of distribution, such as `predictive_entropy`: larger means stranger.

    Raises
    ------
    ValueError
        If there are none, or they are not finite.
    """
    from scipy.stats import rankdata  # which is slow to import

    x, y = _scores(inside=inside), _scores(outside=outside)
    ranks = rankdata(np.concatenate([x, y]))[len(x) :]
    return float((ranks.sum() - len(y) * (len(y) + 1) / 2) / (len(x) * len(y)))  # Mann & Whitney's U


def fpr95(inside: Scores, outside: Scores) -> float:
    """Share of inputs from outside that pass a threshold which lets at least 95 % from inside pass.

    The threshold is the smallest score that does, and a score equal to it passes (Liang, Li & Srikant 2018,
    where inputs in distribution are the positives). Parameters and errors are those of `auroc`.
    """
    x, y = _scores(inside=inside), _scores(outside=outside)
    threshold = np.sort(x)[-(-95 * len(x) // 100) - 1]
    return float((y <= threshold).mean())


def _probabilities(probabilities: Probabilities) -> Float[np.ndarray, "n k"]:
    p = np.asarray(probabilities, np.float64)
    if p.ndim != 2 or p.size == 0:
        raise ValueError(f"probabilities must have shape (n, k), n ≥ 1 and k ≥ 1; got {p.shape}")
    # float32 probabilities sum to 1 within their rounding; NaN fails both comparisons
    if not (np.all(p >= 0) and np.allclose(p.sum(axis=1), 1, atol=1e-4)):
        raise ValueError("probabilities must be 0 or above and sum to 1 in every row; these do not")
    return p


def _checked(
    probabilities: Probabilities, labels: Labels
) -> tuple[Float[np.ndarray, "n k"], Int[np.ndarray, " n"]]:
    p, labels = _probabilities(probabilities), np.asarray(labels)
    if labels.shape != p.shape[:1]:
        raise ValueError(f"labels must have shape ({len(p)},), one for each row; got {labels.shape}")
    if labels.min() < 0 or labels.max() >= p.shape[1]:
        raise ValueError(
            f"labels must be 0 to {p.shape[1] - 1}, a column of probabilities each; "
            f"got {labels.min()} to {labels.max()}"
        )
    return p, labels


def _scores(**named: Scores) -> Float[np.ndarray, " n"]:
    ((name, scores),) = named.items()
    scores = np.asarray(scores, np.float64).ravel()
    if scores.size == 0 or not np.isfinite(scores).all():
        raise ValueError(f"{name} must be finite scores, at least one; got {scores}")
    return scores
