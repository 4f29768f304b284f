"""A deep ensemble (Lakshminarayanan et al. 2017): networks with a mean and a variance, trained by their NLL.

Each of five networks has the shape of ours, one hidden layer of 128 GELU units. It is trained for 500 epochs
of Adam, in minibatches of 32, on 85 % of the rows, its own at random, and is kept as it was after the epoch
with the least NLL on the other 15 %. There is no adversarial training.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from benchmarks.tabular.data_sets import Table
from benchmarks.tabular.scores import Mixture
from benchmarks.tabular.units import Units

__all__ = ["DeepEnsemble"]

NUM_NETWORKS, WIDTH = 5, 128
NUM_EPOCHS, BATCH_SIZE, LEARNING_RATE = 500, 32, 1e-3
VALIDATION_FRACTION = 0.15
LEAST_VARIANCE = 1e-6
"""Of standardised targets, as in the paper."""


class MeanAndVariance(nnx.Module):
    """One hidden layer, and of the observation at an input the mean and the variance."""

    def __init__(self, d_in: int, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(d_in, WIDTH, rngs=rngs)
        self.readout = nnx.Linear(WIDTH, 2, rngs=rngs)

    def __call__(self, x: Any) -> tuple[Any, Any]:
        mean, spread = self.readout(jax.nn.gelu(self.hidden(x))).T
        return mean, jax.nn.softplus(spread) + LEAST_VARIANCE


class DeepEnsemble:
    """Five networks; a prediction is the mixture of theirs."""

    def fit(self, table: Table, seed: int) -> "DeepEnsemble":
        self.units = Units.of(table)
        x, y = (jnp.asarray(part, jnp.float32) for part in self.units.table(table))
        keys = jax.random.split(jax.random.key(seed), NUM_NETWORKS)
        self.parameters = jax.block_until_ready(_train(keys, x, y))
        return self

    def predict(self, x: np.ndarray) -> Mixture:
        inputs = jnp.asarray(self.units.inputs(x), jnp.float32)
        means, variances = jax.device_get(_predict(self.parameters, inputs))
        return self.units.mixture(means, np.sqrt(variances))


def _split(rng_key: Any, d_in: int) -> Any:
    return nnx.split(MeanAndVariance(d_in, nnx.Rngs(rng_key)))


def _nll(graph: Any, parameters: Any, x: Any, y: Any) -> Any:
    mean, variance = nnx.merge(graph, parameters)(x)
    return jnp.mean(jnp.log(variance) + (y - mean) ** 2 / variance) / 2


@jax.jit
@functools.partial(jax.vmap, in_axes=(0, None, None))
def _train(rng_key: Any, x: Any, y: Any) -> Any:
    start_key, order_key, epochs_key = jax.random.split(rng_key, 3)
    graph, parameters = _split(start_key, x.shape[1])
    order = jax.random.permutation(order_key, len(y))
    num_held_out = round(VALIDATION_FRACTION * len(y))
    held_out, train = jnp.split(order, [num_held_out])
    size = min(BATCH_SIZE, len(train))
    optimiser = optax.adam(LEARNING_RATE)

    def step(state, rows):
        parameters, moments = state
        gradient = jax.grad(functools.partial(_nll, graph))(parameters, x[rows], y[rows])
        updates, moments = optimiser.update(gradient, moments)
        return (optax.apply_updates(parameters, updates), moments), None

    def epoch(carry, key):
        state, best, least = carry
        order = jax.random.permutation(key, train)
        batches = order[: len(order) // size * size].reshape(-1, size)
        state, _ = jax.lax.scan(step, state, batches)
        loss = _nll(graph, state[0], x[held_out], y[held_out])
        best = jax.tree.map(lambda new, old: jnp.where(loss < least, new, old), state[0], best)
        return (state, best, jnp.minimum(loss, least)), None

    start = (parameters, optimiser.init(parameters)), parameters, jnp.inf
    (_, best, _), _ = jax.lax.scan(epoch, start, jax.random.split(epochs_key, NUM_EPOCHS))
    return best


@jax.jit
@functools.partial(jax.vmap, in_axes=(0, None))
def _predict(parameters: Any, x: Any) -> tuple[Any, Any]:
    return nnx.merge(_split(jax.random.key(0), x.shape[1])[0], parameters)(x)
