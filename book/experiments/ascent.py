"""What experiments on variational inference share: a curve to fit, an exact ascent, and a random q."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree
from scipy.optimize import minimize

from widebnn import vi


def curve(num_train: int) -> tuple[Float[np.ndarray, "n 2"], Float[np.ndarray, "n 1"]]:
    """Inputs (t, 1) and targets sin 2t + ½ at equally spaced points t from −2 to 2."""
    t = np.linspace(-2, 2, num_train)
    return np.stack([t, np.ones(num_train)], axis=1), np.sin(2 * t)[:, None] + 0.5


def random_posterior(
    rng_key: Key[Array, ""], net: vi.Network, mean_std: float, prior_variance: float
) -> vi.MeanField:
    """A mean-field Gaussian whose means are from N(0, mean_std²), all its deviations √v."""
    centred = vi.mean_field(jax.tree.map(jnp.zeros_like, net.weights), mean_std)
    return vi.mean_field(centred.draw(rng_key), prior_variance**0.5)


def maximise(
    function: Callable[..., Float[Array | np.ndarray, ""]],
    start: PyTree,
    bounds: tuple[PyTree, PyTree] | None = None,
) -> tuple[PyTree, float]:
    """A local maximum by L-BFGS-B, and its value; call it where JAX computes in float64.

    `function` takes a pytree like `start`, which the lower and the upper bounds are too.
    """
    leaves, treedef = jax.tree.flatten(start)
    cuts = np.cumsum([np.size(leaf) for leaf in leaves])[:-1]

    def unravel(z):
        parts = zip(np.split(z, cuts), leaves)
        return treedef.unflatten([part.reshape(np.shape(leaf)) for part, leaf in parts])

    def gradient(z):
        value, slope = _value_and_slope(function, unravel(z))
        return value, _ravel(slope)

    box = None if bounds is None else tuple(map(_ravel, bounds))
    found, value = climb(gradient, _ravel(start), box)
    return unravel(found), value


@functools.partial(jax.jit, static_argnums=0)
def _value_and_slope(function, z):
    return jax.value_and_grad(function)(z)


def _ravel(tree: PyTree) -> Float[np.ndarray, " z"]:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)]).astype(np.float64)


def climb(
    gradient: Callable[[np.ndarray], tuple[Array, Array | np.ndarray]],
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
