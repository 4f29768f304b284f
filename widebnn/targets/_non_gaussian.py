"""Posteriors of networks whose likelihood is not Gaussian, under three affine maps of the readout."""

from collections.abc import Callable
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, Real

from widebnn._arrays import Inputs, Observations, Tabular, num_rows, observed, real
from widebnn._check import Number, brief, positive
from widebnn._compile import jitted
from widebnn.models import BNN, Parameters
from widebnn.targets._affine_maps import AffineMap, affine_map
from widebnn.targets._likelihoods import Bernoulli, Likelihood, Observed, Softmax, StudentT
from widebnn.targets._network import ModelTarget, check_inputs, check_observations, required
from widebnn.tree import half_square_difference

Labels = Real[Array | np.ndarray, " n"] | Real[Array | np.ndarray, "n d_out"]


class NonGaussian(ModelTarget):
    """p(y | θ) = p(y | F) at F = ΨW, with the readout written as W = μ + Σ^½φ_W.

    U(φ) = −log p(y | ΨW) + ½‖W‖² − ½‖φ_W‖² − log |∂W/∂φ_W|.
    """

    y: Observed
    likelihood: Likelihood
    affine: Callable[[Float[Array, "n p"], Observed, Likelihood], AffineMap]
    """(Ψ, y, likelihood) ↦ the map of the readout."""

    def map_of_readout(self, psi: Float[Array, "n p"]) -> AffineMap:
        """φ_W ↦ W at these embeddings."""
        return self.affine(psi, self.y, self.likelihood)

    @jitted
    def potential(self, position: Parameters) -> Float[Array, ""]:
        psi = self.embedding(position)
        affine = self.map_of_readout(psi)
        w = affine.transform(position.readout)
        log_likelihood = jnp.sum(self.likelihood.of_rows(self.y, psi @ w))
        return half_square_difference(w, position.readout) - log_likelihood - affine.log_jacobian()

    def log_normaliser(self) -> Float[Array, ""]:
        """0: the potential leaves nothing out."""
        return jnp.zeros((), self.template.readout.dtype)

    @jitted
    def to_parameters(self, position: Parameters, rng_key=None) -> Parameters:
        """θ: the inner parameters as they are, the readout W = μ + Σ^½φ_W."""
        affine = self.map_of_readout(self.embedding(position))
        return Parameters(position.inner, affine.transform(position.readout))

    @jitted
    def from_parameters(self, parameters: Parameters) -> Parameters:
        """φ of θ."""
        affine = self.map_of_readout(self.embedding(parameters))
        return Parameters(parameters.inner, affine.inverse(parameters.readout))

    def output(self, position, x=None, rng_key=None):
        return self.bnn(self.to_parameters(position), self.x if x is None else self.prepared(x))

    def predictive_mean(self, position, x=None, rng_key=None):
        return self.likelihood.mean(self.output(position, x))

    def predictive_moments(self, position, x=None, rng_key=None):
        f = self.output(position, x)
        return self.likelihood.mean(f), self.likelihood.variance(f)

    def predictive_draw(self, position, x=None, rng_key=None):
        rng_key = required(rng_key, "an observation")
        return self.likelihood.draw(rng_key, self.output(position, x))

    @jitted
    def log_likelihood(
        self, position: Parameters, rng_key: Key[Array, ""] | None = None
    ) -> Float[Array, " n"]:
        psi = self.bnn.embedding(position.inner, self.x)
        return self.likelihood.of_rows(self.y, psi @ self.map_of_readout(psi).transform(position.readout))


class Classifier(NonGaussian):
    """The same where y is a class, or several that are in or out."""

    def predictive_probabilities(self, position, x=None, rng_key=None):
        return self.predictive_mean(position, x)


