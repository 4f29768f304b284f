"""The posterior predictive, a mean over draws of the weights of which none is kept."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from widebnn._arrays import NewInputs, floating
from widebnn._check import at_least, one_key
from widebnn.vi.fit import Fit
from widebnn.vi.losses import is_of_classes

__all__ = ["predict"]


def predict(
    rng_key: Key[Array, ""],
    fitted: Fit,
    x: NewInputs,
    *,
    num_samples: int = 50,
    function: Callable[[Array], Array] | None = None,
    block_size: int = 1_000,
) -> Float[np.ndarray, "m ..."]:
    """$E_q[g(f_w(x*))]$ by the mean over draws, the same for all inputs (Huix et al. 2022, equation 31).

    Memory holds one draw and one block of inputs, however many there are of each.

    Parameters
    ----------
    rng_key
        Key of the draws.
    fitted
        What `fit` returned.
    x
        New inputs $x*$, $(m, ...)$.
    num_samples
        Number of draws of the weights.
    function
        $g$, from outputs $(m, d_out)$ to $(m, ...)$, such as ``lambda f: jnp.stack([f, f**2], axis=1)`` for
        the mean and the second moment of a regression. Unless given, it is the mean of an observation by the
        loss of the fit: the softmax, for probabilities of classes, where that is `cross_entropy`, and the
        outputs themselves for any other.
    block_size
        Number of inputs that go through the network at a time.
    """
    one_key(rng_key=rng_key)
    at_least(1, num_samples=num_samples)
    at_least(1, block_size=block_size)
    x = floating(x=x)
    if x.size == 0 or x.shape[1:] != fitted.input_shape:
        raise ValueError(
            f"x must have shape (m, {str(fitted.input_shape)[1:]}, as in the fit, with m ≥ 1; got {x.shape}"
        )
    if function is None:
        function = jax.nn.softmax if is_of_classes(fitted.loss) else _outputs
    keys = jax.random.split(rng_key, num_samples)
    blocks = [x[start : start + block_size] for start in range(0, len(x), block_size)]
    apply = fitted.network.apply
    rest = fitted.posterior, fitted.point, fitted.state
    return np.concatenate([_mean(keys, *rest, block, apply=apply, function=function) for block in blocks])


def _outputs(f: Array) -> Array:
    return f


@functools.partial(jax.jit, static_argnames=("apply", "function"))
def _mean(keys, posterior, point, state, x, *, apply, function):
    def value(key):
        return function(apply(posterior.draw(key), point, state, x, False)[0])

    def add(total, key):
        return total + value(key), None

    shape = jax.eval_shape(value, keys[0])
    total, _ = jax.lax.scan(add, jnp.zeros(shape.shape, shape.dtype), keys)
    return total / len(keys)
