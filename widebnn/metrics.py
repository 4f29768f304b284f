"""Metrics of predictions, of classes and of numbers.

Metrics of classes and of calibration take predictive probabilities, one row per input and one column per
class. Those of out-of-distribution detection take scores, and metrics of numbers take draws, intervals or
Gaussians. All take whatever holds real numbers, and compute on the host in float64.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int
from scipy.special import entr, logsumexp

from widebnn import _arrays
from widebnn._arrays import Labels
from widebnn._check import Number, at_least, finite

__all__ = [
    "Reliability",
    "accuracy",
    "auroc",
    "classification_summary",
    "confidence",
    "coverage",
    "crps",
    "ece",
    "fpr95",
    "gaussian_mixture_nll",
    "nll",
    "predictive_entropy",
    "reliability",
]

NUM_BINS = 15
"""Of calibration errors, as in most papers; adaptive bins need as many inputs."""

Probabilities = Float[Array | np.ndarray, "n k"]
Scores = Float[Array | np.ndarray, "..."]
Numbers = Float[Array | np.ndarray, "n ..."]
Predictions = Float[Array | np.ndarray, "..."]


class Reliability(NamedTuple):
    """Inputs in bins by confidence; the arrays of a reliability diagram.

    Attributes
    ----------
    edges
        Edges of the bins, in [0, 1].
    num_inputs
        Number of inputs in each bin.
    confidence
        Mean confidence in each bin; NaN in an empty one.
    accuracy
        Share classified correctly in each bin; NaN in an empty one.
    """

    edges: Float[np.ndarray, "bin+1"]
    num_inputs: Int[np.ndarray, "bin"]
    confidence: Float[np.ndarray, "bin"]
    accuracy: Float[np.ndarray, "bin"]


def accuracy(probabilities: Probabilities, labels: Labels) -> float:
    """Share of inputs whose most probable class is their label."""
    p, labels = _checked(probabilities, labels)
    return float((p.argmax(axis=1) == labels).mean())


def nll(probabilities: Probabilities, labels: Labels) -> float:
    """Minus the mean log probability of the labels, in nats; infinite where a label has probability 0."""
    p, labels = _checked(probabilities, labels)
    with np.errstate(divide="ignore"):
        return float(-np.log(p[np.arange(len(p)), labels]).mean())


def confidence(probabilities: Probabilities) -> Float[np.ndarray, " n"]:
    """$conf(x)$, the probability of the most probable class (Huix et al. 2022, Appendix C.2)."""
    return _probabilities(probabilities=probabilities).max(axis=1)


def predictive_entropy(probabilities: Probabilities) -> Float[np.ndarray, " n"]:
    """$−∑_c p_c log p_c$ of each input, in nats: between 0 and $log k$."""
    return entr(_probabilities(probabilities=probabilities)).sum(axis=1)


def reliability(
    probabilities: Probabilities, labels: Labels, num_bins: int = 15, *, adaptive: bool = False
) -> Reliability:
    """Confidence against accuracy, bin by bin.

    Parameters
    ----------
    probabilities
        Predictive probabilities $(n, k)$.
    labels
        Class numbers $(n,)$, 0 to $k − 1$; booleans are 0 and 1.
    num_bins
        Number of bins, $B$; the published code of Huix et al. has 15.
    adaptive
        False for bins $[b/B, (b + 1)/B)$ of confidence, $b = 0, …, B − 1$, the last of which holds 1 as
        well; True for bins whose counts differ by at most one (Nguyen & O'Connor 2015).

    Notes
    -----
    In Huix et al. (2022), Appendix C.2, $b$ runs from 1 to $B$: taken literally, confidences below $1/B$ are
    in no bin, and 1 is in a bin of its own.

    Examples
    --------
    >>> import numpy as np
    >>> import widebnn as wb
    >>> p = np.array([[0.9, 0.1], [0.7, 0.3], [0.6, 0.4]])
    >>> found = wb.metrics.reliability(p, np.array([0, 0, 1]), num_bins=2)
    >>> found.num_inputs.tolist(), found.accuracy.round(3).tolist()
    ([0, 3], [nan, 0.667])
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
    """Expected calibration error, $∑_b (|S_b|/n) |acc(S_b) − conf(S_b)|$ (Huix et al. 2022, equation 81).

    Parameters and errors are those of `reliability`.
    """
    bins = reliability(probabilities, labels, num_bins, adaptive=adaptive)
    return float(np.nansum(bins.num_inputs * np.abs(bins.accuracy - bins.confidence)) / bins.num_inputs.sum())


def auroc(inside: Scores, outside: Scores) -> float:
    """Area under the ROC curve: the chance that an input from outside has the larger score; a tie counts $½$.

    Parameters
    ----------
    inside, outside
        Scores of inputs in and out of distribution, such as `predictive_entropy`: larger means further
        outside.
    """
    from scipy.stats import rankdata  # which is slow to import

    x, y = _scores(inside=inside), _scores(outside=outside)
    ranks = rankdata(np.concatenate([x, y]))[len(x) :]
    return float((ranks.sum() - len(y) * (len(y) + 1) / 2) / (len(x) * len(y)))  # Mann & Whitney's U


def fpr95(inside: Scores, outside: Scores) -> float:
    """Share of inputs from outside that pass the threshold that at least 95 % of those from inside pass.

    The threshold is the smallest such score of the inside, and a score equal to it passes (Liang, Li &
    Srikant 2018, where inputs in distribution are the positives). Parameters and errors are those of `auroc`.

    Examples
    --------
    >>> import numpy as np
    >>> import widebnn as wb
    >>> wb.metrics.fpr95(np.array([0.1, 0.2, 0.3]), np.array([0.25, 0.8]))
    0.5
    """
    x, y = _scores(inside=inside), _scores(outside=outside)
    threshold = np.sort(x)[-(-95 * len(x) // 100) - 1]
    return float((y <= threshold).mean())


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
    draws, y = _of_observations(axis, y, draws=draws)
    if (m := len(draws)) < 2:
        raise ValueError(f"draws must be at least 2; got {m}")
    errors = np.sort(draws - y, axis=0)
    # the sum of |Y − Y′| over pairs, in which the i-th smallest is the larger one i − 1 times
    signs = np.arange(1 - m, m, 2)
    return float((np.abs(errors).mean(axis=0) - np.tensordot(signs, errors, 1) / (m * (m - 1))).mean())


def coverage(lower: Numbers, upper: Numbers, y: Numbers) -> float:
    """Share of observations within their intervals, ends included.

    For calibrated central 90 % intervals it is 0.9, up to chance.

    Parameters
    ----------
    lower, upper
        Ends of the interval of each observation, shaped like `y`, such as
        ``np.quantile(draws, [0.05, 0.95], axis=0)``.
    y
        Observations $(n, ...)$.

    References
    ----------
    Gneiting, Balabdaoui & Raftery, "Probabilistic forecasts, calibration and sharpness", JRSS B 69 (2007).

    Examples
    --------
    >>> import numpy as np
    >>> import widebnn as wb
    >>> y = np.array([[0.5], [1.0], [2.0]])
    >>> wb.metrics.coverage(np.zeros((3, 1)), np.ones((3, 1)), y)
    0.6666666666666666
    """
    lower, upper, y = _numbers(lower=lower), _numbers(upper=upper), _numbers(y=y)
    if y.size == 0 or not lower.shape == upper.shape == y.shape:
        raise ValueError(
            "lower, upper and y must have one shape, not empty; "
            f"got {lower.shape}, {upper.shape} and {y.shape}"
        )
    finite(y=y)
    if not (lower <= upper).all():  # NaN fails too
        raise ValueError("lower must be at most upper, for every observation; it is not")
    return float(((lower <= y) & (y <= upper)).mean())


def gaussian_mixture_nll(
    means: Predictions, stds: Predictions | Number, y: Numbers, *, axis: int | None = None
) -> float:
    """Minus the log predictive density of equally weighted Gaussians, in nats, mean over observations.

    The predictive density of a regression is such a mixture, of $N(f(x), σ²)$ for every draw.

    Parameters
    ----------
    means, stds
        Means and standard deviations of the Gaussians at each observation, (draw, *y.shape); `stds` may be
        one number.
    y
        Observations $(n, ...)$.
    axis
        The axis of `means` and `stds` that the draws are on: the first unless given. It must be given where
        there are as many draws as observations.

    References
    ----------
    Gneiting & Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 102 (2007), §4.1.

    Examples
    --------
    >>> import numpy as np
    >>> import widebnn as wb
    >>> means, y = np.zeros((5, 1, 1)), np.zeros((1, 1))
    >>> round(wb.metrics.gaussian_mixture_nll(means, 1.0, y), 4)
    0.9189
    """
    centres, y = _of_observations(axis, y, means=means)
    stds = finite(stds=_numbers(stds=stds))
    if stds.shape not in ((), np.shape(means)):
        raise ValueError(
            f"stds must be one number or have the shape {np.shape(means)} of means; got {stds.shape}"
        )
    if axis is not None and stds.ndim > 0:
        stds = np.moveaxis(stds, axis, 0)
    if not (stds > 0).all():
        raise ValueError(f"stds must be above 0; got {stds.min()}")
    log_p = -(((y - centres) / stds) ** 2) / 2 - np.log(stds) - np.log(2 * np.pi) / 2
    return float(-(logsumexp(log_p, axis=0) - np.log(len(log_p))).mean())


def _of_observations(
    axis: int | None, y: Numbers, **named: Predictions
) -> tuple[Float[np.ndarray, "draw n ..."], Float[np.ndarray, "n ..."]]:
    """Finite numbers, some for each observation, on the first axis."""
    ((name, _),) = named.items()
    given, y = _numbers(**named), finite(y=_numbers(y=y))
    if axis is None and y.ndim > 0 and len(y) > 1 and given.shape == (len(y), *y.shape):
        raise ValueError(
            f"axis must say where the draws are, such as axis=0, since {name} hold as many draws as "
            f"observations; got shape {given.shape}"
        )
    values = given if axis is None else np.moveaxis(given, at_least(-given.ndim, axis=axis), 0)
    if values.size == 0 or values.shape[1:] != y.shape:
        raise ValueError(
            f"{name} must have shape (draw, *y.shape) = (draw, {str(y.shape)[1:]}; got {given.shape}"
        )
    return finite(**{name: values}), y


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


def _scores(**named: Scores) -> Float[np.ndarray, " n"]:
    ((name, _),) = named.items()
    if (scores := _numbers(**named).ravel()).size == 0:
        raise ValueError(f"{name} must be scores, at least one; got none")
    return finite(**{name: scores})


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
    accuracy, nll, ece, ece_adaptive; confidence and entropy inside and outside, means over images; auroc and
    fpr95 of the predictive entropy; `reliability`, confidence and accuracy of bins that are not empty; and
    `entropy_histogram`, edges and shares inside and outside.
    """
    inside, outside = _probabilities(inside=inside), _probabilities(outside=outside)
    if inside.shape[-1] != outside.shape[-1]:
        raise ValueError(
            f"outside must have the {inside.shape[-1]} classes of inside; got {outside.shape[-1]}"
        )
    bins = reliability(inside, labels, NUM_BINS)
    held = bins.num_inputs > 0
    entropies = predictive_entropy(inside), predictive_entropy(outside)
    edges = np.linspace(0, np.log(inside.shape[-1]), 26)
    return {
        "accuracy": accuracy(inside, labels),
        "nll": nll(inside, labels),
        "ece": ece(inside, labels, NUM_BINS),
        "ece_adaptive": ece(inside, labels, NUM_BINS, adaptive=True),
        "confidence": float(confidence(inside).mean()),
        "confidence_outside": float(confidence(outside).mean()),
        "entropy": float(entropies[0].mean()),
        "entropy_outside": float(entropies[1].mean()),
        "auroc": auroc(*entropies),
        "fpr95": fpr95(*entropies),
        "reliability": {
            "confidence": bins.confidence[held].tolist(),
            "accuracy": bins.accuracy[held].tolist(),
        },
        "entropy_histogram": {
            "edges": edges.tolist(),
            "inside": _shares(entropies[0], edges),
            "outside": _shares(entropies[1], edges),
        },
    }


def _shares(values: Scores, edges: Float[np.ndarray, " edge"]) -> list[float]:
    """The share of `values` in each bin; what lies beyond the outer edges is in the outer bins."""
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    return (counts / np.size(values)).tolist()
