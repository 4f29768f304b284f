"""From arrays to intervals: Bayesian neural networks behind scikit-learn's interface.

All that these classes do is a few lines of the package: standardise the data, put a network and the priors of
its scales into `widebnn.targets.scaled`, start at the scales of the infinitely wide network where these are
known, run `widebnn.sample` with `widebnn.samplers.with_scales`, and average predictions over the draws. Of an
infinitely wide network the Gaussian process at the most probable scales takes the place of the draws.
"""

import contextlib
import math
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from scipy.special import logsumexp, ndtr
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from widebnn import samplers, targets
from widebnn._arrays import present, real, undated
from widebnn._check import at_least, finite, one_of, positive
from widebnn._end import FIRST_LOOK, MIN_DRAWS
from widebnn._estimators_limit import Process
from widebnn._failures import warn
from widebnn._pytree import Static
from widebnn.diagnostics import convergence
from widebnn.models import BNN, FCN
from widebnn.sampling import Draws, sample
from widebnn.stopping import Until
from widebnn.targets import LogNormal

__all__ = ["SCALES", "BNNClassifier", "BNNRegressor"]

SCALES: dict[str, LogNormal] = {
    "noise_std": LogNormal(0.3, 1.0),
    "readout_std": LogNormal(1.0, 0.7),
    "weight_std": LogNormal(math.sqrt(2), 0.7),
    "bias_std": LogNormal(0.5, 0.7),
}
"""Priors of the scales, for inputs and targets of mean 0 and standard deviation 1.

:meta hide-value:
"""

LABEL_NOISE = LogNormal(0.3, 0.3)
"""Prior of σ where targets are labels, which a network can meet exactly: σ² must not go to 0."""

