"""What the targets of a Bayesian neural network share: data, the readout's posterior, predictions."""

import functools
import math
from abc import abstractmethod
from dataclasses import field
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from widebnn._arrays import (
    Inputs,
    NewInputs,
    Observations,
    Tabular,
    column,
    floating,
    inputs,
    is_tree,
    num_rows,
    observed,
    shapes,
)
from widebnn._check import Number, at_least, one_of
from widebnn._compile import jitted
from widebnn._pytree import STATIC
from widebnn.models import BNN, Parameters
from widebnn.models._one_by_one import check_features
from widebnn.models.embedding import FeaturesError, Inner
from widebnn.targets._base import Target
from widebnn.targets._blocks import BlockedFeatureSpace, Rows
from widebnn.targets._readout import (
    PerOutput,
    ReadoutPosterior,
    least_noise,
    readout_posterior,
    smaller_space,
)
from widebnn.tree import Position


class ModelTarget(Target):
    """A posterior of the parameters of a network, whatever the likelihood is."""

    bnn: BNN
    x: Any
    """An array $(n, ...)$, or a pytree of arrays with $n$ rows each."""

    @functools.cached_property
    def _theta(self) -> Any:
        """Shapes and dtypes of θ."""
        return self.bnn.template(self.x)

    @property
    def template(self) -> Any:
        """Shapes and dtypes of a position, which are those of $θ$ unless a parametrisation has others."""
        return self._theta

    @property
    def num_observations(self) -> int:
        """Number of observations, which a mesh may split."""
        return num_rows(self.x)

    def inner(self, position: Any) -> Inner:
        """$θ^≤L$, the parameters below the readout."""
        return position.inner

    @jitted
    def embedding(
        self, position: Position, x: Any = None, rng_key: Key[Array, ""] | None = None
    ) -> Float[Array, "m p"]:
        """$Ψ$ of new inputs, or of the observed ones."""
        return self.bnn.embedding(self.inner(position), self.x if x is None else self.prepared(x))

    def prepared(self, x: NewInputs | Tabular) -> Any:
        """New inputs in the shape and dtype of the observed ones."""
        new: Any = inputs(floating, x=x)
        if is_tree(self.x):
            return _alike(new, self.x)
        if is_tree(new):
            raise TypeError(f"x must be one array like the observed inputs; got a {type(x).__name__}")
        new = new.astype(self.x.dtype)
        if new.shape[1:] != self._input_shape or new.size == 0:
            wanted = str(self._input_shape)[1:]
            raise ValueError(f"x must have shape (m, {wanted} with m ≥ 1; got {new.shape}")
        return new

    @property
    def _input_shape(self) -> tuple[int, ...]:
        return self.x.shape[1:]


