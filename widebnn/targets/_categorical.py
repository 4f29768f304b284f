"""Classification: the softmax likelihood under three affine maps of the readout."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, Real

from widebnn._arrays import Inputs, NewInputs, Table
from widebnn._check import Number, at_least, one_of, positive
from widebnn.models import BNN, Parameters
from widebnn.targets._base import Target
from widebnn.targets._network import Function, check_inputs, check_new_inputs, required
from widebnn.targets._readout import Readout, ReadoutPosterior, readout_posterior
from widebnn.tree import half_square_difference

__all__ = ["categorical"]

Labels = Real[Array | np.ndarray, " n"] | Real[Array | np.ndarray, "n d_out"]


@runtime_checkable
class AffineMap(Protocol):
    """W = μ + Σ^{1/2}φ_W, of which a `ReadoutPosterior` is one."""

    def transform(self, phi: Readout) -> Readout:
        """W."""
        ...

    def inverse(self, readout: Readout) -> Readout:
        """φ_W."""
        ...

    def log_jacobian(self) -> Float[Array, ""]:
        """log |∂W/∂φ_W|."""
        ...


class Identity:
    """W = φ_W, whatever Ψ is."""

    def __init__(self, psi: Float[Array, "n p"]):
        pass

    def transform(self, phi: Readout) -> Readout:
        return phi

    def inverse(self, readout: Readout) -> Readout:
        return readout

    def log_jacobian(self) -> Float[Array, ""]:
        return jnp.zeros(())


class Laplace:
    """The Gaussian that Newton's method for the readout's posterior mode arrives at, given Ψ.

    At outputs F with probabilities p_i, minus the log likelihood has the gradient p_i − t_i, t_i the one-hot
    label, and the Hessian H_i = diag p_i − p_i p_iᵀ = R_iR_iᵀ, R_i = diag √p_i − p_i √p_iᵀ. A Newton step is
    therefore Bayesian linear regression with unit noise: of z_i = R_iᵀF_i + t_i/√p_{i,y_i} on R_iᵀF_i as a
    function of W, for R_i z_i = H_iF_i + t_i − p_i. Its exact posterior is that of `readout_posterior`.

    The steps start at W = 0 and their number is fixed, so that Ψ ↦ (μ, Σ) is smooth; converged or not, the
    map is affine and invertible, and the change of variables exact.
    """

    def __init__(self, psi: Float[Array, "n p"], onehot: Float[Array, "n d_out"], num_steps: int):
        self.shape = (psi.shape[1], onehot.shape[1])
        readout = jnp.zeros(self.shape, psi.dtype)
        for _ in range(num_steps):
            self.posterior = _newton_step(psi, onehot, psi @ readout)
            readout = self.posterior.mean().reshape(self.shape)

    def transform(self, phi: Readout) -> Readout:
        return self.posterior.transform(phi.reshape(-1, 1)).reshape(self.shape)

    def inverse(self, readout: Readout) -> Readout:
        return self.posterior.inverse(readout.reshape(-1, 1)).reshape(self.shape)

    def log_jacobian(self) -> Float[Array, ""]:
        return self.posterior.log_jacobian()


def _newton_step(psi, onehot, f) -> ReadoutPosterior:
    """The Gaussian of the quadratic expansion at outputs F; its coordinates are W row after row."""
    log_p = jax.nn.log_softmax(f)
    p, root_p = jnp.exp(log_p), jnp.exp(log_p / 2)
    root = root_p[:, :, None] * jnp.eye(f.shape[1], dtype=f.dtype)[None] - p[:, :, None] * root_p[:, None, :]
    # 1/√p of the true class alone: it meets the factor √p of that class in R, so that rounding stays small
    z = jnp.einsum("iba,ib->ia", root, f) + onehot * jnp.exp(-jnp.sum(onehot * log_p, axis=1) / 2)[:, None]
    design = jnp.einsum("iq,iba->iaqb", psi, root)
    return readout_posterior(design.reshape(f.size, -1), z.reshape(-1, 1), 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Categorical(Target):
    """p(y_i = j | θ) = softmax(f_θ(x_i))_j, with the readout written as W = μ + Σ^{1/2}φ_W.

    U(φ) = −Σ_i log softmax(Ψ W)_{i,y_i} + ½‖W‖² − ½‖φ_W‖² − log |∂W/∂φ_W|.
    """

    bnn: BNN
    x: Float[Array, "n ..."]
    onehot: Float[Array, "n d_out"]
    affine: Callable[[Float[Array, "n p"]], AffineMap]
    """Ψ ↦ the map of the readout."""

    @property
    def template(self):
        return self.bnn.template(self.x)

    @property
    def num_observations(self) -> int:
        return len(self.x)

    def potential(self, position: Parameters) -> Float[Array, ""]:
        psi = self.bnn.embedding(position.inner, self.x)
        affine = self.affine(psi)
        w = affine.transform(position.readout)
        log_likelihood = jnp.sum(self.onehot * jax.nn.log_softmax(psi @ w))
        return half_square_difference(w, position.readout) - log_likelihood - affine.log_jacobian()

    def log_normaliser(self) -> Float[Array, ""]:
        """0: the potential leaves nothing out."""
        return jnp.zeros((), self.onehot.dtype)

    def to_parameters(self, position: Parameters, rng_key=None) -> Parameters:
        """θ: the inner parameters as they are, the readout W = μ + Σ^{1/2}φ_W."""
        affine = self.affine(self.bnn.embedding(position.inner, self.x))
        return Parameters(position.inner, affine.transform(position.readout))

    def from_parameters(self, parameters: Parameters) -> Parameters:
        """φ of θ."""
        affine = self.affine(self.bnn.embedding(parameters.inner, self.x))
        return Parameters(parameters.inner, affine.inverse(parameters.readout))

    def output(self, x: NewInputs | Table) -> Function:
        """f_θ(x), the logits (m, d_out), as a function of `(position, rng_key=None)`."""
        x = check_new_inputs(x, self.x.shape[1:], self.x.dtype)
        return lambda position, rng_key=None: self.bnn(self.to_parameters(position), x)

    def predictive_probabilities(self, x: NewInputs | Table) -> Function:
        """softmax(f_θ(x)), (m, d_out), as a function of `(position, rng_key=None)`."""
        output = self.output(x)
        return lambda position, rng_key=None: jax.nn.softmax(output(position))

    def predictive_draw(self, x: NewInputs | Table) -> Callable[..., Int[Array, " m"]]:
        """Class numbers (m,) drawn from softmax(f_θ(x)), a function of `(position, rng_key)`."""
        output = self.output(x)

        def draw(position, rng_key=None):
            return jax.random.categorical(required(rng_key, "the class of an observation"), output(position))

        return draw

    def log_likelihood(
        self, position: Parameters, rng_key: Key[Array, ""] | None = None
    ) -> Float[Array, " n"]:
        """log p(y_i | θ) of each observation i: collected as "log_likelihood", what `arviz.loo` takes."""
        psi = self.bnn.embedding(position.inner, self.x)
        w = self.affine(psi).transform(position.readout)
        return jnp.sum(self.onehot * jax.nn.log_softmax(psi @ w), axis=1)


def categorical(
    bnn: BNN,
    x: Inputs | Table,
    labels: Labels | Table,
    map: str = "laplace",
    reg: Number | None = None,
    num_newton: int = 3,
) -> Categorical:
    """The posterior of a network that classifies, with a softmax likelihood (Hron et al. 2022, App. F).

    Whatever the map, the change of variables is exact and `to_parameters` follows the same posterior.

    Parameters
    ----------
    bnn
        The network, one output per class. Its `noise_std` is no part of this likelihood.
    x
        Inputs (n, ...).
    labels
        Class numbers (n,) from 0 to d_out − 1, or one-hot rows (n, d_out).
    map
        "laplace": the Gaussian approximation that the softmax likelihood itself gives to the readout's
        posterior, by Newton's method. The only one whose potential varies less as the network grows wider;
        each step factorises a matrix of min(n, p) d_out rows, p the columns of Ψ. "identity": φ = θ, which
        costs nothing. "gaussian": the T of regression on one-hot targets less 1/d_out, what the paper does;
        it takes labels for outputs with noise of variance λ, and chains mix badly where λ is small.
    reg
        λ > 0 of the map "gaussian", and of no other; σ² of the network unless given.
    num_newton
        Steps of the map "laplace", at least 1.

    Raises
    ------
    TypeError, ValueError
        If x is empty, not finite or does not fit the network, `labels` are neither class numbers nor one-hot
        rows, `map` is unknown, `reg` is not positive or is given with another map than "gaussian", or
        `num_newton` is below 1.
    """
    x = check_inputs(bnn, x)
    dtype = bnn.template(x).readout.dtype
    onehot = jnp.asarray(_one_hot(labels, len(x), bnn.out_features), dtype)
    if reg is not None and map != "gaussian":
        raise ValueError(f"reg must be left out unless map is 'gaussian'; got reg={reg} and map={map!r}")
    reg = bnn.noise_std**2 if reg is None else positive(reg=reg)
    at_least(1, num_newton=num_newton)
    maps: Mapping[str, Callable[[Float[Array, "n p"]], AffineMap]] = {
        "identity": Identity,
        "gaussian": functools.partial(readout_posterior, y=onehot - 1 / bnn.out_features, reg=reg),
        "laplace": functools.partial(Laplace, onehot=onehot, num_steps=num_newton),
    }
    return Categorical(bnn, x, onehot, maps[one_of(maps, map=map)])


def _one_hot(labels: Labels | Table, n: int, num_classes: int) -> np.ndarray:
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