READOUT_BIAS = 0.1
"""σ_b of the readout in units of its σ_W."""
MULTIPLIES = {"weight_std": "kernel", "bias_std": "bias"}
"""The leaves of a dense network that a scale multiplies."""
TARGET_ACCEPTANCE = 0.8
NUM_WATCHED = 16
"""Training rows at which predictions are watched for convergence."""
MAX_POSITIONS = 1_000
"""Draws that are kept for predictions, evenly spaced."""
DRAWS_AT_ONCE = 16
"""By which one program serves any number of them."""
MAX_BYTES = 2**28
"""What is kept of all draws, unless that were fewer than `DRAWS_AT_ONCE` of them."""
MIN_ROWS, MAX_ROWS = 16, 256
"""Rows that are predicted at a time: a power of two, so that few programs serve all."""
MAX_TRIES = 100
"""Draws of a start whose potential is not finite."""
MAX_LIMIT_ROWS = 10_000
"""Rows of an infinitely wide network, whose kernel takes memory for their square."""
BLOCK_ROWS, BLOCK_BYTES = 4_096, 2**30
"""Rows that go through the network at a time where Ψ of all of them, in all chains, takes more."""
NUM_COPIES = 8
"""Arrays as large as Ψ that a gradient holds."""
KICKS, SLICES = 12, 10
"""Gradients and potentials of a step, as a guess of the seconds of a fit before it starts takes them."""
LONG = 600.0
"""Seconds from which a fit is announced."""
FARTHEST = 1e12
"""Standard deviations from the training data, whose squares float32 holds in sums over any layer."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
"""Of Gauss–Hermite quadrature."""

CHAIN_OPTIONS = "num_chains", "num_samples", "thin", "burn_in", "until"

Function = Callable[..., Any]
"""Function of a posterior, a position, what is kept of it, inputs and a key."""


class _Fitted:
    """What `fit` finds out."""

    n_features_in_: int
    _scaler: Any
    _target_scaler: Any
    _labels: Any
    _num_outputs: int
    _process: "Process | None" = None
    _kept: Any
    _x: np.ndarray
    _y: np.ndarray
    _posterior: targets.Scaled
    _scales: tuple[dict[str, LogNormal], dict[str, float]]


@dataclass(eq=False, repr=False)
class _BNNEstimator(_Fitted, BaseEstimator):
    """What regression and classification share: the network, its chains, and what is said of them."""

    width: int | float | Sequence[int] = 128
    depth: int = 1
    _: KW_ONLY
    activation: str = "gelu"
    features: Any = None
    scales: Mapping[str, Any] | None = None
    num_chains: int = 4
    num_samples: int = 1_000
    thin: int = 2
    burn_in: int = 100
    until: Until | None = None
    random_state: Any = None
    progress: bool = False

    priors: ClassVar[Mapping[str, LogNormal]] = SCALES
    """Of the scales that are not given."""

    @property
    @abstractmethod
    def _names(self) -> tuple[str, ...]:
        """Names of the scales."""

    @abstractmethod
    def _target(self, bnn: BNN) -> targets.NetworkTarget | Any:
        """The posterior given the scales of a network."""

    @abstractmethod
    def _watched(self, posterior: targets.Scaled, rows: Any) -> Callable[..., Any]:
        """The prediction that is watched for convergence."""

    def _built(self) -> targets.Scaled:
        """The posterior of weights and scales."""
        learned, known = self._scales
        width: Any = 1 if self._is_limit else self.width
        network = _Network(self.features, width, self.depth, self.activation, self._num_outputs)
        medians = {name: scale.median for name, scale in learned.items()}
        target = self._target(network.bnn(self.n_features_in_, **known | medians))
        make = Partial(_at_scales, Static((network, self.n_features_in_)), target, known)
        return targets.Scaled(make, learned)

    @property
    def _is_limit(self) -> bool:
        return np.ndim(self.width) == 0 and self.width == math.inf

    def _check_options(self) -> None:
        at_least(2, num_chains=self.num_chains)
        at_least(MIN_DRAWS, num_samples=self.num_samples)
        at_least(1, thin=self.thin)
        at_least(1, burn_in=self.burn_in)
        if self.until is not None and not isinstance(self.until, Until):
            raise TypeError(f"until must be a widebnn.Until; got {self.until!r}")
        names = [name for name in self._names if self.features is None or name in targets.READOUT_SCALES]
        given = {} if self.scales is None else dict(self.scales)
        for name, scale in given.items():
            one_of(names, scales=name)
            if not isinstance(scale, LogNormal):
                positive(**{f"scales[{name!r}]": scale})
        both = {name: given.get(name, self.priors[name]) for name in names}
        learned = {name: scale for name, scale in both.items() if isinstance(scale, LogNormal)}
        self._scales = learned, {name: scale for name, scale in both.items() if name not in learned}

    def _sample(self) -> None:
        """Draw weights and scales; keep positions, and what tells of convergence."""
        posterior = self._posterior = self._built()
        seed = _random(self.random_state).randint(np.iinfo(np.int32).max)
        limit = None
        multiplies = {name: leaf for name, leaf in MULTIPLIES.items() if name in posterior.priors}
        if posterior.priors and self.features is None and posterior.has_exact_scales:
            with contextlib.suppress(np.linalg.LinAlgError):  # without it, scales start at their medians
                limit = posterior.limiting_scales()
        _tell_if_long(self, posterior)
        run_key, initial = _starts(posterior, jax.random.key(seed), limit, self.num_chains)
        move = samplers.function_space_hmc(0.1, jitter=0.2)
        sampler = samplers.with_scales(move, limit, multiplies)
        rows = self._x[:: -(-len(self._x) // NUM_WATCHED)]
        watched = {name: posterior.scale(name) for name in posterior.priors}
        watched["predictions"] = self._watched(posterior, rows)
        draws = sample(
            run_key,
            posterior,
            samplers.tuned(sampler, TARGET_ACCEPTANCE, math.pi / 2),
            num_samples=self.num_samples,
            thin=self.thin,
            burn_in=self.burn_in,
            num_chains=self.num_chains,
            until=replace(Until() if self.until is None else self.until, names=list(watched)),
            initial=initial,
            collect=watched | {"positions": _flat},
            progress=self.progress,
        )
        self._keep(draws, watched)

    def _keep(self, draws: Draws, watched: Mapping[str, Any]) -> None:
        # Where a scale is held so low that float32 cannot tell K̂ from singular, a draw may not predict.
        predicts = np.isfinite(draws["predictions"]).all(axis=tuple(range(2, draws["predictions"].ndim)))
        positions = draws["positions"][predicts]
        if len(positions) < predicts.size:
            lost = predicts.size - len(positions)
            warn(f"{lost:,} of {predicts.size:,} draws do not predict and are left out")
        if not len(positions):
            raise FloatingPointError("no draw predicts: hold the scales in a narrower range by `scales`")
        self._keep_positions(positions)
        self.acceptance_rate_, self.seconds_, self.stopped_ = (
            draws.acceptance_rate,
            draws.seconds,
            draws.stopped,
        )
        self.ess_, self.rhat_ = dict.fromkeys(watched, 0.0), dict.fromkeys(watched, math.inf)
        if (made := draws["predictions"].shape[1]) < MIN_DRAWS:
            warn(f"{made} draws of each chain are too few to tell how far the chains have converged")
        for name in watched:
            if made >= MIN_DRAWS and np.isfinite(draws[name]).all():
                found = convergence(draws[name])
                self.ess_[name] = float(np.nan_to_num(found.ess.min()))
                self.rhat_[name] = float(np.nan_to_num(found.rhat.max(), nan=math.inf))
        learned, known = self._scales
        self.scales_ = known | {name: float(draws[name].mean()) for name in learned}

    def _keep_positions(self, positions: np.ndarray) -> None:
        """Of as many draws as memory is meant for, what predictions need."""
        one = jax.eval_shape(_kept, self._posterior, positions[:1])
        size = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(one))
        most = max(MAX_BYTES // size // DRAWS_AT_ONCE, 1) * DRAWS_AT_ONCE
        number = min(most, MAX_POSITIONS, len(positions))
        chosen = np.linspace(0, len(positions) - 1, number).astype(int)
        self.positions_ = positions[chosen]
        padded = np.concatenate([self.positions_, np.repeat(positions[-1:], -number % DRAWS_AT_ONCE, axis=0)])
        self._kept = [_kept(self._posterior, part) for part in np.split(padded, len(padded) // DRAWS_AT_ONCE)]

    def _over_draws(self, function: Function, inputs: np.ndarray, seed: int = 0) -> Any:
        """`function` of the posterior, what is kept of a draw, inputs and a key, leaves (draw, ...)."""
        key = jax.random.key(seed)
        parts = [
            jax.device_get(_at_draws(function, self._posterior, kept, key, np.int32(i), inputs))
            for i, kept in enumerate(self._kept)
        ]
        number = len(self.positions_)
        return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:number], *parts)

    def _over_rows(self, of_batch: Callable[[np.ndarray], Any], X: Any) -> Any:
        """Where rows know nothing of one another, in batches of them, leaves (draw, m, ...)."""
        inputs = self._inputs(X)
        size = min(max(MIN_ROWS, 2 ** (len(inputs) - 1).bit_length()), MAX_ROWS)
        padded = np.concatenate([inputs, np.repeat(inputs[-1:], -len(inputs) % size, axis=0)])
        parts = [of_batch(batch) for batch in np.split(padded, len(padded) // size)]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1)[:, : len(inputs)], *parts)

    def _inputs(self, X: Any) -> np.ndarray:
        """Standardised."""
        check_is_fitted(self)
        return _standardised(self._scaler, X=_checked(self, X, reset=False))


@dataclass(eq=False, repr=False)
class BNNRegressor(MultiOutputMixin, RegressorMixin, _BNNEstimator):
    """Regression with a wide Bayesian neural network whose scales the data choose.

    The model is $y = Ψ W + σε$, with inputs and targets that the estimator standardises. The readout $W$ is
    integrated out. The layers below are sampled by `widebnn.samplers.function_space_hmc`, all scales by
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
        X, y = _checked(self, X, y, multi_output=True, y_numeric=True, ensure_min_samples=2)
        self._check_options()
        self._is_flat = y.ndim == 1
        y = y.reshape(len(y), -1).astype(np.float64)
        _refuse_fill_values(X=X)
        _refuse_fill_values(y=y)
        self._scaler, self._target_scaler = _scaler(X), _scaler(y)
        self._x, self._y = _standardised(self._scaler, X=X), _standardised(self._target_scaler, y=y)
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
        return targets.marginal(bnn, self._x, self._y, block_size=_block_size(bnn, self._x, self.num_chains))

    def _watched(self, posterior, rows):
        return posterior.predictive_mean(rows)

    def _mixture(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Means and deviations of y* per draw, (draw, m, d_out), in the units of y."""
        moments = partial(self._over_draws, _moments) if self._process is None else self._process.moments
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
            self._over_draws(_covariance, inputs)
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
        lower, upper = (_quantile(q, means, stds) for q in ((1 - level) / 2, (1 + level) / 2))
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
        if y.size != means[0].size or len(y) != len(means[0]):
            raise ValueError(f"y must have shape {self._shaped(means[0]).shape}; got {y.shape}")
        log_p = norm.logpdf(y.reshape(means[0].shape), means, stds).sum(axis=2)
        return logsumexp(log_p, axis=0) - math.log(len(means))

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
        inputs, random = self._inputs(X), _random(random_state)

        if self._process is not None:
            draws = self._process.draws(inputs, n_samples, random)
        else:
            num_rounds = -(-n_samples // len(self.positions_))
            rounds = [self._over_draws(_draw, inputs, seed=random.randint(2**31)) for _ in range(num_rounds)]
            chosen = random.permutation(num_rounds * len(self.positions_))[:n_samples]
            draws = np.concatenate(rounds)[chosen]
        draws = self._target_scaler.mean_ + self._target_scaler.scale_ * draws.astype(np.float64)
        return draws[:, :, 0].T if self._is_flat else np.moveaxis(draws, 0, -1)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self._is_flat else values


@dataclass(eq=False, repr=False)
class BNNClassifier(ClassifierMixin, _BNNEstimator):
    """Classification with a wide Bayesian neural network whose scales the data choose.

    Parameters
    ----------
    likelihood
        "softmax": $p(c | x) ∝ exp f_c(x)$, where the weights themselves are sampled. "gaussian": regression
        on one-hot targets minus $1/k$, $k$ the number of classes, as in the papers' experiments, with the
        readout integrated out; the probability of a class is that of its observation being the largest.
    width, depth, activation, features, num_chains, num_samples, thin, burn_in, until
        As in `BNNRegressor`, but `width` is finite.
    scales
        As in `BNNRegressor`, but `priors` unless given; "noise_std" belongs to "gaussian" alone.
    random_state, progress
        As in `BNNRegressor`.

    Attributes
    ----------
    classes_
        Labels, sorted.
    scales_, ess_, rhat_, acceptance_rate_, seconds_, stopped_, positions_
        As in `BNNRegressor`.

    Warns
    -----
    ChainWarning
        If the run ended before the chains had converged.
    """

    likelihood: str = field(default="softmax", kw_only=True)

    priors = SCALES | {"noise_std": LABEL_NOISE}

    @property
    def _names(self):
        return tuple(name for name in SCALES if name != "noise_std" or self.likelihood == "gaussian")

    def fit(self, X: Any, y: Any) -> "BNNClassifier":
        """Sample the posterior.

        Parameters
        ----------
        X
            Inputs $(n, d_in)$: an array, a list or a data frame of numbers.
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
        one_of(("softmax", "gaussian"), likelihood=self.likelihood)
        if self._is_limit:
            raise ValueError(
                "width must be finite: BNNClassifier has no limit of infinite width; BNNRegressor does"
            )
        X, y = _checked(self, X, y)
        check_classification_targets(y)
        self._check_options()
        self._labels = LabelEncoder().fit(y)
        self.classes_ = self._labels.classes_
        self._num_outputs = len(self.classes_)
        if self._num_outputs < 2:
            raise ValueError(f"y must hold at least two classes; got one class, {self.classes_[0]}")
        _refuse_fill_values(X=X)
        self._scaler = _scaler(X)
        self._x, self._y = _standardised(self._scaler, X=X), self._labels.transform(y)
        self._sample()
        return self

    def _target(self, bnn):
        if self.likelihood == "softmax":
            return targets.categorical(bnn, self._x, self._y, map="identity")
        onehot = np.eye(self._num_outputs)[self._y]
        block_size = _block_size(bnn, self._x, self.num_chains)
        return targets.marginal(bnn, self._x, onehot - 1 / self._num_outputs, block_size=block_size)

    def _watched(self, posterior, rows):
        if self.likelihood == "softmax":
            return posterior.predictive_probabilities(rows)
        return posterior.predictive_mean(rows)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the $k$ classes, $(m, k)$, in the order of `classes_`."""
        probabilities = _softmax_probabilities if self.likelihood == "softmax" else _largest_probabilities
        p = self._over_rows(partial(self._over_draws, probabilities), X).astype(np.float64).mean(axis=0)
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each input, $(m,)$."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


class _Network(NamedTuple):
    """What the scales are the scales of: the options of an estimator that make its network."""

    features: Any
    width: int | Sequence[int]
    depth: int
    activation: str
    num_outputs: int

    def bnn(self, d_in: int, noise_std: Any = 1.0, readout_std: Any = 1.0, **scales: Any) -> BNN:
        """The network at some scales."""
        readout = {"weight_std": readout_std, "bias_std": READOUT_BIAS * readout_std}
        return BNN(self._below(d_in, scales), self.num_outputs, noise_std, **readout)

    def _below(self, d_in: int, scales: dict[str, Any]) -> Any:
        """The layers below the readout: the user's, or a dense network at these scales."""
        if isinstance(self.features, nnx.Module):
            return self.features
        if callable(self.features):
            return self.features(d_in)
        if self.features is not None:
            raise TypeError(
                f"features must be a flax.nnx.Module or a function from d_in to one; got {self.features!r}"
            )
        depth = self.depth if np.ndim(self.width) == 0 else None
        options = {"activation": self.activation, "rngs": nnx.Rngs(0)} | scales
        return FCN(d_in, self.width, depth, **options)


def _at_scales(network: Static, target: Any, known: dict[str, Any], **scales: Any) -> Any:
    """The posterior at other scales."""
    made, d_in = network.value
    return replace(target, bnn=made.bnn(d_in, **known | scales))


@partial(jax.jit, static_argnames="num_chains")
def _starts(posterior: targets.Scaled, rng_key: Any, limit: Any, num_chains: int) -> Any:
    """The key of a run, and where its chains start."""
    start_key, run_key = jax.random.split(rng_key)

    def draw(key):
        start = posterior.draw_start(key, limit)
        return start, jnp.isfinite(posterior.potential(start))

    def is_open(found):
        return ~found[1] & (found[2] < MAX_TRIES)

    def again(found):
        return *draw(jax.random.fold_in(found[3], found[2])), found[2] + 1, found[3]

    def of_chain(key):
        return jax.lax.while_loop(is_open, again, (*draw(key), jnp.asarray(1), key))[0]

    return run_key, jax.vmap(of_chain)(jax.random.split(start_key, num_chains))


def _block_size(bnn: BNN, x: np.ndarray, num_chains: int) -> int | None:
    """Rows that go through the network at a time; None for all."""
    num_bytes = 4 * bnn.template(x).readout.shape[0] * len(x) * num_chains * NUM_COPIES
    return BLOCK_ROWS if num_bytes > BLOCK_BYTES else None


def _tell_if_long(estimator: _BNNEstimator, posterior: targets.Scaled) -> None:
    """Warn before a fit that will take long: the operations of its first draws by the speed of a product."""
    template, n = posterior.template, len(estimator._x)
    if jax.default_backend() != "cpu":
        return
    sizes = [leaf.shape for leaf in jax.tree.leaves(template.network) if len(leaf.shape) == 2]
    if estimator.features is not None or not sizes:
        return
    p = sizes[-1][-1]
    of_network = sum(math.prod(shape) for shape in sizes)
    of_potential = 2 * n * (of_network + (p * min(n, p) if posterior.has_exact_scales else 0))
    of_eigenvalues = 20 * min(n, p) ** 3 if posterior.has_exact_scales else 0
    num_steps = estimator.burn_in + estimator.thin * min(FIRST_LOOK, estimator.num_samples)
    of_step = (3 * KICKS + SLICES) * of_potential + of_eigenvalues
    operations = num_steps * estimator.num_chains * of_step
    if operations < LONG * 1e9:  # any machine is faster
        return
    one = np.ones((512, 512), np.float32)
    start = time.perf_counter()
    for _ in range(10):
        _ = one @ one
    seconds = operations / (10 * 2 * 512**3) * (time.perf_counter() - start)
    limit = estimator.until.seconds if estimator.until is not None else None
    if seconds > LONG and (limit is None or float(limit) > LONG):
        warnings.warn(
            f"{num_steps:,} steps of {estimator.num_chains} chains, the least that tell of convergence, are "
            f"estimated to take {seconds / 60:,.0f} minutes here, with {n:,} rows at width {p:,}: take a "
            f"smaller width, width=math.inf (up to {MAX_LIMIT_ROWS:,} rows, regression), fewer rows, or "
            "until=widebnn.Until(seconds=...)",
            skip_file_prefixes=(str(Path(__file__).parent),),
        )


@jax.jit
def _kept(posterior: targets.Scaled, positions: Any) -> tuple[Any, Any]:
    """Of each draw its position, and where the readout is integrated out, what predictions need of it."""
    template = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), posterior.template)
    unravel = ravel_pytree(template)[1]

    def of_draw(flat):
        position = unravel(flat)
        target: Any = posterior.at(position)
        if not posterior.has_exact_scales:
            return position, None
        return position, target.readout_posterior(position.network).predictor()

    return jax.lax.map(of_draw, positions)


