"""Metrics of predictions, of classes and of numbers.

Metrics of classes and of calibration take predictive probabilities, one row per input and one column per
class; the score of numbers takes draws. All take whatever holds real numbers, and compute on the host in
float64.
"""

from typing import Any

import numpy as np
from jaxtyping import Array, Float, Int
from scipy.special import entr

from widebnn import _arrays
from widebnn._arrays import Labels
from widebnn._check import at_least, finite

__all__ = [
    "accuracy",
    "classification_summary",
    "crps",
    "ece",
    "nll",
]

Probabilities = Float[Array | np.ndarray, "n k"]
Numbers = Float[Array | np.ndarray, "n ..."]
Predictions = Float[Array | np.ndarray, "..."]


def accuracy(probabilities: Probabilities, labels: Labels) -> float:
    """Share of inputs whose most probable class is their label."""
    p, labels = _checked(probabilities, labels)
    return float((p.argmax(axis=1) == labels).mean())


def nll(probabilities: Probabilities, labels: Labels) -> float:
    """Minus the mean log probability of the labels, in nats; infinite where a label has probability 0."""
    p, labels = _checked(probabilities, labels)
    with np.errstate(divide="ignore"):
        return float(-np.log(p[np.arange(len(p)), labels]).mean())


def ece(probabilities: Probabilities, labels: Labels, num_bins: int = 15) -> float:
    """Expected calibration error, $∑_b (|S_b|/n) |acc(S_b) − conf(S_b)|$ (Huix et al. 2022, equation 81).

    Bins are $[b/B, (b + 1)/B)$ of confidence, the last of which holds 1 too. In their Appendix C.2 $b$ runs
    from 1 to $B$ and not from 0 to $B − 1$: taken literally, confidences below $1/B$ are in no bin, and 1 is
    in a bin of its own.

    Parameters
    ----------
    probabilities
        Predictive probabilities $(n, k)$.
    labels
        Class numbers $(n,)$, 0 to $k − 1$; booleans are 0 and 1.
    num_bins
        Number of bins, $B$; their published code has 15.
    """
    at_least(1, num_bins=num_bins)
    num_inputs, conf, acc = _bins(*_checked(probabilities, labels), num_bins)
    return float(np.sum(num_inputs * np.abs(acc - conf)) / num_inputs.sum())


def _bins(
    p: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"], num_bins: int = 15
) -> tuple[Float[np.ndarray, " bin"], Float[np.ndarray, " bin"], Float[np.ndarray, " bin"]]:
    """Number of inputs, mean confidence and accuracy in bins that are not empty."""
    conf, is_right = p.max(axis=1), p.argmax(axis=1) == labels
    bins = np.searchsorted(np.arange(1, num_bins) / num_bins, conf, side="right")
    _, bins, count = np.unique(bins, return_inverse=True, return_counts=True)
    return count.astype(float), np.bincount(bins, conf) / count, np.bincount(bins, is_right) / count


def crps(draws: Predictions, y: Numbers, *, axis: int | None = None) -> float:
    """Continuous ranked probability score $E|Y − y| − ½ E|Y − Y′|$, mean over observations, in units of $y$.

    The expectations are means over draws, and over pairs of two different ones. That is the fair form: with
    independent draws it is unbiased for the score of the distribution that they come from, however few they
    are. It may be below 0 for single observations. The score of the draws' empirical distribution, whose
    pairs may be one draw twice, is larger by $½ E|Y − Y′|$ over the number of draws.

    Parameters
    ----------
    draws
        Two or more predictive draws $Y$ of each observation, noise included, (draw, *y.shape); with several
        chains, ``draws.reshape(-1, *y.shape)``.
    y
        Observations $(n, ...)$.
    axis
        The axis of `draws` that they are on: the first unless given, the last for those of
        `widebnn.estimators.BNNRegressor.sample_y`. It must be given where there are as many draws as
        observations.

    References
    ----------
    Gneiting & Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 102 (2007), §4.2;
    Ferro, "Fair scores for ensemble forecasts", Q. J. R. Meteorol. Soc. 140 (2014).

    Examples
    --------
    >>> import numpy as np
    >>> import widebnn as wb
    >>> wb.metrics.crps(np.array([[[0.0]], [[2.0]]]), np.array([[4.0]]))
    2.0
    """
    draws, y = _numbers(draws=draws), finite(y=_numbers(y=y))
    if axis is None and y.ndim > 0 and len(y) > 1 and draws.shape == (len(y), *y.shape):
        raise ValueError(
            "axis must say where the draws are, such as axis=0, since draws are as many as observations; "
            f"got shape {draws.shape}"
        )
    given = draws.shape
    draws = draws if axis is None else np.moveaxis(draws, at_least(-draws.ndim, axis=axis), 0)
    if draws.size == 0 or draws.shape[1:] != y.shape:
        raise ValueError(f"draws must have shape (draw, *y.shape) = (draw, {str(y.shape)[1:]}; got {given}")
    if (m := len(finite(draws=draws))) < 2:
        raise ValueError(f"draws must be at least 2; got {m}")
    errors = np.sort(draws - y, axis=0)
    # the sum of |Y − Y′| over pairs, in which the i-th smallest is the larger one i − 1 times
    signs = np.arange(1 - m, m, 2)
    return float((np.abs(errors).mean(axis=0) - np.tensordot(signs, errors, 1) / (m * (m - 1))).mean())


