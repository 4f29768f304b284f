"""Regression: a mixture of Gaussians, one per draw, or the process of infinite width."""

import functools
import math
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from widebnn import targets
from widebnn._arrays import real
from widebnn._check import at_least, finite, one_of
from widebnn.estimators import _draws, _likelihoods
from widebnn.estimators._base import BNNEstimator, block_size
from widebnn.estimators._columns import checked, scaler_of, standardised
from widebnn.estimators._engine import Moments
from widebnn.estimators._network import SCALES
from widebnn.estimators._process import LEAST_GAIN, Process
from widebnn.nngp import EvidenceSlope, evidence_slope

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


UNITS = 64
"""Of the finite network that `width="auto"` may choose.

128 take two to four times as long; their NLL is .007 higher on Friedman's third table (300 rows), .008 on his
first (100 rows) and .04 on Boston, one split each.
"""
MAX_ROWS, MAX_UNITS = 512, 2**15
"""Rows, evenly spaced, and units of which c₁ is found."""
NUM_OBSERVATIONS = 10
"""Of each draw, whose quantiles are those of a mixture that is not of Gaussians."""
NUM_RELEVANCES = 1_000
"""Draws that tell of the relevances."""


@dataclass(eq=False, repr=False)
class BNNRegressor(RegressorMixin, BNNEstimator):
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
        "auto" asks the evidence which of both it is to be; see the notes.
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
        standardised inputs and targets. Where "weight_std" is given, it is the scale of all columns.
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
        $|aᵀx| ≤ 3$, at infinite width. Where the noise of each row is known, give it to `fit`.
    likelihood
        "gaussian"; "student_t" for outliers, $y = f + σt$ with $t$ of 4 degrees of freedom; "poisson" for
        counts, of mean $exp(b + f)$ with $b$ the logarithm of their mean. The last two need a finite `width`;
        the readout is sampled with the layers below, and predictions are mixtures of these distributions.
    random_state
        Seed, or anything else that scikit-learn takes for one.
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
        Of one hidden layer: what `widebnn.nngp.evidence_slope` finds at the limit's most probable scales, on
        up to 512 rows. A $c₁$ that is large and positive says that the data prefer a finite width; a negative
        or small one, that the limit is the answer.
    log_evidence_, log_evidence_error_
        Where particles ran, $log p(y | X)$ of the standardised targets, all scales but the relevances
        integrated out, and its standard error over the islands, in nats. At infinite width Laplace's
        approximation, without an error.
    noise_coefficients_
        Where noise="per input", $a$, one number per standardised input.
    ess_
        A dict of the least effective sample size of each scale and of "predictions", mean and deviation of an
        observation at up to 16 rows of the training inputs: what `until` looks at, by
        `widebnn.diagnostics.convergence`. Empty where the width is infinite.
    rhat_
        A dict of the largest $R̂$ of the same.
    acceptance_rate_
        Mean acceptance rate over all chains and steps after burn-in.
    seconds_
        Wall time of burn-in and sampling, without compilation; at infinite width, of the whole fit.
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
    (1995); then $d$ is the width. Where $c₁$ is not known, with `features`, several hidden layers or another
    `likelihood`, the width is $d$ too. Where columns that have scales of their own outnumber the rows, or the
    noise varies, it is the limit. `progress` says what was chosen.

    **Engine.** From the limit's Gaussian for the scales, and the prior for the weights, particles go to the
    posterior where the way is short: where the potential has a deviation of at most 10 nats over 16 draws
    there. Else, or where no limit is known or `until` is given, there are chains. Both move weights and
    scales together by `widebnn.samplers.function_space_hmc`.

    **End.** A fit ends when predictions stand: when the Monte Carlo error of the ends of the 90 % interval is
    at most 5 % of its half width, in the mean square over 16 rows, as chains or islands disagree, and as the
    first halves of all of them disagree with the second. Particles are doubled until then, up to 128 of each
    island. Scales compensate for one another, and their $R̂$ may then be large: `rhat_` reports it, and
    `until` asks for more.

    **Relevances.** The scale of column $j$ is $log σ_W,j = log σ_W + τ z_j$ with $z ~ N(0, I)$ (automatic
    relevance determination, MacKay 1994, Neal 1996). Laplace's evidence of the limit chooses $τ$ among 0 (one
    scale for all), $½$ and 1; another than 0 has to gain 5 nats. A finite network has the most probable
    factors $exp(τ z_j)$ relative to one scale, which is sampled; where columns outnumber up to 512 rows, they
    would be too sure of themselves, and it has one scale for all. In the limit, predictions then average over
    8 draws of the scales: up to 512 rows by function-space HMC from Laplace's Gaussian, up to 1,500 rows from
    that Gaussian itself; above, and where columns outnumber more than 512 rows, the most probable scales
    remain.

    **Many rows.** At infinite width the scales suit up to 1,024 rows, evenly spaced, and predictions are
    given all rows. Of more than 512 rows, those are factorised that stand for all (Titsias 2009), as many as
    it takes until the log evidence loses about half a nat: 620 of 5,000 rows of Friedman's first table with
    10 columns. Where half of the rows or 2,000 of them do not suffice, all are factorised, up to 10,000; of
    more, 2,000 are, and what these leave of the prior's variance stays in the deviations of predictions.

    Inputs are in units of their deviation, those of two values in units of their distance. A column of a
    pandas frame whose dtype is "category" becomes an indicator of each category, all with one relevance.
    Inputs further than $10¹²$ standard deviations from the training data are refused.

    With noise="per input", $a ~ N(0, I/d_in)$ is found with the scales of the limit of infinite width, and
    averaged over with those of the columns. Where the noise is known, predictions are of $f$, as those of
    `GaussianProcessRegressor` with an array `alpha` are: that of a new observation comes on top, as in
    ``np.hypot(std, noise_std)``.

    Noise has a floor: $σ²$ counts as no less than $4ε tr ΨΨᵀ$, with $ε$ the rounding error, since float32
    loses smaller noise beside the eigenvalues of $ΨΨᵀ$. With outputs of about the size of the targets, $σ$ is
    then at least $7·10⁻⁴ √n$ in their units, and more where the readout's scale is large. `scales_` says the
    $σ$ that results. In float64, after ``jax.config.update("jax_enable_x64", True)`` or at infinite width,
    the floor is $4·10⁻⁵$ of that.

    `fit` keeps of each draw what predictions need, the mean of the readout and a root of its covariance: up
    to 256 MiB in all. Where 1,000 draws take more, fewer are kept, and 16 at least. The seconds of `until`
    are those of burn-in and draws; compilation and the limit come on top.

    Several outputs take one fit each, `sklearn.multioutput.MultiOutputRegressor`, with intervals of its
    `estimators_`. Rows have no weights: `fit` takes no `sample_weight`. A row that counts $k$ times can be
    given $k$ times; one that is more precise has a smaller `noise_std`.
    """

    width: Any = "auto"
    noise: str = field(default="constant", kw_only=True)
    likelihood: str = field(default="gaussian", kw_only=True)

    @property
    def _names(self):
        return tuple(name for name in SCALES if name != "noise_std" or self.likelihood != "poisson")

    @property
    def _has_limit(self):
        return self.features is None and self.likelihood == "gaussian"

    def fit(self, X: Any, y: Any, noise_std: Any = None) -> "BNNRegressor":
        """Sample the posterior.

        Parameters
        ----------
        X
            Inputs $(n, d_in)$, $n ≥ 2$: an array, a list, or a data frame of numbers and, in pandas,
            categories.
        y
            Targets $(n,)$.
        noise_std
            Known standard deviations of the noise of each row, $(n,)$, in the units of $y$; found from the
            data unless given.

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
        X, y = checked(self, X, y, y_numeric=True, ensure_min_samples=2)
        self._check_options()
        self._check_width(noise_std is not None)
        _likelihoods.check_observations(self.likelihood, y)
        noise = None if noise_std is None else self._known_noise(noise_std, y)
        self._set_inputs(X)
        y = y[:, None]
        self._target_scaler = scaler_of(False, y=y)
        _likelihoods.centre(self.likelihood, self._target_scaler, y)
        self._y, self._num_outputs = standardised(self._target_scaler, y=y), 1
        self._process = self._limit = None
        self._factors = np.ones(self._x.shape[1])
        start = time.perf_counter()
        if self._has_limit:
            self._find_limit(noise)
        self.width_ = self._chosen_width(noise is not None or self.noise != "constant")
        if self.width_ != math.inf:
            self._fit_network()
            return self
        self._process: Any = self._limit
        _ = self._process.members
        known = {} if noise is None else {"noise_std": self._process.evidence.units}
        self.scales_ = self._process.scales()[0] | self._scales[1] | known
        self.log_evidence_, self.log_evidence_error_ = self._process.log_evidence, math.nan
        self.stopped_, self.ess_, self.rhat_ = "limit", {}, {}
        self.seconds_ = time.perf_counter() - start
        return self

    def _check_width(self, is_noise_known: bool) -> None:
        one_of(_likelihoods.LIKELIHOODS, likelihood=self.likelihood)
        one_of(("constant", "per input"), noise=self.noise)
        if not is_noise_known and self.noise == "constant":
            return
        if not self._has_limit or (self.width != "auto" and self.width != math.inf):
            raise ValueError(
                "width must be math.inf or 'auto', likelihood 'gaussian' and features None where noise varies"
            )
        if "noise_std" in (self.scales or {}) or (is_noise_known and self.noise != "constant"):
            raise ValueError(
                "noise_std in fit, noise='per input' and noise_std in scales each say what the noise is: one "
                "of them must be given at most"
            )

    def _known_noise(self, noise_std: Any, y: np.ndarray) -> np.ndarray:
        """In the units of y; it is no scale that is learned."""
        given = np.asarray(finite(noise_std=real(noise_std=noise_std)), np.float64)
        if given.shape != y.shape:
            raise ValueError(f"noise_std must have the shape of y, {y.shape}; got {given.shape}")
        if not (given > 0).all():
            raise ValueError(f"noise_std must be above 0; got {given.min():g}")
        learned, known = self._scales
        self._scales = {name: prior for name, prior in learned.items() if name != "noise_std"}, known
        return given

    def _find_limit(self, noise_std: np.ndarray | None) -> None:
        """The limit, whose scales and evidence say what comes next."""
        self.width_ = math.inf
        units = None if noise_std is None else noise_std / self._target_scaler.scale_
        groups = None
        if "weight_std" not in (self.scales or {}):
            groups = self._categories.groups(self.n_features_in_)
        limit = Process.of(self._network, self._x, self._y, *self._scales, groups, self.noise, units)
        self._limit, self.relevances_ = limit, self._relevances(limit)
        if self.noise == "per input":
            self.noise_coefficients_ = np.asarray(limit.setting.coefficients(limit.mode), np.float64)

    def _fit_network(self) -> None:
        """The posterior of a finite network; its columns have the limit's most probable factors.

        Where columns outnumber the rows, these factors are too sure of themselves, and one scale serves all.
        """
        if self._limit is not None:
            if self._limit.has_few_rows:
                self._limit = Process.of(self._network._replace(width=1), self._x, self._y, *self._scales)
            self._factors = self._limit.scales()[1]
            self._scales = self._limit.setting.priors, self._scales[1]
        self._sample()

    def _chosen_width(self, noise_varies: bool) -> Any:
        """What is given, or what the sign and size of c₁ say; see the notes of the class."""
        if self.width != "auto":
            return self.width
        if noise_varies or (self._limit is not None and self._limit.has_few_rows):
            return math.inf
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
            return super()._limiting_scales(posterior)
        return self._limit.gaussian(jax.tree.leaves(posterior.template)[0].dtype)

    def _over_draws(self, function, inputs, seed=0):
        return super()._over_draws(function, inputs * self._factors, seed)

    @functools.cached_property
    def evidence_slope_(self) -> EvidenceSlope:
        """$log Z_∞$ and $c₁$ at the limit's most probable scales, by `widebnn.nngp.evidence_slope`."""
        check_is_fitted(self, "_x")
        if self._limit is None or self._limit.is_noise_known or self.noise != "constant":
            raise AttributeError("evidence_slope_ is there without features, where the noise is constant")
        bnn, num_data = self._limit.setting(jnp.asarray(self._limit.mode), self._x), len(self._x)
        rows = np.linspace(0, num_data - 1, min(num_data, MAX_ROWS)).astype(int)
        return evidence_slope(bnn, self._x[rows], self._y[rows], max_units=MAX_UNITS)

    def _relevances(self, process: Process) -> Relevances:
        first = np.unique(self._categories.groups(self.n_features_in_), return_index=True)[1]
        random = np.random.default_rng(0)
        number = NUM_RELEVANCES if process.setting.tau else 2
        steps = random.normal(size=(number, len(process.mode))) @ process.root.T
        draws = np.array([process.scales(process.mode + step)[1] for step in steps])[:, first]
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(first))])
        return Relevances([str(name) for name in names], draws.mean(axis=0), draws.std(axis=0), process.gain)

    def _target(self, bnn):
        x = self._x * self._factors
        if self.likelihood != "gaussian":
            return _likelihoods.target(self.likelihood, bnn, x, self._y)
        return targets.marginal(bnn, x, self._y, block_size=block_size(bnn, x, self.num_chains))

    def _watched(self, rows):
        return Moments(rows * self._factors)

    def _law(self, inputs: np.ndarray) -> Any:
        """Distributions of an observation, per draw (draw, m), in the units of y."""
        centre, unit = self._target_scaler.mean_, self._target_scaler.scale_
        if self.likelihood != "gaussian":
            f, noise_std = self._over_draws(_draws.network_output, inputs)
            return _likelihoods.law(self.likelihood, f.astype(np.float64), noise_std, self._y, centre, unit)
        if self._process is None:
            mean, variance = self._over_draws(_draws.moments, inputs)
        else:
            mean, variance = self._process.moments(inputs)
        mean, variance = mean[:, :, 0].astype(np.float64), variance.astype(np.float64)
        return stats.norm(centre + unit * mean, unit * np.sqrt(variance))

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of an observation at new inputs, and its standard deviation.

        It includes the noise $σ$, as that of `GaussianProcessRegressor` with a `WhiteKernel` does.

        Parameters
        ----------
        X
            New inputs $(m, d_in)$.
        return_std
            Whether to return the standard deviation too.

        Returns
        -------
        mean
            $(m,)$; with `return_std`, a tuple of it and the standard deviation.
        """

        def moments(inputs: np.ndarray) -> np.ndarray:
            law = self._law(inputs)
            mean, std = law.mean(), law.std()
            return np.stack([mean.mean(axis=0), np.sqrt((std**2).mean(axis=0) + mean.var(axis=0))], axis=1)

        mean, std = self._over_rows(moments, X).T
        return (mean, std) if return_std else mean

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
        if levels.ndim > 1 or levels.size == 0 or not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"level must be a number in (0, 1), or a sequence of them; got {level}")
        ends = np.stack([(1 - levels.ravel()) / 2, (1 + levels.ravel()) / 2])

        def quantiles(inputs: np.ndarray) -> np.ndarray:
            law = self._law(inputs)
            if self.likelihood == "gaussian":
                mixture = law.mean(), law.std()
                return np.stack([_draws.quantile(q, *mixture) for q in ends.ravel()], axis=1)
            draws = law.rvs((NUM_OBSERVATIONS, *law.mean().shape), random_state=0)
            return np.quantile(draws, ends.ravel(), axis=(0, 1)).T

        lower, upper = self._over_rows(quantiles, X).T.reshape(2, *levels.shape, -1)
        return lower, upper

    def log_predictive_density(self, X: Any, y: Any) -> np.ndarray:
        """$log p(y* | D)$ of observations at new inputs, $(m,)$, in nats; minus their mean is the NLL.

        Parameters
        ----------
        X
            New inputs $(m, d_in)$.
        y
            Observations there, $(m,)$.

        Raises
        ------
        TypeError
            If `y` holds other things than real numbers.
        ValueError
            If `y` does not have one entry per input, or is not finite.
        """
        check_is_fitted(self)
        _, y = checked(self, X, y, reset=False, y_numeric=True)

        def log_mean(inputs: np.ndarray, y: np.ndarray) -> np.ndarray:
            law = self._law(inputs)
            log_density = law.logpmf if self.likelihood == "poisson" else law.logpdf
            return np.asarray(logsumexp(each := log_density(y), axis=0)) - math.log(len(each))

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
            ``(m, n_samples)``.

        Raises
        ------
        TypeError, ValueError
            If `n_samples` is not an integer of at least 1.
        """
        at_least(1, n_samples=n_samples)
        random = check_random_state(random_state)
        inputs = self._inputs(X)
        centre, unit = self._target_scaler.mean_, self._target_scaler.scale_
        if self._process is not None:
            return centre + unit * self._process.draws(inputs, n_samples, random).T
        rounds = range(-(-n_samples // len(self.positions_)))
        if self.likelihood == "gaussian":
            seeds = [random.randint(2**31) for _ in rounds]
            parts = [self._over_draws(_draws.draw, inputs, seed=seed)[:, :, 0] for seed in seeds]
            draws = centre + unit * np.concatenate(parts).astype(np.float64)
        else:
            law = self._law(inputs)
            draws = np.concatenate([law.rvs(law.mean().shape, random_state=random) for _ in rounds])
        return draws[random.permutation(len(draws))[:n_samples]].T
