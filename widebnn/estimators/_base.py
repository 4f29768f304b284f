"""What regression and classification share: a posterior of weights and scales, its chains, what is kept."""

import contextlib
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from widebnn import collectors, targets
from widebnn._check import at_least, one_of, positive, positive_each
from widebnn._compile import refuse_fork
from widebnn._failures import warn
from widebnn.diagnostics import convergence
from widebnn.driver import Draws
from widebnn.driver._particles import Particles
from widebnn.driver.stopping import MIN_DRAWS, Until
from widebnn.estimators._columns import Categories, checked, random_of, scaler_of, standardised
from widebnn.estimators._draws import Function, at_draws, kept_of
from widebnn.estimators._engine import Answer, near_medians, run
from widebnn.estimators._network import SCALES, Architecture
from widebnn.models import BNN
from widebnn.targets import LogNormal

__all__ = ["BNNEstimator", "block_size"]


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
BLOCK_ROWS, BLOCK_BYTES = 4_096, 2**30
"""Rows that go through the network at a time where Ψ of all of them, in all chains, takes more."""
NUM_COPIES = 8
"""Arrays as large as Ψ that a gradient holds."""


class _Fitted:
    """What `fit` finds out."""

    n_features_in_: int
    width_: Any
    _categories: Categories
    _column_sizes: np.ndarray
    _scaler: Any
    _labels: Any
    _num_outputs: int
    _kept: Any
    _x: np.ndarray
    _y: np.ndarray
    _posterior: targets.Scaled
    _scales: tuple[dict[str, LogNormal], dict[str, Any]]