def categorical(
    bnn: BNN,
    x: Inputs | Tabular,
    labels: Labels | Tabular,
    map: str = "laplace",
    reg: Number | None = None,
    num_steps: int = 3,
) -> Classifier:
    """The posterior of a network that classifies, with a softmax likelihood (Hron et al. 2022, Appendix F).

    Whatever the map, the change of variables is exact, and ``to_parameters`` of a draw follows the same
    posterior.

    Parameters
    ----------
    bnn
        The network, with one output per class. Its `noise_std` is not part of this likelihood.
    x
        Inputs $(n, ...)$.
    labels
        Class numbers $(n,)$ from 0 to $d_out − 1$, or one-hot rows $(n, d_out)$.
    map
        "laplace": $W = μ + Σ^½φ_W$, with $N(μ, Σ)$ the Gaussian approximation of the readout's posterior
        under the softmax likelihood, by Newton's method. It is the only one whose potential varies less as
        the network grows wider; each step factorises a matrix of $min(n, p) d_out$ rows, $p$ the columns of
        $Ψ$. "identity": $φ = θ$, which costs nothing. "gaussian": the $T$ of regression on one-hot targets
        minus $1/d_out$, as in the paper; it takes labels for outputs with noise of variance $λ$, and chains
        mix badly where $λ$ is small.
    reg
        $λ > 0$ of the map "gaussian", and of no other; $σ²$ of the network unless given.
    num_steps
        Steps of the map "laplace", at least 1.

    Returns
    -------
    A `Target` with ``to_parameters`` and ``from_parameters``. It answers these of `widebnn.collectors`:
    ``output`` with logits, ``predictive_mean`` and ``predictive_probabilities`` with $E[y | θ]$,
    ``predictive_draw`` with classes, and ``log_likelihood``.
    """
    x = check_inputs(bnn, x)
    onehot = _one_hot(labels, num_rows(x), bnn.out_features)
    y = jnp.array(onehot, bnn.template(x).readout.dtype)
    return _from_zero(Classifier, bnn, x, y, Softmax(), map, reg, num_steps)


def binary(
    bnn: BNN,
    x: Inputs | Tabular,
    y: Observations | Tabular,
    map: str = "laplace",
    reg: Number | None = None,
    num_steps: int = 3,
) -> Classifier:
    """The posterior of a network that says yes or no: $y_ij$ is 1 with probability $1/(1 + exp(−f_j(x_i)))$.

    Parameters
    ----------
    bnn
        The network, with one output per question. Its `noise_std` is not part of this likelihood.
    x
        Inputs $(n, ...)$.
    y
        Zeros and ones $(n, d_out)$, or $(n,)$ where there is one output.
    map, reg, num_steps
        As in `categorical`; the map "gaussian" regresses on $y − ½$.

    Returns
    -------
    A `Target` as in `categorical`.

    Examples
    --------
    >>> from flax import nnx
    >>> import numpy as np
    >>> import widebnn as wb
    >>> bnn = wb.BNN(wb.models.FCN(1, 8, rngs=nnx.Rngs(0)), 1, noise_std=0.1)
    >>> x, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    >>> target = wb.targets.binary(bnn, x, y)
    """
    x = check_inputs(bnn, x)
    y = check_observations(bnn, x, y).astype(bnn.template(x).readout.dtype)
    if len(others := np.setdiff1d(np.asarray(y), (0, 1))):
        raise ValueError(f"y must hold zeros and ones; got {others[0]}")
    return _from_zero(Classifier, bnn, x, y, Bernoulli(), map, reg, num_steps)


def student_t(
    bnn: BNN,
    x: Inputs | Tabular,
    y: Observations | Tabular,
    degrees: Number = 4.0,
    map: str = "laplace",
    reg: Number | None = None,
    num_steps: int = 3,
) -> NonGaussian:
    """The posterior for data with outliers: $y_ij = f_j(x_i) + σt$, with $t$ Student-distributed.

    $σ$ is the `noise_std` of the network. In the limit of many degrees of freedom the noise is Gaussian.

    Parameters
    ----------
    bnn
        The network.
    x
        Inputs $(n, ...)$.
    y
        Observations $(n, d_out)$, or $(n,)$ where there is one output.
    degrees
        Degrees of freedom, $ν > 0$; the variance of the noise is $σ²ν/(ν − 2)$ for $ν > 2$.
    map, reg, num_steps
        As in `categorical`; "laplace" takes steps of EM, and "gaussian" is the $T$ of regression on $y$.

    Returns
    -------
    A `Target` as in `categorical`, without ``predictive_probabilities``; ``predictive_draw`` has the noise.

    Examples
    --------
    >>> from flax import nnx
    >>> import numpy as np
    >>> import widebnn as wb
    >>> bnn = wb.BNN(wb.models.FCN(1, 8, rngs=nnx.Rngs(0)), 1, noise_std=0.1)
    >>> x, y = np.array([[0.0], [1.0]]), np.array([0.2, 0.9])
    >>> target = wb.targets.student_t(bnn, x, y)
    """
    x = check_inputs(bnn, x)
    y = check_observations(bnn, x, y).astype(bnn.template(x).readout.dtype)
    likelihood = StudentT(positive(degrees=degrees), positive(noise_std=bnn.noise_std))
    return _from_zero(NonGaussian, bnn, x, y, likelihood, map, reg, num_steps)


