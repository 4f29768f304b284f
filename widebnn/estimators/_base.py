"""What regression and classification share: a posterior of weights and scales, its chains, what is kept."""

import contextlib
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from widebnn import collectors, samplers, targets
from widebnn._check import at_least, one_of, positive
from widebnn._compile import refuse_fork
from widebnn._failures import warn
from widebnn.diagnostics import convergence
from widebnn.driver import Draws, sample
from widebnn.driver._end import MIN_DRAWS
from widebnn.driver.stopping import Until
from widebnn.estimators._columns import Categories, checked, random_of, standardised
from widebnn.estimators._draws import Function, at_draws, kept_of
from widebnn.estimators._long import warn_if_long
from widebnn.estimators._network import SCALES, Architecture
from widebnn.models import BNN
from widebnn.targets import LogNormal

__all__ = ["BNNEstimator", "block_size"]


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
BLOCK_ROWS, BLOCK_BYTES = 4_096, 2**30
"""Rows that go through the network at a time where Ψ of all of them, in all chains, takes more."""
NUM_COPIES = 8
"""Arrays as large as Ψ that a gradient holds."""


class _Fitted:
    """What `fit` finds out."""

    n_features_in_: int
    _categories: Categories
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
    def _watched(self, rows: Any) -> Callable[..., Any]:
        """The prediction that is watched for convergence."""

    def _built(self) -> targets.Scaled:
        """The posterior of weights and scales."""
        learned, known = self._scales
        return targets.Scaled(self._target(self._network.bnn(self._x.shape[1], **known)), learned)

    @property
    def _network(self) -> Architecture:
        width: Any = 1 if self._is_limit else self.width
        return Architecture(self.features, width, self.depth, self.activation, self._num_outputs)

    @property
    def _is_limit(self) -> bool:
        return np.ndim(self.width) == 0 and self.width == math.inf

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
        for name, scale in given.items():
            one_of(names, scales=name)
            if not isinstance(scale, LogNormal):
                positive(**{f"scales[{name!r}]": scale})
            elif name == "noise_std" and scale.shape:
                raise ValueError(f"scales['noise_std'] must be one for all of y; got {scale}")
        both = {name: given.get(name, self.priors[name]) for name in names}
        learned = {name: scale for name, scale in both.items() if isinstance(scale, LogNormal)}
        self._scales = learned, {name: scale for name, scale in both.items() if name not in learned}

    def _sample(self) -> None:
        """Draw weights and scales; keep positions, and what tells of convergence."""
        posterior = self._posterior = self._built()
        seed = random_of(self.random_state).randint(np.iinfo(np.int32).max)
        limit = None
        if posterior.priors and self.features is None and posterior.has_exact_scales:
            with contextlib.suppress(np.linalg.LinAlgError):  # without it, scales start at their medians
                limit = posterior.limiting_scales()
        warn_if_long(self, posterior)
        run_key, initial = starts(posterior, jax.random.key(seed), limit, self.num_chains)
        move = samplers.function_space_hmc(0.1, jitter=0.2)
        sampler = samplers.with_scales(move, limit)
        rows = self._x[:: -(-len(self._x) // NUM_WATCHED)]
        watched = {name: collectors.scale(name) for name in posterior.priors}
        watched["predictions"] = self._watched(rows)
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
            collect=watched | {"positions": flat},
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
                # what never changes, such as a probability of 0, says nothing, as for `until`
                changes = ~(np.isnan(found.ess) | np.isnan(found.rhat))
                if changes.any():
                    self.ess_[name] = float(np.min(found.ess, where=changes, initial=math.inf))
                    self.rhat_[name] = float(np.max(found.rhat, where=changes, initial=0.0))
        learned, known = self._scales
        self.scales_ = known | {name: float(draws[name].mean()) for name in learned}
        if self._posterior.has_exact_scales and "noise_std" in learned and "noise_std" not in known:
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


@partial(jax.jit, static_argnames="num_chains")
def starts(posterior: targets.Scaled, rng_key: Any, limit: Any, num_chains: int) -> Any:
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


def block_size(bnn: BNN, x: np.ndarray, num_chains: int) -> int | None:
    """Rows that go through the network at a time; None for all."""
    num_bytes = 4 * bnn.template(x).readout.shape[0] * len(x) * num_chains * NUM_COPIES
    return BLOCK_ROWS if num_bytes > BLOCK_BYTES else None


def flat(target: Any, position: Any) -> Any:
    return ravel_pytree(position)[0]
