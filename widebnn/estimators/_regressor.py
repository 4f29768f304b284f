"""Regression: a mixture of Gaussians, one per draw, or the process of infinite width."""

import copy
import functools
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.base import MultiOutputMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from widebnn import targets
from widebnn._arrays import real
from widebnn._check import at_least, finite
from widebnn._compile import refuse_fork
from widebnn._failures import ChainWarning
from widebnn.estimators import _draws, _likelihoods
from widebnn.estimators._base import NUM_WATCHED, BNNEstimator, block_size
from widebnn.estimators._columns import checked, random_of, scaler_of, standardised
from widebnn.estimators._engine import Answer, Moments
from widebnn.estimators._network import SCALES, Architecture
from widebnn.estimators._noise import Noise, known_noise
from widebnn.estimators._process import Process
from widebnn.nngp import EvidenceSlope, evidence_slope
from widebnn.targets import LogNormal

__all__ = ["BNNRegressor"]


class Relevances(NamedTuple):
    """The scale of each column's weights, in units of the root mean square of all.

    Attributes
    ----------
    names
        Of the columns.
    mean, std
        Posterior mean and deviation, $(d_in,)$; 1 and 0 where one scale serves all columns.
    gain
        By how many nats the log evidence with a scale per column exceeds that with one for all, by Laplace's
        approximation; where it does not, one is taken. NaN where there was no choice.
    """

    names: list[str]
    mean: np.ndarray
    std: np.ndarray
    gain: float


class WidthEvidence(NamedTuple):
    """Of one of several widths: log evidence, its standard error in nats, and the weight of its predictions.

    In the limit the evidence is Laplace's approximation over the scales, without an error.
    """

    log_evidence: float
    error: float
    weight: float


NUM_AVERAGED = 256
"""Draws of all widths together, over which predictions are averaged."""
UNITS = 64
"""Of the finite network that `width="auto"` may choose.

128 take two to four times as long; their NLL is .007 higher on Friedman's third table (300 rows), .008 on his
first (100 rows) and .04 on Boston, one split each.
"""
LEAST_GAIN = 5.0
"""Nats by which its evidence has to exceed the limit's: "very strong" for Kass & Raftery (1995)."""
MAX_ROWS, MAX_UNITS = 512, 2**15
"""Rows, evenly spaced, and units of which c₁ is found."""
NUM_OBSERVATIONS = 10
"""Of each draw, whose quantiles are those of a mixture that is not of Gaussians."""
NUM_RELEVANCES = 1_000
"""Draws that tell of the relevances."""


