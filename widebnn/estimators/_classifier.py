"""Classification: regression on indicators of classes, or a softmax.

A label is no Gaussian observation: σ of the regression does not say how often the largest output names
another class. What is predicted of each label from all others does, and is known in closed form.
"""

import math
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from jaxtyping import Float, Int
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from widebnn import targets
from widebnn._check import one_of
from widebnn.collectors import predictive_mean, predictive_probabilities
from widebnn.estimators import _draws
from widebnn.estimators._base import BNNEstimator, block_size
from widebnn.estimators._columns import checked
from widebnn.estimators._engine import Answer, error_of_probabilities
from widebnn.estimators._network import LABEL_NOISE, SCALES
from widebnn.estimators._process import LEAST_GAIN, Process
from widebnn.targets import LogNormal

__all__ = ["BNNClassifier", "Indicators"]

UNITS = 128
"""Of each layer where there is no limit."""
MAX_ERROR = 0.02
"""Of all probabilities of a row together, at which a fit ends."""
REACH = 5.0
"""Largest |log b|."""
MAX_LEFT_OUT, MAX_DRAWS = 2_048, 128
"""Rows and draws that find b."""


class Indicators(NamedTuple):
    """Regression on indicators of k classes: means of each draw, and variances that all classes share."""

    means: Float[np.ndarray, "draw row k"]
    variances: Float[np.ndarray, "draw row"]

    @classmethod
    def left_out(cls, y: np.ndarray, mean: np.ndarray, variance: np.ndarray, noise: np.ndarray):
        """Of rows y (row, k), each given all others, from mean and variance of f given all, and σ².

        f of a row has the variance σ²h, h its leverage. Without the row, residual and variance of its
        observation are 1/(1 − h) times what they are (Rasmussen & Williams 2006, equation 5.12).
        """
        remains = np.maximum(1 - variance / noise, np.finfo(np.float32).eps)
        every = slice(None, None, -(-len(mean) // MAX_DRAWS))
        return cls((y - (y - mean) / remains[:, :, None])[every], (noise / remains)[every])

    def scores(self, sharpness: float) -> Float[np.ndarray, "draw row k"]:
        return sharpness * self.means / np.sqrt(self.variances)[:, :, None]

    def probabilities(self, sharpness: float) -> Float[np.ndarray, "row k"]:
        return softmax(self.scores(sharpness), axis=2).mean(axis=0)

    def log_probabilities(self, sharpness: float, y: Int[np.ndarray, " row"]) -> Float[np.ndarray, " row"]:
        """Of a label of each row."""
        each = log_softmax(self.scores(sharpness), axis=2)[:, np.arange(len(y)), y]
        return np.asarray(logsumexp(each, axis=0)) - math.log(len(each))

    def sharpness(self, y: Int[np.ndarray, " row"]) -> float:
        """The most probable b, a priori log b ~ N(0, 1): without it, b of classes apart grows for ever."""
        found: Any = scipy.optimize.minimize_scalar(
            lambda log_b: log_b**2 / 2 - self.log_probabilities(math.exp(log_b), y).sum(),
            bounds=(-REACH, REACH),
            method="bounded",
        )
        return math.exp(found.x)


@dataclass(eq=False, repr=False)
class BNNClassifier(ClassifierMixin, BNNEstimator):
    """Classification with a wide Bayesian neural network whose scales the data choose.

    Parameters
    ----------
    likelihood
        "gaussian": regression on one-hot targets minus $1/k$, $k$ the number of classes, as in the papers'
        experiments, with the readout integrated out. Of a class with predicted mean $m_c$ and deviation $s$,
        averaged over draws, $p_c ∝ exp(b m_c/s)$; the labels find $b$, as under Notes. "softmax":
        $p(c | x) ∝ exp f_c(x)$, where the weights themselves are sampled, by chains.
    width
        As in `BNNRegressor`, but not a list of several to be averaged. "auto": the limit where there is one
        and `likelihood` is "gaussian"; with a softmax or `features`, 128 units.
    depth, activation, features, num_chains, num_samples, thin, burn_in, until
        As in `BNNRegressor`. Unless `until` is given, chains end when the Monte Carlo error of all
        probabilities (with "gaussian", of all means) of a row together is at most .02, in the mean square
        over up to 16 rows.
    scales
        As in `BNNRegressor`, but `priors` unless given; "noise_std" belongs to "gaussian" alone.
    random_state, progress
        As in `BNNRegressor`.

    Attributes
    ----------
    classes_
        Labels, sorted.
    width_
        The width that was taken.
    sharpness_
        With "gaussian", $b$.
    scales_, ess_, rhat_, acceptance_rate_, seconds_, stopped_, positions_
        As in `BNNRegressor`.

    Warns
    -----
    ChainWarning
        If the run ended before the predictions stood.

    Notes
    -----
    **Sharpness.** A label is no Gaussian observation, and $σ$ of the regression does not say how often the
    largest $m_c$ names the wrong class. The prediction of each label from all others does, and has a closed
    form (Rasmussen & Williams 2006, equation 5.12; in section 6.5 it calibrates two classes): $b$ is most
    probable given these, with $log b ~ N(0, 1)$ a priori. For a finite network the weights below the readout
    have seen the label that is left out, and $b$ may be too large. Rows that others repeat are not left out.

    **Scales of columns.** The limit has one scale for all columns or one for each, as `BNNRegressor` finds
    them. Since the Gaussian evidence of labels exaggerates, labels decide: each predicted from all others,
    they have to be 5 nats more probable, and more than two standard errors, where columns have scales.

    **Softmax.** A fit that has ended may be far from having mixed: `rhat_` says so, `until` asks for more.
    On 1,348 rows of scikit-learn's digits the NLL of 449 others stayed between .11 and .12 over 240 steps of
    four chains after burn-in, and their calibration error at .05, with a scale of the readout at the end of
    its prior: the posterior itself is too cautious, and regression has .05 and .01 there.
    """

    width: Any = "auto"
    likelihood: str = field(default="gaussian", kw_only=True)

    priors = SCALES | {"noise_std": LABEL_NOISE}

    @property
    def _names(self):
        return tuple(name for name in SCALES if name != "noise_std" or self.likelihood == "gaussian")

    def fit(self, X: Any, y: Any) -> "BNNClassifier":
        """Sample the posterior.

        Parameters
        ----------
        X
            Inputs $(n, d_in)$, as for `BNNRegressor.fit`.
        y
            Labels $(n,)$, of at least two classes.

        Raises
        ------
        TypeError
            If `features` is neither a module nor a function, an option is of another type, or there are dates
            among the inputs.
        ValueError
            If the inputs are not finite numbers of these shapes, labels are missing, there is only one class,
            or an option is out of range.
        TimeoutError, KeyboardInterrupt
            As for `BNNRegressor.fit`.
        """
        one_of(("gaussian", "softmax"), likelihood=self.likelihood)
        self._forget()
        X, y = checked(self, X, y)
        _refuse_missing(y)
        check_classification_targets(y)
        self._check_options()
        self.width_ = self._chosen_width()
        self._labels = LabelEncoder().fit(y)
        self.classes_ = self._labels.classes_
        self._num_outputs = len(self.classes_)
        if self._num_outputs < 2:
            raise ValueError(f"y must hold at least two classes; got one class, {self.classes_[0]}")
        self._set_inputs(X)
        self._y = self._labels.transform(y)
        self._process = None
        if self.width_ == math.inf:
            self._process = self._limit()
            return self
        self._sample()
        if self.likelihood == "gaussian":
            rows = self._x[self._some]
            mean, variance = self._of_draws(rows)
            noise = self._over_draws(_draws.noise, rows[:1])[0][:, None].astype(np.float64)
            self.sharpness_, _ = self._sharpness(mean, variance - noise, noise)
        return self

    def _chosen_width(self) -> Any:
        has_limit = self.likelihood == "gaussian" and self.features is None
        if isinstance(self.width, str):
            if self.width != "auto":
                raise ValueError(f'width must be "auto", a number, or one for each layer; got {self.width!r}')
            return math.inf if has_limit else UNITS
        if np.ndim(self.width) == 0 and self.width == math.inf and not has_limit:
            raise ValueError(
                'width must be finite where features is given or likelihood="softmax": at width=math.inf '
                "there is a Gaussian process of a dense network"
            )
        return self.width

    def _limit(self) -> Process:
        """With one scale of all columns, or one of each, as the labels that are left out say."""
        start = time.perf_counter()
        given = (self.scales or {}).get("weight_std")
        is_free = given is None or (isinstance(given, LogNormal) and np.ndim(given.median) > 0)
        arguments = self._network, self._x, self._indicators, *self._scales
        found = Process.of(*arguments)
        self.sharpness_, by_one = self._sharpness(*found.fitted(self._some))
        if is_free:
            groups = self._categories.groups(self.n_features_in_)
            process = Process.of(*arguments, groups)
            sharpness, by_each = self._sharpness(*process.fitted(self._some))
            gains = by_each - by_one
            if gains.sum() > max(LEAST_GAIN, 2 * math.sqrt(len(gains)) * gains.std()):
                found, self.sharpness_ = process, sharpness
        self.scales_ = found.scales()[0] | self._scales[1]
        self.stopped_, self.ess_, self.rhat_ = "limit", {}, {}
        self.seconds_ = time.perf_counter() - start
        return found

    @property
    def _some(self) -> slice:
        """Rows that are left out."""
        return slice(None, None, -(-len(self._x) // MAX_LEFT_OUT))

    def _sharpness(self, *fitted: np.ndarray) -> tuple[float, np.ndarray]:
        """b, and the log probability of the label of each row given all others."""
        y = self._y[self._some]
        left_out = Indicators.left_out(self._indicators[self._some], *fitted)
        sharpness = left_out.sharpness(y)
        return sharpness, left_out.log_probabilities(sharpness, y)

    @property
    def _indicators(self) -> np.ndarray:
        """One-hot targets minus 1/k, (n, k)."""
        return np.eye(self._num_outputs)[self._y] - 1 / self._num_outputs

    def _of_draws(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means (draw, m, k) and variances (draw, m) of indicators, the noise included."""
        mean, variance = self._over_draws(_draws.moments, inputs)
        return mean.astype(np.float64), variance.astype(np.float64)

    def _target(self, bnn):
        if self.likelihood == "softmax":
            return targets.categorical(bnn, self._x, self._y, map="identity")
        rows = block_size(bnn, self._x, self.num_chains)
        return targets.marginal(bnn, self._x, self._indicators, block_size=rows)

    def _watched(self, rows):
        if self.likelihood == "softmax":
            return predictive_probabilities(rows)
        return predictive_mean(rows)

    @property
    def _answer(self):
        return Answer(error=error_of_probabilities, largest=MAX_ERROR, unit="probability")

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the $k$ classes, $(m, k)$, in the order of `classes_`."""
        if self.likelihood == "softmax":
            of_draws = partial(self._over_draws, _draws.softmax_probabilities)
            p = self._over_rows(lambda inputs: of_draws(inputs).mean(axis=0), X).astype(np.float64)
            return p / p.sum(axis=1, keepdims=True)
        check_is_fitted(self)
        moments = self._of_draws if self._process is None else self._process.moments
        return self._over_rows(lambda x: Indicators(*moments(x)).probabilities(self.sharpness_), X)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each input, $(m,)$."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


def _refuse_missing(y: np.ndarray) -> None:
    if y.dtype == object:
        import pandas  # a second, which only those pay who hand over objects

        if (is_missing := pandas.isna(y)).any():
            raise ValueError(f"y must have no missing entries; got {is_missing.sum()} of {y.size}")