class BNNTarget(ModelTarget):
    """A posterior under Gaussian noise: what is known of every parametrisation.

    The methods from `output` to `left_out_log_likelihood` answer the collectors of these names.
    """

    y: Float[Array, "n d_out"]

    space, block_size = "auto", None  # fields of a `NetworkTarget`

    def readout(self, position: Any, rng_key: Key[Array, ""] | None = None) -> Float[Array, "p d_out"]:
        """$W$; drawn from its exact posterior with `rng_key` where the position does not hold it."""
        return position.readout

    @jitted
    def to_parameters(self, position: Position, rng_key: Key[Array, ""] | None = None) -> Parameters:
        """$θ$; what the position does not hold is drawn from its exact posterior with `rng_key`."""
        return Parameters(self.inner(position), self.readout(position, rng_key))

    @jitted
    def log_normaliser(self) -> Float[Array, ""]:
        """$c$, such that $U(u) + c$ is minus the log likelihood of the position $u$, normalised.

        $U$ leaves out what is the same at every position: $n d_out log(σ√(2π))$ where the potential is
        $‖y − f‖²/(2σ²)$. It depends on $σ$, and on $λ$ where $λ ≠ σ²$. Add it before you take a derivative
        in a scale or compare scales: the evidence is the mean of $exp(−U − c)$ over $N(0, I)$.
        """
        log_std = jnp.log(jnp.asarray(self.bnn.noise_std, self.y.dtype))
        return self.y.size * (log_std.mean() + math.log(2 * math.pi) / 2)

    def divided(self, psi: Float[Array, "n p"]) -> tuple[Array, Array, Any]:
        """$Ψ$, $y$ and $σ²$; where each observation has its own $σ$, rows divided by it, and 1.

        Where each output has its own, $σ²$ is a row $(1, d_out)$.
        """
        std = jnp.asarray(self.bnn.noise_std, psi.dtype)
        return (psi / std, self.y / std, 1.0) if self._is_per_row else (psi, self.y, std**2)

    def regression(self, psi: Float[Array, "n p"]) -> tuple[Array, Array, Float[Array, "..."]]:
        """As `divided`, with $max(σ², 4ε tr ΨΨᵀ)$ in place of $σ²$."""
        psi, y, noise = self.divided(psi)
        return psi, y, jnp.maximum(noise, least_noise(jnp.sum(psi**2)))

    def readout_posterior(self, position: Position, reg: Number | None = None) -> ReadoutPosterior:
        """The readout's posterior given the other parameters, at $λ$ = `reg`.

        Unless `reg` is given, $λ = max(σ², 4ε tr ΨΨᵀ)$, with $ε$ the rounding error: in float32 smaller noise
        is lost beside the eigenvalues of $ΨΨᵀ$. Where it is, $σ²$ counts as that in predictions too. Where
        each observation has its own $σ$, rows of $Ψ$ and $y$ are divided by it, and $λ$ is in units of $σ²$;
        where each output has, there is a posterior of each column, all at one $λ$ if it is given.
        """
        if self.block_size is not None:
            shape = self.num_observations, self._theta.readout.shape[0]
            if smaller_space(shape, self.space) == "feature":
                rows = Rows(self.x, self.y, self.block_size)
                at = self.bnn, self.inner(position)
                std = jnp.asarray(self.bnn.noise_std, self.y.dtype)
                if std.ndim == 0:
                    return BlockedFeatureSpace(*at, rows, reg, std)
                return PerOutput(
                    lambda y, std: BlockedFeatureSpace(*at, rows._replace(y=y), reg, std), self.y, std
                )
        psi, y, noise = self.regression(self.embedding(position))
        if reg is not None:
            noise = jnp.full_like(noise, reg) if noise.ndim else reg
        return readout_posterior(psi, y, noise, self.space)

    def output(self, position, x=None, rng_key=None):
        readout_key, embedding_key = (None, None) if rng_key is None else jax.random.split(rng_key)
        return self.embedding(position, x, embedding_key) @ self.readout(position, readout_key)

    def predictive_mean(self, position, x=None, rng_key=None):
        return self.embedding(position, x, rng_key) @ self.readout_posterior(position).mean()

    def predictive_covariance(self, position, x=None, rng_key=None):
        return self.readout_posterior(position).covariance(self.embedding(position, x, rng_key))

    def predictive_variance(self, position, x=None, rng_key=None):
        return self.readout_posterior(position).variance(self.embedding(position, x, rng_key))

    def predictive_moments(self, position, x=None, rng_key=None):
        given = self.readout_posterior(position)
        psi = self.embedding(position, x, rng_key)
        variance, unit = given.variance(psi), self._noise_unit(x)
        noise = given.reg * (unit if variance.ndim == 2 else unit[:, 0]) ** 2
        return psi @ given.mean(), variance + noise

    def predictive_draw(self, position, x=None, rng_key=None):
        output_key, noise_key = jax.random.split(required(rng_key, "the noise of an observation"))
        f = self.output(position, x, output_key)
        unit = self._noise_unit(x)
        noise_std = unit if self._is_per_row else jnp.asarray(self.bnn.noise_std, f.dtype)
        return f + noise_std * jax.random.normal(noise_key, f.shape, f.dtype)

    def _noise_unit(self, x: Any) -> Float[Array, "#n 1"]:
        """What rows are divided by, (1, 1) or (n, 1)."""
        if not self._is_per_row:
            return jnp.ones((1, 1), self.y.dtype)
        if x is not None:
            raise ValueError(
                "noise_std is one number per observation, and that of new inputs is not known: collect "
                "wb.predictive_mean and wb.predictive_variance, or wb.output, which are without noise"
            )
        return jnp.asarray(self.bnn.noise_std, self.y.dtype)

    @property
    def _is_per_row(self) -> bool:
        """Whether each observation has its own σ, (n, 1)."""
        return jnp.shape(self.bnn.noise_std)[1:] == (1,)

    @jitted
    def log_likelihood(self, position: Position, rng_key: Key[Array, ""] | None = None) -> Float[Array, " n"]:
        residual = self.y - self.embedding(position) @ self.readout(position, rng_key)
        return jnp.sum(_log_normal(residual, self.bnn.noise_std), axis=1)

    @jitted
    def left_out_log_likelihood(self, position: Position) -> Float[Array, " n"]:
        unit = self._noise_unit(None)
        psi = self.embedding(position) / unit
        residual, variance = self.readout_posterior(position).left_out(psi)
        std = jnp.sqrt(variance).reshape(len(psi), -1)  # the same for all outputs, or one for each
        return jnp.sum(_log_normal(residual * unit, std * unit), axis=1)