@dataclass(eq=False, repr=False)
class BNNRegressor(MultiOutputMixin, RegressorMixin, BNNEstimator):
    """Regression with a wide Bayesian neural network whose scales the data choose.

    The model is $y = Ψ W + σε$, with inputs and targets that the estimator standardises. The readout $W$ is
    integrated out. The layers below and all scales are drawn by particles (`widebnn.smc`) or by chains
    (`widebnn.sample`), or the width is infinite. A prediction is a mixture of Gaussians, one per draw.

    Parameters
    ----------
    width
        $d_ℓ$ of a dense network: one number, or one per hidden layer. ``math.inf`` is the limit of infinite
        width, a Gaussian process with the network's kernel, in float64: nothing is sampled but scales, a fit
        takes a few seconds up to 500 rows and 20 for 20,000, and options of chains do not count.
        "auto" asks the evidence which of both it is to be; see the notes. A list such as
        ``[16, 64, 256, math.inf]`` averages over widths by their evidence, from particles; layers of
        different widths are a tuple, ``(64, 32)``.
    depth
        $L$, the number of hidden layers; not used where `width` gives one number per layer.
    activation
        $ψ$: "gelu", "erf" or "relu".
    features
        In place of those three, a Flax NNX module that maps $(n, d_in)$ to $(n, d_L)$, or a function from
        $d_in$ to such a module. Its scales stay as they are; $σ$ and the readout's scale are learned.
    scales
        A dict from "noise_std", "readout_std", "weight_std" or "bias_std" to a number that holds the scale
        there, or to a `widebnn.targets.LogNormal` as its prior; `SCALES` unless given. They refer to
        standardised inputs and targets. Where "weight_std" is given, it is the scale of all columns, or an
        array of the scale of each. The median of its prior may be an array too, about which `relevances_` are
        found.
    num_chains
        Number of chains, or of islands of particles.
    num_samples
        Draws of each chain, at most.
    thin
        Steps of a chain from one draw to the next.
    burn_in
        First steps of a chain, which tune the step size and are left out.
    until
        Asks for more than an answer that stands, and for chains: a `widebnn.stopping.Until`, such as
        ``Until()`` for 400 effective samples and an $R̂$ of at most 1.01 of every scale and of the
        predictions. Its `names` are not used. Unless given, a fit ends when predictions stand; see the notes.
    noise
        "constant": one $σ$ for all inputs. "per input": $σ(x) = σ exp(aᵀx)$ with $x$ standardised and
        $|aᵀx| ≤ 3$, see the notes. Where the noise of each row is known, give it to `fit`.
    likelihood
        "gaussian"; "student_t" for outliers, $y = f + σt$ with $t$ of 4 degrees of freedom; "poisson" for
        counts, of mean $exp(b + f)$ with $b$ the logarithm of their mean. The last two need a finite `width`;
        the readout is sampled with the layers below, and predictions are mixtures of these distributions.
    random_state
        Seed, a `numpy.random.Generator`, or anything else that scikit-learn takes for one.
    progress
        Whether to show a progress bar.

    Attributes
    ----------
    scales_
        A dict of the posterior mean of each scale; "noise_std" is the $σ$ of predictions, and "weight_std"
        the root mean square over the columns.
    width_
        The width that was taken.
    relevances_
        A tuple of the `names` of the columns, posterior `mean` and `std` of the scale of each column's
        weights at infinite width, in units of the root mean square of all, and `gain`, by how many nats the
        log evidence with a scale per column exceeds that with one.
    evidence_slope_
        Of one hidden layer and one output: what `widebnn.nngp.evidence_slope` finds at the limit's most
        probable scales, on up to 512 rows. A $c₁$ that is large and positive says that the data prefer a
        finite width; a negative or small one, that the limit is the answer.
    log_evidence_, log_evidence_error_
        Where particles ran, $log p(y | X)$ of the standardised targets, all scales but the relevances
        integrated out, and its standard error over the islands, in nats. At infinite width Laplace's
        approximation, without an error.
    evidences_
        Where `width` is a list, a dict from each width to a tuple of `log_evidence`, `error` and `weight`.
        `width_` is then the one of most evidence, and of the attributes of draws there are none.
    noise_coefficients_
        Where noise="per input", $a$, one number per standardised input.
    estimators_
        Where $y$ has several columns, the regressor of each. Then `scales_` hold arrays, `width_` is a
        list, and of the other attributes `seconds_` alone is there.
    ess_
        A dict of the least effective sample size of each scale and of "predictions", mean and deviation of an
        observation at up to 16 rows of the training inputs: what `until` looks at, by
        `widebnn.diagnostics.convergence`. Empty where the width is infinite.
    rhat_
        A dict of the largest $R̂$ of the same.
    acceptance_rate_
        Mean acceptance rate over all chains and steps after burn-in.
    seconds_
        Wall time of burn-in and sampling, without compilation.
    stopped_
        "converged" where predictions stood, "limit" where the width is infinite and no chain ran, or what
        else ended the run, as in `widebnn.Draws`.
    positions_
        The positions over which predictions are averaged, (draw, coordinate): at most 1,000, evenly spaced.

    Warns
    -----
    ChainWarning
        If the run ended before the predictions stood, or draws do not predict.

    Notes
    -----
    **Width.** A fit begins in the limit of infinite width. ``width="auto"`` takes that limit, unless a finite
    network has more evidence beyond doubt: to first order $c₁/d$ nats more at width $d$ (`evidence_slope_`).
    With $d = 64$ and two standard errors less, that has to exceed 5 nats, "very strong" for Kass & Raftery
    (1995); then $d$ is the width. Where $c₁$ is not known, with `features` or several hidden layers, the
    width is $d$ too. `progress` says what was chosen.

    **Engine.** From the start, $N(0, I)$ for the weights and the limit's Gaussian for the scales, particles
    go to the posterior where the potential has a deviation of at most 10 nats over 16 draws there. Where the
    way is longer, no limit is known, or `until` is given, there are chains from that start. Both move weights
    and scales together by `widebnn.samplers.function_space_hmc`, in coordinates in which the start is
    $N(0, I)$.

    **End.** A fit ends when predictions stand: when the Monte Carlo error of the ends of the 90 % interval is
    at most 5 % of its half width, in the mean square over 16 rows, as chains or islands disagree, and as the
    first halves of all of them disagree with the second. Particles are doubled until then, up to 128 of each
    island. In twelve fits of Friedman's first table with 100 rows, the rule found 4.1 % and a long run 3.9 %,
    at most 5 % in ten of them; in twelve of the diabetes data with 442 rows and 64 units, 1.1 and .9 %, at
    most 1.2 % in all; in six of Friedman's third table with 300 rows, 3.2 and 3.0 %, against a run whose $R̂$
    was 1.04; in one of his first with 5,000 rows and 10 columns (53 s of processor time), .7 and .6 %,
    against a run of five times as many draws. Scales compensate for one another, and their $R̂$ may then be
    large: `rhat_` reports it, and `until` asks for more.

    **Relevances.** At infinite width `scales_` are the most probable scales, `seconds_` those of the whole
    fit; `acceptance_rate_` and `positions_` are absent. The scale of column $j$ is
    $log σ_W,j = log σ_W + τ z_j$ with $z ~ N(0, I)$ (automatic relevance determination, MacKay 1994, Neal
    1996). Laplace's evidence chooses $τ$ among 0 (one scale for all), $½$ and 1; another than 0 has to gain 5
    nats. A finite network has the most probable factors $exp(τ z_j)$ relative to one scale, which is sampled;
    where columns outnumber up to 512 rows, one is fitted at each of 8 draws of the factors in the limit,
    predictions average over these networks, and of `positions_` there are none; where `width` is a list, the
    most probable factors stay. In the limit, predictions average over 8 draws of the scales, since the most
    probable ones alone are too sure of themselves: up to 512 rows by function-space HMC from Laplace's
    Gaussian, up to 1,500 rows from that Gaussian itself; above, and where columns outnumber more than 512
    rows, the most probable scales remain.

    **Many rows.** At infinite width the scales suit up to 1,024 rows, evenly spaced, and predictions are
    given all rows. Of more than 512 rows, those are factorised that stand for all (Titsias 2009), as many as
    it takes until the log evidence loses about half a nat: 620 of 5,000 rows of Friedman's first table with
    10 columns. 10⁵ predictions then take 4 s of processor time. Where half of the rows or 2,000 of them do
    not suffice, all are factorised, up to 10,000; of more, 2,000 are, and what these leave of the prior's
    variance stays in the deviations of predictions.

    Inputs are in units of their deviation, those of two values in units of their distance. A column of a
    pandas frame whose dtype is "category" becomes an indicator of each category, all with one relevance.

    Each output has a network, scales and noise of its own. One that never changes is predicted as it is.

    With noise="per input", $a ~ N(0, I/d_in)$ is found with the scales of the limit of infinite width, and
    averaged over with those of the columns. A finite network keeps the most probable $a$ of the limit and
    samples $σ$: the uncertainty of $a$ itself, about $1/√(2n)$ in each coefficient, is not in its
    predictions. Where the noise is known, predictions are of $f$, as those of `GaussianProcessRegressor` with
    an array `alpha` are: that of a new observation comes on top, as in ``np.hypot(std, noise_std)``.

    Noise has a floor: $σ²$ counts as no less than $4ε tr ΨΨᵀ$, with $ε$ the rounding error, since float32
    loses smaller noise beside the eigenvalues of $ΨΨᵀ$. With outputs of about the size of the targets, $σ$ is
    then at least $7·10⁻⁴ √n$ in their units, and more where the readout's scale is large. On Friedman's first
    table with 400 rows, $σ$ of .2 and 64 units, it binds in 70 % of draws and averages .17, in units of $y$'s
    deviation. `scales_` says the $σ$ that results. In float64, after ``jax.config.update("jax_enable_x64",
    True)`` or at infinite width, the floor is $4·10⁻⁵$ of that.

    `fit` keeps of each draw what predictions need, the mean of the readout and a root of its covariance: up
    to 256 MiB in all. Where 1,000 draws take more, fewer are kept, and 16 at least.

    The seconds of `until` are those of burn-in and draws. Compilation, some ten seconds for the first fit of
    a shape, and the limit, a few seconds, come on top.

    Rows have no weights: `fit` takes no `sample_weight`, by which scikit-learn means a number of equal rows.
    A row that counts $k$ times can be given $k$ times; one that is more precise has a smaller `noise_std`.
    Predictions are arrays of NumPy; `set_output` is for transformers alone.
    Inputs further than $10¹²$ standard deviations from the training data are refused: float32 could not hold
    what a network makes of them.
    """

    width: Any = "auto"
    noise: str = field(default="constant", kw_only=True)
    likelihood: str = field(default="gaussian", kw_only=True)

    @property
    def _names(self):
        return tuple(name for name in SCALES if name != "noise_std" or self.likelihood != "poisson")

    def fit(self, X: Any, y: Any, noise_std: Any = None) -> "BNNRegressor":
        """Sample the posterior.

        Parameters
        ----------
        X
            Inputs $(n, d_in)$, $n ≥ 2$: an array, a list, a sparse matrix of up to 10⁸ entries, or a data
            frame of numbers and, in pandas, categories.
        y
            Targets $(n,)$ or $(n, d_out)$.
        noise_std
            Known standard deviations of the noise of each row, $(n,)$ or shaped like $y$, in the units of
            $y$; found from the data unless given.

        Raises
        ------
        TypeError
            If `features` is neither a module nor a function, an option is of another type, or there are dates
            among the data.
        ValueError
            If the data are not finite numbers of these shapes, or an option is out of range.
        TimeoutError, KeyboardInterrupt
            If the seconds of `until` are spent, or Ctrl-C is pressed, before there is a draw.
        """
        self._forget()
        given = X
        X, y = checked(self, X, y, multi_output=True, y_numeric=True, ensure_min_samples=2)
        self._check_options()
        self._is_flat = y.ndim == 1
        y = y.reshape(len(y), -1)
        _likelihoods.check_likelihood(self.likelihood, self.width, self.noise, noise_std, y)
        known_std = known_noise(self.noise, self.scales, noise_std, y)
        self._outputs, self._averaged, self._process, self._limit = [], [], None, None
        self._num_models = 1
        if y.shape[1] > 1:
            self._fit_outputs(given, y, known_std)
            return self
        self._set_inputs(X)
        self._target_scaler = scaler_of(False, y=y)
        _likelihoods.centre(self.likelihood, self._target_scaler, y)
        self._y = standardised(self._target_scaler, y=y)
        self._num_outputs = 1
        self._noise = None
        if known_std is not None:
            self._noise = Noise(known_std[:, 0] / self._target_scaler.scale_)
            self._scales = _without_noise(self._scales[0]), self._scales[1]
        self._fit_output()
        return self

    def _keep_noise(self, learned: dict[str, Any]) -> None:
        """Coefficients of the limit, or of a dense network's where features have none."""
        process = self._limit
        if process is None:
            limit = Architecture(None, 1, 1, self.activation, 1)
            process = Process.of(limit, self._x, self._y, {**self.priors, **learned}, {}, noise=self.noise)
        coefficients = np.asarray(process.setting.coefficients(process.mode), np.float64)
        self.noise_coefficients_ = coefficients * self._column_sizes
        self._noise = Noise.log_linear(coefficients, self._x)

    def _fit_outputs(self, X: Any, y: np.ndarray, noise_std: np.ndarray | None) -> None:
        """Each output by a network, scales and noise of its own; one that never changes by the limit."""
        for j, column in enumerate(y.T):
            model: Any = clone(self)
            if np.ptp(column) == 0 and self.features is None:
                model.set_params(width=math.inf, likelihood="gaussian")
            self._outputs.append(model.fit(X, column, None if noise_std is None else noise_std[:, j]))
        self.estimators_ = self._outputs
        known = self._scales[1]
        self.scales_ = {
            name: known.get(name, np.array([model.scales_[name] for model in self._outputs]))
            for name in self._outputs[0].scales_
        }
        self.width_ = [model.width_ for model in self._outputs]
        self.seconds_ = sum(model.seconds_ for model in self._outputs)

    def _check_options(self):
        super()._check_options()
        if isinstance(self.width, str) and self.width != "auto":
            raise ValueError(f'width must be "auto", a number or numbers; got {self.width!r}')
        widths = self.width if isinstance(self.width, list) else [self.width]
        if not widths or len(set(widths)) < len(widths):
            raise ValueError(f"width must hold one width or more, each of them once; got {self.width}")
        if isinstance(self.width, list) and (self.features is not None or self.until is not None):
            raise ValueError(
                "width must not be a list where features or until is given: widths are averaged by the "
                "evidence, of dense networks and by particles"
            )
        if math.inf in widths and self.features is not None:
            raise ValueError(
                "width must be finite where features is given: at width=math.inf there is a Gaussian process "
                "of a dense network"
            )

    def _fit_output(self) -> None:
        """The limit first, whose scales and evidence say what comes next."""
        start = time.perf_counter()
        learned, known = self._scales
        self._limit, self._factors = None, np.ones(self._x.shape[1])
        if self.features is None and self.likelihood == "gaussian":
            self.width_ = math.inf
            given = (self.scales or {}).get("weight_std")
            is_free = given is None or (isinstance(given, LogNormal) and np.ndim(given.median) > 0)
            groups = self._categories.groups(self.n_features_in_) if is_free else None
            noise = self.noise, None if self._noise is None else self._noise.units
            try:
                self._limit = Process.of(self._network, self._x, self._y, learned, known, groups, *noise)
            except np.linalg.LinAlgError:
                if self.width == math.inf or isinstance(self.width, list):
                    raise
            else:
                self.relevances_ = self._relevances(self._limit)
        if self.noise == "per input":
            self._keep_noise(learned)
        if isinstance(self.width, list):
            self._average(learned, known)
        else:
            self.width_ = self._chosen_width()
            self._fit_width(learned, known)
        if self._averaged or self._process is not None:
            self.seconds_ = time.perf_counter() - start

    def _average(self, learned: dict[str, Any], known: dict[str, Any]) -> None:
        """Fits of all widths, each with its evidence, and as many draws of each as that says."""
        models = []
        for width in self.width:
            model = copy.copy(self)
            model.width = model.width_ = width
            model._fit_width(learned, known, tells_evidence=True)
            models.append(model)
        found: Any = np.array([model.log_evidence_ for model in models])
        weights = np.exp(found - logsumexp(found))
        numbers = np.diff(np.round(NUM_AVERAGED * np.cumsum([0, *weights])).astype(int))
        self._averaged = [(model, int(number)) for model, number in zip(models, numbers) if number]
        self.evidences_ = {
            width: WidthEvidence(model.log_evidence_, model.log_evidence_error_, float(weight))
            for width, model, weight in zip(self.width, models, weights)
        }
        if self.progress:
            for width, (log_evidence, error, weight) in self.evidences_.items():
                print(
                    f"width {width!s:>8}: log evidence {log_evidence:9.2f} ± {error:.2f}, weight {weight:.3f}"
                )
        self.width_ = self.width[int(found.argmax())]
        self.log_evidence_ = float(np.asarray(logsumexp(found))) - math.log(len(found))
        self.scales_ = {
            name: np.sum([w * model.scales_[name] for w, model in zip(weights, models)], axis=0)
            for name in models[0].scales_
        }

    def _fit_width(
        self, learned: dict[str, Any], known: dict[str, Any], tells_evidence: bool = False
    ) -> None:
        """The process of the limit, or the posterior of a network of the width that was taken."""
        if self.width_ == math.inf:
            self._process: Any = self._limit
            _ = self._process.members
            units = {} if self._noise is None else {"noise_std": self._noise.units}
            self.scales_ = self._process.scales()[0] | known | units
            self.log_evidence_, self.log_evidence_error_ = self._process.log_evidence, math.nan
            self.stopped_, self.ess_, self.rhat_ = "limit", {}, {}
            return
        if self._limit is not None and self._limit.has_few_rows and not tells_evidence:
            self._fit_draws(learned, known, self._limit)
            return
        self._fit_columns(learned, known, tells_evidence)

    def _fit_columns(
        self, learned: dict[str, Any], known: dict[str, Any], tells_evidence: bool = False
    ) -> None:
        """The posterior of a finite network whose columns have the limit's most probable factors."""
        if self._limit is not None:  # columns in units in which one scale serves them all
            self._factors = self._limit.scales()[1]
            learned = self._limit.setting.priors
        if self._noise is not None:  # the network's σ is one number per row, and the scale their factor
            known = known | {"noise_std": self._noise.units[:, None]}
        self._scales = learned, known
        self._sample(tells_evidence)

    def _fit_draws(self, learned: dict[str, Any], known: dict[str, Any], limit: Process) -> None:
        """A posterior for each of the limit's draws of the factors, of which rows alone tell too little."""
        models, random = [], random_of(self.random_state)
        for u, _ in limit.members:
            model = copy.copy(self)
            model._limit, model._num_models = replace(limit, mode=u), len(limit.members)
            model.random_state = random.randint(np.iinfo(np.int32).max)
            with warnings.catch_warnings():  # of the evidence, which is not asked for
                warnings.filterwarnings("ignore", "log evidences of the islands", ChainWarning)
                model._fit_columns(learned, known)
            models.append(model)
        self._averaged = [(model, NUM_AVERAGED // len(models)) for model in models]
        self.scales_ = {
            name: np.mean([model.scales_[name] for model in models], axis=0) for name in models[0].scales_
        }
        self.ess_, self.rhat_ = (
            {name: worst(each(model)[name] for model in models) for name in each(models[0])}
            for worst, each in ((min, lambda model: model.ess_), (max, lambda model: model.rhat_))
        )
        self.acceptance_rate_ = float(np.mean([model.acceptance_rate_ for model in models]))
        self.stopped_ = next((m.stopped_ for m in models if m.stopped_ != "converged"), "converged")

    def _chosen_width(self) -> Any:
        """What is given, or what the sign and size of c₁ say; see the notes of the class."""
        if self.width != "auto":
            return self.width
        if self._limit is None or self.depth != 1:
            return UNITS
        _, slope, error, _ = self.evidence_slope_
        is_finite = slope - 2 * error > LEAST_GAIN * UNITS
        if self.progress:
            print(
                f"c₁ = {slope:,.0f} ± {error:,.0f}: {UNITS} units have {slope / UNITS:.1f} nats more "
                f"evidence than the limit, to first order; width={UNITS if is_finite else 'math.inf'}"
            )
        return UNITS if is_finite else math.inf

    def _limiting_scales(self, posterior):
        if self._limit is None or not posterior.priors:
            return super()._limiting_scales(posterior) if self.features is None else None
        return self._limit.gaussian(jax.tree.leaves(posterior.template)[0].dtype)

    @property
    def _answer(self):
        one = Answer()
        return replace(one, largest=one.largest * math.sqrt(self._num_models))

    def _over_draws(self, function, inputs, seed=0):
        return super()._over_draws(function, inputs * self._factors, seed)

    @functools.cached_property
    def evidence_slope_(self) -> EvidenceSlope:
        """$log Z_∞$ and $c₁$ at the limit's most probable scales, by `widebnn.nngp.evidence_slope`."""
        check_is_fitted(self, "_x")
        if self._limit is None:
            raise AttributeError("evidence_slope_ is there where features is not given and y has one column")
        bnn, num_data = self._limit.network, len(self._x)
        rows = np.linspace(0, num_data - 1, min(num_data, MAX_ROWS)).astype(int)
        if np.ndim(bnn.noise_std):
            bnn = bnn.at_scales(noise_std=bnn.noise_std[rows])
        return evidence_slope(bnn, self._x[rows], self._y[rows], max_units=MAX_UNITS)

    def _relevances(self, process: Process) -> Relevances:
        groups = self._categories.groups(self.n_features_in_)
        first = np.unique(groups, return_index=True)[1]
        random = np.random.default_rng(0)
        number = NUM_RELEVANCES if process.setting.tau else 2
        steps = random.normal(size=(number, len(process.mode))) @ process.root.T
        draws = self._column_sizes * [process.scales(process.mode + step)[1] for step in steps]
        draws = (draws / np.sqrt(np.mean(draws**2, axis=1, keepdims=True)))[:, first]
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(first))])
        return Relevances([str(name) for name in names], draws.mean(axis=0), draws.std(axis=0), process.gain)

    def _target(self, bnn):
        x = self._x * self._factors
        if self.likelihood != "gaussian":
            return _likelihoods.target(self.likelihood, bnn, x, self._y)
        rows = block_size(bnn, x, self.num_chains) if self._noise is None else None
        return targets.marginal(bnn, x, self._y, block_size=rows)

    def _watched(self, rows):
        noise = None if self._noise is None else self._noise.units[:: -(-len(self._x) // NUM_WATCHED)]
        return Moments(rows * self._factors, noise)

    def _of_batch(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and deviations of y* per draw, (draw, m), in the units of y."""
        if self._averaged:
            parts = [(np.stack(model._of_batch(inputs)), number) for model, number in self._averaged]
            each = [part[:, np.linspace(0, part.shape[1] - 1, number).astype(int)] for part, number in parts]
            means, stds = np.concatenate(each, axis=1)
            return means, stds
        if self.likelihood != "gaussian":
            law = self._law(inputs)
            return self._in_units(law.mean()), self._target_scaler.scale_ * law.std()
        if self._process is None:
            mean, variance = self._over_draws(_draws.moments, inputs)
            if self._noise is not None:
                std, taken = self._noise_stds(inputs, self._noise)
                variance = np.maximum(variance - taken**2, 0) + std**2
        else:
            mean, variance = self._process.moments(inputs)
        centre, unit = self._target_scaler.mean_, self._target_scaler.scale_
        return centre + unit * mean[:, :, 0].astype(np.float64), unit * np.sqrt(variance.astype(np.float64))

    def _law(self, inputs: np.ndarray) -> Any:
        """Distributions of standardised observations that are not Gaussian, per draw (draw, m)."""
        f, noise_std = self._over_draws(_draws.network_output, inputs)
        return _likelihoods.law(self.likelihood, f.astype(np.float64), noise_std, self._y)

    def _in_units(self, values: np.ndarray) -> np.ndarray:
        """In the units of y."""
        return self._target_scaler.mean_ + self._target_scaler.scale_ * values

    def _noise_stds(self, inputs: np.ndarray, noise: Noise) -> tuple[np.ndarray, np.ndarray]:
        """σ(x) per draw (draw, m), and what `_draws` takes for it (draw, 1): that of rows divided by it."""
        one, factor = self._over_draws(_draws.noise, inputs[:1])
        std = np.sqrt(one)[:, None]
        return std * factor[:, None] * noise.at(inputs), std

    def _mixture(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Means and deviations of y* per draw, (draw, m), of all rows at once."""
        parts = self._over_rows(lambda inputs: np.stack(self._of_batch(inputs)).transpose(2, 0, 1), X)
        means, stds = parts.transpose(1, 2, 0)
        return means, stds

    def _each(self, ask: Callable[["BNNRegressor"], Any]) -> list[Any]:
        """What is asked of the regressor of each output."""
        refuse_fork()
        check_is_fitted(self)
        return [ask(model) for model in self._outputs]

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """The mean of an observation at new inputs, and its standard deviation or covariance.

        Both include the noise $σ$, as those of `GaussianProcessRegressor` with a `WhiteKernel` do.

        Parameters
        ----------
        X
            New inputs $(m, d_in)$.
        return_std
            Whether to return the standard deviation too, shaped like the mean.
        return_cov
            Whether to return the covariance over the new inputs instead, $(m, m)$ or $(m, m, d_out)$.

        Returns
        -------
        mean
            $(m,)$, or $(m, d_out)$ where $y$ had columns; with `return_std` or `return_cov`, a tuple of the
            mean and what was asked for.

        Raises
        ------
        RuntimeError
            If both are asked for.
        """
        if return_std and return_cov:
            raise RuntimeError("return_std and return_cov must not both be True: ask for one at a time")
        if outputs := self._each(lambda model: model.predict(X, return_std, return_cov)):
            if not (return_std or return_cov):
                return np.stack(outputs, axis=-1)
            mean, spread = (np.stack(each, axis=-1) for each in zip(*outputs))
            return mean, spread
        if return_cov:
            return self._joint_moments(X)

        def moments(inputs: np.ndarray) -> np.ndarray:
            means, stds = self._of_batch(inputs)
            return np.stack([means.mean(axis=0), np.sqrt((stds**2).mean(axis=0) + means.var(axis=0))], axis=1)

        mean, std = self._shaped(self._over_rows(moments, X).T)
        return (mean, std) if return_std else mean

    def _joint_moments(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        if self._averaged:
            means, covariances = zip(*(model._joint_moments(X) for model, _ in self._averaged))
            weights = np.array([number for _, number in self._averaged]) / NUM_AVERAGED
            mean = np.tensordot(weights, means, axes=1)
            centred = (np.array(means) - mean).reshape(len(weights), len(mean))
            between = self._shaped((weights * centred.T) @ centred)
            return mean, np.tensordot(weights, covariances, axes=1) + between
        if self.likelihood != "gaussian":
            means, stds = self._mixture(X)
            covariance = np.cov(means.T, ddof=0).reshape(2 * means.shape[1:])
            return self._shaped(means.mean(axis=0)), self._shaped(
                covariance + np.diag((stds**2).mean(axis=0))
            )
        inputs = self._inputs(X)
        within = (
            self._over_draws(_draws.covariance, inputs)
            if self._process is None
            else self._process.covariances(inputs)
        )
        if self._process is None and self._noise is not None:
            std, taken = self._noise_stds(inputs, self._noise)
            diagonal = np.arange(len(inputs))
            within[:, diagonal, diagonal] += std**2 - taken**2
        means = self._mixture(X)[0]
        centred = means - means.mean(axis=0)
        covariance = within.mean(axis=0) * self._target_scaler.scale_**2 + centred.T @ centred / len(means)
        return self._shaped(means.mean(axis=0)), self._shaped(covariance)

    def predict_interval(self, X: Any, level: Any = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Central interval of an observation: the $(1 ∓ level)/2$ quantiles of the mixture.

        Parameters
        ----------
        X
            New inputs $(m, d_in)$.
        level
            Probability in (0, 1), or a sequence of them.

        Returns
        -------
        lower, upper
            Shaped like the mean; for a sequence of levels, with an axis of levels before, as of
            `numpy.quantile`.

        Raises
        ------
        TypeError
            If `level` holds other things than numbers.
        ValueError
            If `level` lies outside (0, 1), or is no number and no sequence of them.
        """
        levels = np.asarray(real(level=level), np.float64)
        if levels.ndim > 1 or levels.size == 0:
            raise ValueError(f"level must be a number, or a sequence of them; got shape {levels.shape}")
        if not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"level must lie in (0, 1); got {level}")
        if outputs := self._each(lambda model: model.predict_interval(X, level)):
            lower, upper = (np.stack(each, axis=-1) for each in zip(*outputs))
            return lower, upper
        ends = np.stack([(1 - levels.ravel()) / 2, (1 + levels.ravel()) / 2])

        def quantiles(inputs: np.ndarray) -> np.ndarray:
            if self.likelihood != "gaussian":
                law = self._law(inputs)
                draws = law.rvs((NUM_OBSERVATIONS, *law.mean().shape), random_state=0)
                return self._in_units(np.quantile(draws, ends.ravel(), axis=(0, 1)).T)
            mixture = self._of_batch(inputs)
            return np.stack([_draws.quantile(q, *mixture) for q in ends.ravel()], axis=1)

        found = self._shaped(self._over_rows(quantiles, X).T.reshape(2, levels.size, -1))
        lower, upper = found if levels.ndim else found[:, 0]
        return lower, upper

    def log_predictive_density(self, X: Any, y: Any) -> np.ndarray:
        """$log p(y* | D)$ of observations at new inputs, $(m,)$, in nats; minus their mean is the NLL.

        Parameters
        ----------
        X
            New inputs $(m, d_in)$.
        y
            Observations there, $(m,)$ or $(m, d_out)$; log densities are summed over the outputs.

        Raises
        ------
        TypeError
            If `y` holds other things than real numbers.
        ValueError
            If `y` does not have one row per input and one column per output, or is not finite.
        """
        y = np.asarray(finite(y=real(y=y)), np.float64)
        check_is_fitted(self)
        number = len(self._inputs(X)) if not self._outputs else len(self._outputs[0]._inputs(X))
        wanted = (number,) if self._is_flat else (number, max(len(self._outputs), 1))
        if y.size != math.prod(wanted) or y.shape[:1] != (number,):
            raise ValueError(f"y must have shape {wanted}; got {y.shape}")
        y = y.reshape(number, -1)
        columns = iter(y.T)
        if outputs := self._each(lambda model: model.log_predictive_density(X, next(columns))):
            return np.sum(outputs, axis=0)

        def log_mean(inputs: np.ndarray, y: np.ndarray) -> np.ndarray:
            if self.likelihood != "gaussian":
                law, units = self._law(inputs), self._target_scaler.scale_
                log_density = law.logpmf if self.likelihood == "poisson" else law.logpdf
                values = log_density((y[:, 0] - self._target_scaler.mean_) / units) - np.log(units)
                return np.asarray(logsumexp(values, axis=0)) - math.log(len(values))
            means, stds = self._of_batch(inputs)
            return np.asarray(logsumexp(norm.logpdf(y[:, 0], means, stds), axis=0)) - math.log(len(means))

        return self._over_rows(log_mean, X, y)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draws of observations; each is made by one draw of the posterior, jointly at all inputs.

        Parameters
        ----------
        X
            New inputs $(m, d_in)$.
        n_samples
            Number of draws.
        random_state
            As that of the estimator.

        Returns
        -------
        samples
            ``(m, n_samples)``, or ``(m, d_out, n_samples)`` where $y$ had columns.

        Raises
        ------
        TypeError, ValueError
            If `n_samples` is not an integer of at least 1.
        """
        at_least(1, n_samples=n_samples)
        random = random_of(random_state)
        if outputs := self._each(lambda model: model.sample_y(X, n_samples, random)):
            return np.stack(outputs, axis=1)
        if self._averaged:
            models, numbers = zip(*self._averaged)
            of_each = zip(models, random.multinomial(n_samples, np.array(numbers) / NUM_AVERAGED))
            parts = [model.sample_y(X, int(k), random) for model, k in of_each if k]
            found = np.concatenate(parts, axis=-1)
            return found[..., random.permutation(n_samples)]
        inputs = self._inputs(X)
        if self.likelihood != "gaussian":
            f, noise_std = self._over_draws(_draws.network_output, inputs)
            chosen = random.permutation(np.arange(n_samples) % len(f))
            law = _likelihoods.law(self.likelihood, f[chosen].astype(np.float64), noise_std[chosen], self._y)
            draws = law.rvs(f[chosen].shape, random_state=random)[:, :, None]
        elif self._process is not None:
            draws = self._process.draws(inputs, n_samples, random)
        else:
            num_rounds = -(-n_samples // len(self.positions_))
            seeds = [random.randint(2**31) for _ in range(num_rounds)]
            draw = _draws.draw if self._noise is None else _draws.output
            rounds = [self._over_draws(draw, inputs, seed=seed) for seed in seeds]
            chosen = random.permutation(num_rounds * len(self.positions_))[:n_samples]
            draws = np.concatenate(rounds)[chosen]
            if self._noise is not None:
                std = np.tile(self._noise_stds(inputs, self._noise)[0], (num_rounds, 1))[chosen]
                draws = draws + (std * random.normal(size=std.shape))[:, :, None]
        found = self._target_scaler.mean_ + self._target_scaler.scale_ * draws[:, :, 0].T.astype(np.float64)
        return found if self._is_flat else found[:, None]

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values if self._is_flat else values[..., None]


def _without_noise(priors: dict[str, Any]) -> dict[str, Any]:
    return {name: prior for name, prior in priors.items() if name != "noise_std"}
