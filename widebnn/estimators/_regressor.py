"""Regression: a mixture of Gaussians, one per draw, or the process of infinite width."""

import math
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.base import MultiOutputMixin, RegressorMixin

from widebnn import targets
from widebnn._arrays import real
from widebnn._check import at_least, finite
from widebnn.collectors import predictive_mean
from widebnn.estimators import _draws
from widebnn.estimators._base import BNNEstimator, block_size
from widebnn.estimators._columns import checked, random_of, refuse_fill_values, scaler_of, standardised
from widebnn.estimators._network import SCALES
from widebnn.estimators._process import MAX_LIMIT_ROWS, Process

__all__ = ["BNNRegressor"]


CHAIN_OPTIONS = "num_chains", "num_samples", "thin", "burn_in", "until"


@dataclass(eq=False, repr=False)
class BNNRegressor(MultiOutputMixin, RegressorMixin, BNNEstimator):
    """Regression with a wide Bayesian neural network whose scales the data choose.

    The model is $y = Ψ W + σε$, with inputs and targets that the estimator standardises. The readout $W$ is
    integrated out. The layers below are sampled by `widebnn.samplers.function_space_hmc`, all scales also by
    elliptical slices (`widebnn.samplers.with_scales`). A prediction is a mixture of Gaussians, one per draw.

    Parameters
    ----------
    width
        $d_ℓ$ of a dense network: one number, or one per hidden layer. ``math.inf`` is the limit of infinite
        width, a Gaussian process with the network's kernel at the most probable scales, in float64: no chains
        are run, a fit takes about a second up to 500 rows, and options of chains are refused. It takes up to
        10,000 rows.
    depth
        $L$, the number of hidden layers; not used where `width` gives one number per layer.
    activation
        $ψ$: "gelu", "erf" or "relu".
    features
        In place of those three, a Flax NNX module that maps $(n, d_in)$ to $(n, d_L)$, or a function from
        $d_in$ to such a module. Its scales stay as they are; $σ$ and the readout's scale are learned.
    scales
        By name ("noise_std", "readout_std", "weight_std", "bias_std"), a number to hold a scale there, or a
        `widebnn.targets.LogNormal` as its prior; `SCALES` unless given. They refer to standardised inputs
        and targets.
    num_chains
        Number of chains.
    num_samples
        Draws of each chain, at most.
    thin
        Steps from one draw to the next.
    burn_in
        First steps, which tune the step size and are left out.
    until
        When sampling may end before `num_samples` draws, a `widebnn.stopping.Until`; unless given, at 400
        effective samples and an $R̂$ of at most 1.01, of every scale and of the predictions. Its `names` are
        not used.
    random_state
        Seed, a `numpy.random.Generator`, or anything else that scikit-learn takes for one.
    progress
        Whether to show a progress bar.

    Attributes
    ----------
    scales_
        By name, posterior mean of each scale.
    ess_
        By name, the least effective sample size of each scale and of "predictions", at up to 16 rows of the
        training inputs: what `until` looks at, by `widebnn.diagnostics.convergence`.
    rhat_
        By name, the largest $R̂$ of the same.
    acceptance_rate_
        Mean acceptance rate over all chains and steps after burn-in.
    seconds_
        Wall time of burn-in and sampling, without compilation.
    stopped_
        "converged", or what else ended the run, as in `widebnn.Draws`.
    positions_
        The positions over which predictions are averaged, (draw, coordinate): at most 1,000, evenly spaced.

    Warns
    -----
    ChainWarning
        If the run ended before the chains had converged, or draws do not predict.
    UserWarning
        If the fit is estimated to take more than ten minutes, before it starts.

    Notes
    -----
    Without chains, at ``width=math.inf``, `scales_` are the most probable scales, `seconds_` those of the
    whole fit, and the other attributes are absent.

    Noise has a floor: $σ²$ counts as no less than $4ε tr ΨΨᵀ$, with $ε$ the rounding error, since float32
    loses smaller noise beside the eigenvalues of $ΨΨᵀ$. With outputs of about the size of the targets, $σ$ is
    then at least $7·10⁻⁴ √n$ in their units; tables with more noise than that do not meet it.

    `fit` keeps of each draw what predictions need, the mean of the readout and a root of its covariance: up
    to 256 MiB in all. Where 1,000 draws take more, fewer are kept, and 16 at least.

    The seconds of `until` are those of burn-in and draws. Compilation, some ten seconds for the first fit of
    a shape, and the scales of the limit, about a second, come on top.

    Rows have no weights: `fit` takes no `sample_weight`. A row that counts $k$ times can be given $k$ times.
    Predictions are arrays of NumPy; `set_output` is for transformers alone.
    Inputs further than $10¹²$ standard deviations from the training data are refused: float32 could not hold
    what a network makes of them.
    """

    @property
    def _names(self):
        return tuple(SCALES)

    def fit(self, X: Any, y: Any) -> "BNNRegressor":
        """Sample the posterior.

        Parameters
        ----------
        X
            Inputs $(n, d_in)$, $n ≥ 2$: an array, a list or a data frame of numbers.
        y
            Targets $(n,)$ or $(n, d_out)$.

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
        X, y = checked(self, X, y, multi_output=True, y_numeric=True, ensure_min_samples=2)
        self._check_options()
        self._is_flat = y.ndim == 1
        y = y.reshape(len(y), -1).astype(np.float64)
        refuse_fill_values(X=X)
        refuse_fill_values(y=y)
        self._scaler, self._target_scaler = scaler_of(X), scaler_of(y)
        self._x, self._y = standardised(self._scaler, X=X), standardised(self._target_scaler, y=y)
        self._num_outputs = y.shape[1]
        self._process = None
        if self._is_limit:
            self._fit_limit()
        else:
            self._sample()
        return self

    def _check_options(self):
        super()._check_options()
        if not self._is_limit:
            return
        given = [name for name in CHAIN_OPTIONS if getattr(self, name) != getattr(type(self), name)]
        if given or self.features is not None:
            raise ValueError(
                f"width must be finite where {given[0] if given else 'features'} is given: at width=math.inf "
                "there is a Gaussian process, without chains, of a dense network"
            )

    def _fit_limit(self) -> None:
        """The Gaussian process at the most probable scales."""
        start = time.perf_counter()
        if len(self._x) > MAX_LIMIT_ROWS:
            raise ValueError(
                f"width must be finite for more than {MAX_LIMIT_ROWS:,} rows, whose kernel takes memory for "
                f"their square; got {len(self._x):,} rows"
            )
        self._posterior = self._built()
        self._process, found = Process.of(self._posterior)
        self.scales_ = self._scales[1] | found
        self.seconds_ = time.perf_counter() - start

    def _target(self, bnn):
        return targets.marginal(bnn, self._x, self._y, block_size=block_size(bnn, self._x, self.num_chains))

    def _watched(self, rows):
        return predictive_mean(rows)

    def _mixture(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Means and deviations of y* per draw, (draw, m, d_out), in the units of y."""
        process = self._process
        moments = partial(self._over_draws, _draws.moments) if process is None else process.moments
        mean, variance = self._over_rows(moments, X)
        centre, unit = self._target_scaler.mean_, self._target_scaler.scale_
        std = np.sqrt(variance.astype(np.float64))[:, :, None]
        return centre + unit * mean.astype(np.float64), unit * std

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
        means, stds = self._mixture(X)
        mean = self._shaped(means.mean(axis=0))
        if return_std:
            return mean, self._shaped(np.sqrt((stds**2).mean(axis=0) + means.var(axis=0)))
        if return_cov:
            return mean, self._covariance(X, means)
        return mean

    def _covariance(self, X: Any, means: np.ndarray) -> np.ndarray:
        inputs = self._inputs(X)
        within = (
            self._over_draws(_draws.covariance, inputs)
            if self._process is None
            else self._process.covariance(inputs)[None]
        )
        within = within.mean(axis=0)[:, :, None] * self._target_scaler.scale_**2
        centred = means - means.mean(axis=0)
        between = np.einsum("sij,skj->ikj", centred, centred) / len(means)
        return (within + between)[:, :, 0] if self._is_flat else within + between

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Central interval of an observation: the $(1 ∓ level)/2$ quantiles of the mixture.

        Parameters
        ----------
        X
            New inputs $(m, d_in)$.
        level
            Probability in (0, 1).

        Returns
        -------
        lower, upper
            Shaped like the mean.

        Raises
        ------
        ValueError
            If `level` lies outside (0, 1).
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie in (0, 1); got {level}")
        means, stds = self._mixture(X)
        lower, upper = (_draws.quantile(q, means, stds) for q in ((1 - level) / 2, (1 + level) / 2))
        return self._shaped(lower), self._shaped(upper)

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
        means, stds = self._mixture(X)
        if y.size != means[0].size or y.shape[:1] != means[0].shape[:1]:
            raise ValueError(f"y must have shape {self._shaped(means[0]).shape}; got {y.shape}")
        log_p = norm.logpdf(y.reshape(means[0].shape), means, stds).sum(axis=2)
        return np.asarray(logsumexp(log_p, axis=0)) - math.log(len(means))

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
        inputs, random = self._inputs(X), random_of(random_state)

        if self._process is not None:
            draws = self._process.draws(inputs, n_samples, random)
        else:
            num_rounds = -(-n_samples // len(self.positions_))
            seeds = [random.randint(2**31) for _ in range(num_rounds)]
            rounds = [self._over_draws(_draws.draw, inputs, seed=seed) for seed in seeds]
            chosen = random.permutation(num_rounds * len(self.positions_))[:n_samples]
            draws = np.concatenate(rounds)[chosen]
        draws = self._target_scaler.mean_ + self._target_scaler.scale_ * draws.astype(np.float64)
        return draws[:, :, 0].T if self._is_flat else np.moveaxis(draws, 0, -1)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self._is_flat else values