@partial(jax.jit, static_argnames="function")
def _at_draws(
    function: Function, posterior: targets.Scaled, kept: Any, rng_key: Any, part: Any, inputs: Any
) -> Any:
    keys = jax.random.split(jax.random.fold_in(rng_key, part), len(jax.tree.leaves(kept)[0]))
    dtype = jax.tree.leaves(posterior.template)[0].dtype
    inputs = inputs.astype(dtype)
    return jax.lax.map(lambda draw: function(posterior, *draw[0], inputs, draw[1]), (kept, keys))


def _flat(position: Any) -> Any:
    return ravel_pytree(position)[0]


def _moments(posterior: Any, position: Any, predictor: Any, inputs: Any, key: Any) -> Any:
    psi = posterior.at(position).embedding_at(inputs)(position.network, key)
    return predictor.moments(psi)


def _covariance(posterior: Any, position: Any, predictor: Any, inputs: Any, key: Any) -> Any:
    given = posterior.at(position).predictive_covariance(inputs)(position.network, key)
    return given + predictor.noise * jnp.eye(len(inputs), dtype=given.dtype)


def _draw(posterior: Any, position: Any, predictor: Any, inputs: Any, key: Any) -> Any:
    output_key, noise_key = jax.random.split(key)
    f = posterior.at(position).output(inputs)(position.network, output_key)
    return f + jnp.sqrt(predictor.noise) * jax.random.normal(noise_key, f.shape, f.dtype)