@dataclass(eq=False, repr=False)
class BNNEstimator(_Fitted, BaseEstimator):
    """What regression and classification share: the network, its chains, and what is said of them."""

    width: Any = 128
    depth: int = 1
    _: KW_ONLY
    activation: str = "gelu"
    features: Any = None
    scales: Mapping[str, Any] | None = None
    num_chains: int = 4
    num_samples: int = 1_000
    thin: int = 2
    burn_in: int = 50
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
    def _watched(self, rows: Any) -> Callable[..., Any]:
        """The prediction that is watched for convergence."""

    @property
    @abstractmethod
    def _answer(self) -> Answer:
        """When the watched predictions stand."""

    def _built(self) -> targets.Scaled:
        """The posterior of weights and scales."""
        learned, known = self._scales
        return targets.Scaled(self._target(self._network.bnn(self._x.shape[1], **known)), learned)

    @property
    def _network(self) -> Architecture:
        width: Any = 1 if self.width_ == math.inf else self.width_
        is_one = np.ndim(self.width) == 0 or isinstance(self.width, list)
        depth = self.depth if is_one else len(self.width)
        return Architecture(self.features, width, depth, self.activation, self._num_outputs)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _forget(self) -> None:
        """What an earlier fit found, of which another may not find all."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _check_options(self) -> None:
        refuse_fork()
        at_least(2, num_chains=self.num_chains)
        at_least(MIN_DRAWS, num_samples=self.num_samples)
        at_least(1, thin=self.thin)
        at_least(1, burn_in=self.burn_in)
        if self.until is not None and not isinstance(self.until, Until):
            raise TypeError(f"until must be a widebnn.Until; got {self.until!r}")
        names = [name for name in self._names if self.features is None or name in targets.READOUT_SCALES]
        given = {} if self.scales is None else dict(self.scales)
        for name in given:
            one_of(names, scales=name)
        self._column_sizes = self._sizes_of_columns(given)
        for name, scale in given.items():
            if not isinstance(scale, LogNormal):
                positive(**{f"scales[{name!r}]": scale})
            elif scale.shape:
                wanted = "one median, or in weight_std one for each column, and one spread"
                raise ValueError(f"scales[{name!r}] must have {wanted}; got {scale}")
        both = {name: given.get(name, self.priors[name]) for name in names}
        learned = {name: scale for name, scale in both.items() if isinstance(scale, LogNormal)}
        self._scales = learned, {name: scale for name, scale in both.items() if name not in learned}

    def _sizes_of_columns(self, given: dict[str, Any]) -> np.ndarray:
        """σ_W of each input over the root mean square of all, which replaces it among the scales."""
        scale, number = given.get("weight_std"), self.n_features_in_
        column = self._categories.groups(number)
        each = scale.median if isinstance(scale, LogNormal) else scale
        if each is None or np.ndim(each) == 0:
            return np.ones(len(column))
        sizes = positive_each(number, **{"scales['weight_std']": np.asarray(each)}).astype(np.float64)[column]
        size = float(np.sqrt(np.mean(sizes**2)))
        given["weight_std"] = scale._replace(median=size) if isinstance(scale, LogNormal) else size
        return sizes / size

    def _set_inputs(self, X: np.ndarray) -> None:
        """In units in which one scale serves all columns."""
        X = self._categories.indicators(X)
        self._scaler = scaler_of(X=X)
        self._scaler.scale_ = self._scaler.scale_ / self._column_sizes
        self._x = standardised(self._scaler, X=X)

    def _sample(self, tells_evidence: bool = False) -> None:
        """Draw weights and scales; keep positions, and what tells of convergence."""
        built = self._built()
        limit = self._limiting_scales(built)
        posterior = self._posterior = built.about(near_medians(built) if limit is None else limit)
        seed = random_of(self.random_state).randint(np.iinfo(np.int32).max)
        rows = self._x[:: -(-len(self._x) // NUM_WATCHED)]
        watched: dict[str, Any] = {name: collectors.scale(name) for name in posterior.priors}
        watched["predictions"] = self._watched(rows)
        draws = run(
            jax.random.key(seed),
            posterior,
            starts_at_limit=limit is not None,
            until=self.until,
            answer=self._answer,
            collect=watched | {"positions": flat},
            num_chains=self.num_chains,
            num_samples=self.num_samples,
            thin=self.thin,
            burn_in=self.burn_in,
            progress=self.progress,
            tells_evidence=tells_evidence,
        )
        if isinstance(draws, Particles):
            self.log_evidence_, self.log_evidence_error_ = draws.log_evidence, draws.log_evidence_error
        self._keep(draws, watched)

    def _limiting_scales(self, posterior: targets.Scaled) -> targets.Gaussian | None:
        """The posterior of the scales in the limit, where it is known."""
        if posterior.priors and self.features is None and isinstance(posterior.base, targets.NetworkTarget):
            with contextlib.suppress(np.linalg.LinAlgError):  # without it, scales start near their medians
                return posterior.limiting_scales()
        return None

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
        self.acceptance_rate_, self.seconds_ = draws.acceptance_rate, draws.seconds
        self.stopped_ = draws.stopped
        self.ess_, self.rhat_ = dict.fromkeys(watched, 0.0), dict.fromkeys(watched, math.inf)
        if (made := draws["predictions"].shape[1]) < MIN_DRAWS:
            warn(f"{made} draws of each chain are too few to tell how far the chains have converged")
        for name in watched:
            if made >= MIN_DRAWS and np.isfinite(draws[name]).all():
                found = convergence(draws[name])
                # what never changes, such as a probability of 0, says nothing, as for `until`
                changes = ~(np.isnan(found.ess) | np.isnan(found.rhat))
                if changes.any():
                    self.ess_[name] = float(np.min(found.ess, where=changes, initial=math.inf))
                    self.rhat_[name] = float(np.max(found.rhat, where=changes, initial=0.0))
        learned, known = self._scales
        self.scales_ = known | {name: float(draws[name].mean()) for name in learned}
        is_gaussian = isinstance(self._posterior.base, targets.NetworkTarget)
        if is_gaussian and "noise_std" in learned and "noise_std" not in known:
            used = float(np.sqrt([kept[1].noise for kept in self._kept]).mean())
            if used > (1 + 1e-5) * self.scales_["noise_std"]:  # rounding has a floor
                self.scales_["noise_std"] = used

    def _keep_positions(self, positions: np.ndarray) -> None:
        """Of as many draws as memory is meant for, what predictions need."""
        one = jax.eval_shape(kept_of, self._posterior, positions[:1])
        size = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(one))
        most = max(MAX_BYTES // size // DRAWS_AT_ONCE, 1) * DRAWS_AT_ONCE
        number = min(most, MAX_POSITIONS, len(positions))
        chosen = np.linspace(0, len(positions) - 1, number).astype(int)
        self.positions_ = positions[chosen]
        padded = np.concatenate([self.positions_, np.repeat(positions[-1:], -number % DRAWS_AT_ONCE, axis=0)])
        self._kept = [
            kept_of(self._posterior, part) for part in np.split(padded, len(padded) // DRAWS_AT_ONCE)
        ]

    def _over_draws(self, function: Function, inputs: np.ndarray, seed: int = 0) -> Any:
        """`function` of the posterior, what is kept of a draw, inputs and a key, leaves (draw, ...)."""
        key = jax.random.key(seed)
        parts = [
            jax.device_get(at_draws(function, self._posterior, kept, key, np.int32(i), inputs))
            for i, kept in enumerate(self._kept)
        ]
        number = len(self.positions_)
        return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:number], *parts)

    def _over_rows(self, of_batch: Callable[..., Any], X: Any, *others: np.ndarray) -> Any:
        """What is made of each batch of rows, and of the same rows of the others: leaves (m, ...)."""
        arrays = self._inputs(X), *others
        number = len(arrays[0])
        size = min(max(MIN_ROWS, 2 ** (number - 1).bit_length()), MAX_ROWS)
        padded = [np.concatenate([a, np.repeat(a[-1:], -number % size, axis=0)]) for a in arrays]
        batches = zip(*(np.split(a, len(a) // size) for a in padded))
        parts = [of_batch(*batch) for batch in batches]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:number], *parts)

    def _inputs(self, X: Any) -> np.ndarray:
        """Standardised."""
        refuse_fork()
        check_is_fitted(self)
        return standardised(self._scaler, X=self._categories.indicators(checked(self, X, reset=False)))


def block_size(bnn: BNN, x: np.ndarray, num_chains: int) -> int | None:
    """Rows that go through the network at a time; None for all."""
    num_bytes = 4 * bnn.template(x).readout.shape[0] * len(x) * num_chains * NUM_COPIES
    return BLOCK_ROWS if num_bytes > BLOCK_BYTES else None


def flat(target: Any, position: Any) -> Any:
    """The position as one vector."""
    return ravel_pytree(position)[0]