class NetworkTarget(BNNTarget):
    """A parametrisation of a network's posterior that has an inverse.

    Attributes
    ----------
    bnn
        The network.
    x
        Inputs $(n, ...)$.
    y
        Observations $(n, d_out)$. The functions that make targets take $(n,)$ too where there is one output,
        and for $x$ and $y$ arrays, lists or tables of pandas or polars.
    space
        Where the readout's posterior is factorised: "data" $(n × n)$, "feature" $(p × p)$ or "auto", the
        smaller.
    block_size
        Observations that go through the network at a time where feature space is taken: besides the data, the
        potential and its gradient then need memory for one block and for $p × p$ numbers, whatever $n$ is. A
        gradient passes over the data twice instead of once and takes about 1.3 times as long; a potential
        alone takes about twice as long. None takes all $n$ at once, which is the fastest where it fits. There
        are no minibatches of the likelihood: the exact algebra of the readout and the acceptance of a move
        need all of it.
    """

    space: str = field(metadata=STATIC, default="auto")
    block_size: int | None = field(metadata=STATIC, default=None)

    @abstractmethod
    def from_parameters(self, parameters: Parameters) -> Position:
        """The position of $θ$."""


def checked(
    bnn: BNN,
    x: Inputs | Tabular,
    y: Observations | Tabular,
    space: str = "auto",
    block_size: int | None = None,
) -> tuple[BNN, Any, Array, str, int | None]:
    """The fields of a `NetworkTarget`, seen to be right."""
    x = check_inputs(bnn, x)
    y = check_observations(bnn, x, y)
    one_of(("auto", "data", "feature"), space=space)
    if block_size is not None:
        at_least(1, block_size=block_size)
        if space == "data":
            raise ValueError(
                f"block_size must be None with space='data', which takes all rows; got {block_size}"
            )
        if jnp.shape(bnn.noise_std)[1:] == (1,):
            raise ValueError(f"block_size must be None where each row has its noise_std; got {block_size}")
    if jnp.shape(bnn.noise_std) not in ((), (len(y), 1), (1, bnn.out_features)):
        raise ValueError(
            f"noise_std must be a number, one per output, {bnn.out_features}, or one per observation, "
            f"{len(y)}; got {bnn.noise_std.size} of them"
        )
    return bnn, x, y, space, block_size


def check_inputs(bnn: BNN, x: Any) -> Any:
    """Observed inputs, finite and fit for the network: an array in floating point, or a pytree of arrays."""
    if not isinstance(bnn, BNN):
        raise TypeError(f"bnn must be a widebnn.BNN; got {type(bnn).__name__}")
    x = inputs(observed, x=x)
    if not is_tree(x) and (x.ndim < 2 or x.size == 0):
        raise ValueError(f"x must have shape (n, ...) with n ≥ 1; got {x.shape}")
    try:
        bnn.template(x)
    except FeaturesError:
        raise  # whatever x is
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(f"x of shape {shapes(x)} does not fit the network: {error}") from error
    check_features(bnn, x)
    return x


def _alike(x: Any, observed: Any) -> Any:
    """New inputs in the structure and the types of the observed ones, if they have their shapes."""

    def of(new, old):
        if new.shape[1:] != old.shape[1:] or (
            jnp.issubdtype(new.dtype, jnp.floating) and not jnp.issubdtype(old.dtype, jnp.floating)
        ):
            raise ValueError
        return new.astype(old.dtype)

    try:
        return jax.tree.map(of, x, observed)
    except (ValueError, TypeError):
        given, wanted = (jax.tree.map(lambda a: f"{a.dtype}{list(a.shape)}", tree) for tree in (x, observed))
        raise ValueError(f"x must be like the observed inputs, {wanted}; got {given}") from None


def check_observations(bnn: BNN, x: Any, y: Observations | Tabular) -> Array:
    """One row of outputs for each input."""
    y = column(y=y)
    if y.shape != (num_rows(x), bnn.out_features):
        raise ValueError(f"y must have shape (n, d_out) = ({num_rows(x)}, {bnn.out_features}); got {y.shape}")
    return y


def _log_normal(
    residual: Float[Array, "n d_out"], std: Number | Float[Array, "#n #d_out"]
) -> Float[Array, "n d_out"]:
    return -((residual / std) ** 2) / 2 - jnp.log(std) - math.log(2 * math.pi) / 2


def required(rng_key: Key[Array, ""] | None, what: str) -> Key[Array, ""]:
    """The key, or an error that says what has to be drawn with it."""
    if rng_key is None:
        raise TypeError(f"rng_key is required: {what} is drawn with it")
    return rng_key