def _softmax_probabilities(posterior: Any, position: Any, predictor: None, inputs: Any, key: Any) -> Any:
    return posterior.at(position).predictive_probabilities(inputs)(position.network, key)


def _largest_probabilities(posterior: Any, position: Any, predictor: Any, inputs: Any, key: Any) -> Any:
    mean, variance = _moments(posterior, position, predictor, inputs, key)
    return _largest(mean / jnp.sqrt(variance)[:, None])


def _random(random_state: Any) -> np.random.RandomState:
    """What scikit-learn makes of a seed, which takes no Generator."""
    if isinstance(random_state, np.random.Generator):
        random_state = np.random.RandomState(random_state.bit_generator)
    return check_random_state(random_state)


def _checked(estimator: Any, *arrays: Any, **options: Any) -> Any:
    """Finite numbers in float64, by scikit-learn's rules, which take dates for numbers."""
    check_y = undated if options.get("y_numeric") else present
    for name, check, array in zip("Xy", (undated, check_y), arrays):
        checked = check(**{name: array})
        if check is undated:
            _refuse_text(name, checked)
    return validate_data(estimator, *arrays, dtype=np.float64, **options)


def _refuse_text(name: str, array: np.ndarray) -> None:
    """Strings that are no numbers; scikit-learn takes those that are."""
    texts = (entry for entry in array.flat if isinstance(entry, str | bytes) and not _is_number(entry))
    if array.dtype.kind in "OSU" and (text := next(texts, None)) is not None:
        raise ValueError(
            f"{name} must hold real numbers; got the text {str(text)!r}: encode categories, and pass "
            "dates as numbers, such as days since the first"
        )


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _refuse_fill_values(**named: np.ndarray) -> None:
    """Values so far from all others of their column that these would be one number beside them."""
    ((name, values),) = named.items()
    with np.errstate(over="ignore", invalid="ignore"):
        distance = np.abs(values - np.median(values, axis=0))
        is_far = distance > distance.max(axis=0) / 2
        others = np.where(is_far, 0, distance).max(axis=0)
        (wrong,) = np.nonzero((others > 0) & (distance.max(axis=0) > FARTHEST * others))
    if len(wrong):
        j = wrong[0]
        raise ValueError(
            f"{name} must lie within {FARTHEST:g} times the reach of most of its column; in column {j} all "
            f"but {is_far[:, j].sum()} entries lie within {others[j]:g} of the median, and one is "
            f"{values[distance[:, j].argmax(), j]:g}: is it a fill value?"
        )