def non_gaussian(
    bnn: BNN,
    x: Inputs | Tabular,
    y: Observations | Tabular,
    likelihood: Likelihood,
    map: str = "laplace",
    reg: Number | None = None,
    num_steps: int = 3,
) -> NonGaussian:
    """The posterior of a network under a likelihood of your own.

    Parameters
    ----------
    bnn
        The network. Its `noise_std` is not part of the likelihood.
    x
        Inputs $(n, ...)$.
    y
        Observations, $n$ rows as ``likelihood.log_prob`` takes them. Where the network has one output,
        $(n,)$ becomes $(n, 1)$. Integers stay integers.
    likelihood
        A `Likelihood`, where the example is one for counts.
    map, reg, num_steps
        As in `categorical`. The map "laplace" takes steps of Newton's method, from second derivatives of
        ``log_prob``; "gaussian" is the $T$ of regression on $y$.

    Returns
    -------
    A `Target` as in `categorical`, without ``predictive_probabilities``.
    """
    if not isinstance(likelihood, Likelihood):
        raise TypeError(
            f"likelihood must be a targets.Likelihood, such as Poisson(); got {brief(likelihood)}"
        )
    x = check_inputs(bnn, x)
    given, dtype = real(y=y), bnn.template(x).readout.dtype
    is_whole = not jnp.issubdtype(given.dtype, jnp.floating)
    y = jnp.array(given, int) if is_whole else observed(y=given).astype(dtype)
    y = y[:, None] if y.ndim == 1 and bnn.out_features == 1 else y
    if y.ndim == 0 or len(y) != num_rows(x):
        raise ValueError(f"y must have one row for each of the {num_rows(x)} inputs; got {y.shape}")
    shape = num_rows(x), bnn.out_features
    wanted = shape if map == "gaussian" else y.shape
    if y.shape != wanted:
        raise ValueError(f"y must have shape {shape} for the map 'gaussian'; got {y.shape}")
    outputs: Any = jax.ShapeDtypeStruct(shape, dtype)
    log_prob = jax.eval_shape(likelihood.log_prob, y, outputs)
    if log_prob.shape not in (shape, shape[:1]):
        raise ValueError(f"likelihood.log_prob must return {shape[:1]} or {shape}; got {log_prob.shape}")
    at_zero, first = _first(likelihood, y, np.zeros(shape, dtype))
    if not isinstance(at_zero, jax.core.Tracer) and not (is_possible := np.isfinite(at_zero)).all():
        i = np.argmin(is_possible)
        raise ValueError(
            f"y must have a finite log probability under {type(likelihood).__name__}; that of "
            f"{np.asarray(y)[i]} in row {i} is {np.asarray(at_zero)[i]} at F = 0"
        )
    affine = affine_map(map, first, reg, bnn.noise_std, num_steps)
    return NonGaussian(bnn, x, y, likelihood, affine)


@jax.jit
def _first(likelihood: Likelihood, y: Array, zeros: Array) -> tuple[Float[Array, " n"], Float[Array, "n d"]]:
    """log p(y_i | 0), and the outputs from which the map "laplace" steps."""
    return likelihood.of_rows(y, zeros), likelihood.first(y, zeros)


def _from_zero[T: NonGaussian](
    kind: type[T],
    bnn: BNN,
    x: Any,
    y: Array,
    likelihood: Likelihood,
    map: str,
    reg: Number | None,
    num_steps: int,
) -> T:
    """The target whose map "laplace" steps from F = 0."""
    zeros = jnp.asarray(np.zeros((num_rows(x), bnn.out_features), y.dtype))
    return kind(bnn, x, y, likelihood, affine_map(map, zeros, reg, bnn.noise_std, num_steps))


def _one_hot(labels: Labels | Tabular, n: int, num_classes: int) -> np.ndarray:
    labels = np.asarray(labels)
    classes = np.arange(num_classes)
    if labels.shape == (n,) and np.issubdtype(labels.dtype, np.integer) and np.isin(labels, classes).all():
        return labels[:, None] == classes
    is_one_hot = labels.shape == (n, num_classes) and np.isin(labels, (0, 1)).all()
    if is_one_hot and (labels.sum(axis=1) == 1).all():
        return labels
    raise ValueError(
        f"labels must be integers ({n},) from 0 to {num_classes - 1} or one-hot rows ({n}, {num_classes}); "
        f"got {labels.dtype} of shape {labels.shape} with values "
        f"{', '.join(str(value) for value in sorted(set(labels.flat))[:5])}"
    )