def classification_summary(
    inside: Probabilities,
    labels: Labels,
    outside: Float[Array | np.ndarray, "m _class"],
) -> dict[str, Any]:
    """Every metric of probabilities in and out of distribution, as a dict.

    Parameters
    ----------
    inside
        Probabilities of test images, one row per image.
    labels
        Their classes.
    outside
        Probabilities of images of another distribution.

    Returns
    -------
    accuracy, nll, ece; confidence, the largest probability, and entropy, in nats, inside and
    outside, means over images; auroc, the area under the ROC curve of the entropy, and fpr95, the share of
    the outside at or below the least entropy that 95 % of the inside do not exceed (Liang, Li & Srikant
    2018); `reliability`, confidence and accuracy of bins that are not empty; and `entropy_histogram`, edges
    and shares inside and outside.
    """
    from sklearn.metrics import roc_auc_score  # which is slow to import

    inside, outside = _probabilities(inside=inside), _probabilities(outside=outside)
    if inside.shape[-1] != outside.shape[-1]:
        raise ValueError(
            f"outside must have the {inside.shape[-1]} classes of inside; got {outside.shape[-1]}"
        )
    _, conf, acc = _bins(*_checked(inside, labels))
    entropies = [entr(p).sum(axis=1) for p in (inside, outside)]
    is_outside = np.repeat([False, True], [len(inside), len(outside)])
    edges = np.linspace(0, np.log(inside.shape[-1]), 26)
    shares = [np.histogram(np.clip(h, 0, edges[-1]), edges)[0] / len(h) for h in entropies]
    return {
        "accuracy": accuracy(inside, labels),
        "nll": nll(inside, labels),
        "ece": ece(inside, labels),
        "confidence": float(inside.max(axis=1).mean()),
        "confidence_outside": float(outside.max(axis=1).mean()),
        "entropy": float(entropies[0].mean()),
        "entropy_outside": float(entropies[1].mean()),
        "auroc": float(roc_auc_score(is_outside, np.concatenate(entropies))),
        "fpr95": float((entropies[1] <= np.quantile(entropies[0], 0.95, method="inverted_cdf")).mean()),
        "reliability": {
            "confidence": conf.tolist(),
            "accuracy": acc.tolist(),
        },
        "entropy_histogram": {
            "edges": edges.tolist(),
            "inside": shares[0].tolist(),
            "outside": shares[1].tolist(),
        },
    }


def _numbers(**named: Any) -> Float[np.ndarray, "..."]:
    return np.asarray(_arrays.real(**named), np.float64)


def _probabilities(**named: Probabilities) -> Float[np.ndarray, "n k"]:
    ((name, _),) = named.items()
    p = _numbers(**named)
    if p.ndim != 2 or p.size == 0:
        raise ValueError(f"{name} must have shape (n, k), n ≥ 1 and k ≥ 1; got {p.shape}")
    # float32 probabilities sum to 1 within their rounding; NaN fails both comparisons
    if not (np.all(p >= 0) and np.allclose(p.sum(axis=1), 1, atol=1e-4)):
        raise ValueError(f"{name} must be probabilities, 0 or above and sum to 1 in every row; these do not")
    return p


def _checked(
    probabilities: Probabilities, labels: Labels
) -> tuple[Float[np.ndarray, "n k"], Int[np.ndarray, " n"]]:
    p = _probabilities(probabilities=probabilities)
    return p, np.asarray(_arrays.labels(*p.shape, labels=labels))