def _scaler(values: np.ndarray) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):  # which `_standardised` tells of
        return StandardScaler().fit(values)


def _standardised(scaler: Any, **named: np.ndarray) -> np.ndarray:
    """In units of the training data, of which float32 holds what a network makes of them."""
    ((name, values),) = named.items()
    with np.errstate(over="ignore", invalid="ignore"):
        units = scaler.transform(values)
    if not np.isfinite(scaler.scale_).all() or not (np.abs(units) <= FARTHEST).all():
        raise ValueError(
            f"{name} must lie within {FARTHEST:g} standard deviations of the training data, since float32 is "
            f"to hold it; got entries from {values.min():g} to {values.max():g}: is one of them a fill value?"
        )
    return units


def _quantile(q: float, means: np.ndarray, stds: np.ndarray) -> np.ndarray:
    """Quantile of a mixture of Gaussians over the first axis, by bisection."""
    edges = means + norm.ppf(q) * stds
    low, high = edges.min(axis=0), edges.max(axis=0)
    for _ in range(50):
        middle = (low + high) / 2
        is_below = ndtr((middle - means) / stds).mean(axis=0) < q
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return (low + high) / 2


def _largest(means: jax.Array) -> jax.Array:
    """P(z_c + ε_c is the largest) for independent ε ~ N(0, 1), (m, k), by Gauss–Hermite quadrature.

    ∫ φ(t) Π_{j ≠ c} Φ(z_c − z_j + t) dt.
    """
    gaps = means[:, :, None] - means[:, None, :]
    k = means.shape[1]
    is_other = 1 - jnp.eye(k, dtype=means.dtype)

    def at(node):
        log_p = jax.scipy.special.log_ndtr(gaps + node)
        return jnp.exp(jnp.sum(is_other[None] * log_p, axis=2))

    nodes, weights = (jnp.asarray(a, means.dtype) for a in (NODES, WEIGHTS / WEIGHTS.sum()))
    return jnp.tensordot(weights, jax.vmap(at)(nodes), axes=1)
