"""What experiments on variational inference share: a curve to fit, an exact ascent, and a random q."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key, PyTree
from scipy.optimize import minimize

from widebnn import vi
from widebnn._check import at_least

__all__ = ["curve", "maximise"]


def curve(num_train: int) -> tuple[Float[Array, "n 2"], Float[Array, "n 1"]]:
    """Inputs (t, 1) and targets sin 2t + ½ at equally spaced points t from −2 to 2.

    Parameters
    ----------
    num_train
        Number of points n.

    Raises
    ------
    ValueError
        If `num_train` is below 1.
    """
    t = jnp.linspace(-2, 2, at_least(1, num_train=num_train))
    return jnp.stack([t, jnp.ones(num_train)], axis=1), jnp.sin(2 * t)[:, None] + 0.5


def random_posterior(
    rng_key: Key[Array, ""], net: vi.Network, mean_std: float, prior_variance: float
) -> vi.MeanField:
    """A mean-field Gaussian whose means are from N(0, mean_std²), all its deviations √v."""
    centred = vi.mean_field(jax.tree.map(jnp.zeros_like, net.weights), mean_std)
    return vi.mean_field(centred.draw(rng_key), prior_variance**0.5)


def maximise(
    function: Callable[[PyTree], Float[Array | np.ndarray, ""]],
    start: PyTree,
    bounds: tuple[PyTree, PyTree] | None = None,
) -> tuple[PyTree, float]:
    """A local maximum by L-BFGS-B in float64, and its value.

    Call it where JAX computes in float64.

    Parameters
    ----------
    function
        Takes a pytree like `start`, returns a scalar that JAX can differentiate.
    start
        Where the ascent starts.
    bounds
        The lower and the upper bounds, pytrees like `start`.

    Raises
    ------
    TypeError
        If `function` is not callable.
    """
    if not callable(function):
        raise TypeError(f"function must take a pytree like start and return a scalar; got {function!r}")
    flat, unravel = ravel_pytree(start)
    gradient = jax.jit(jax.value_and_grad(lambda z: function(unravel(z))))
    box = None if bounds is None else tuple(np.asarray(ravel_pytree(corner)[0]) for corner in bounds)
    found, value = climb(gradient, np.asarray(flat), box)
    return unravel(jnp.asarray(found)), value


def climb(
    gradient: Callable[[np.ndarray], tuple[Array, Array]],
    start: Float[np.ndarray, " z"],
    bounds: tuple[Float[np.ndarray, " z"], ...] | None,
) -> tuple[Float[np.ndarray, " z"], float]:
    """`maximise` of a function of a vector that is given with its gradient."""

    def negative(z):
        value, slope = gradient(z)
        return -float(value), -np.asarray(slope, np.float64)

    options = {"maxiter": 5_000, "maxfun": 10_000, "ftol": 1e-14, "gtol": 1e-9, "maxcor": 30}
    box = None if bounds is None else list(zip(*bounds))
    found = minimize(negative, start, jac=True, method="L-BFGS-B", bounds=box, options=options)
    return found.x, -float(found.fun)
