"""Bayes by Backprop: stochastic gradients of the tempered ELBO, an epoch of steps in one compiled program."""

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Bool, Float, Key, PyTree, Shaped

from widebnn._arrays import Inputs, labels, observed, real
from widebnn._check import Number, at_least, brief, non_negative, one_key, positive
from widebnn._compile import refuse_fork
from widebnn._failures import warn
from widebnn._pytree import Static
from widebnn.driver._loop import loop
from widebnn.driver.checkpoints import Snapshot
from widebnn.models import BNN, Embedding
from widebnn.vi.elbo import Elbo, expectation
from widebnn.vi.losses import Loss, is_of_classes
from widebnn.vi.mean_field import MeanField, Variances, kl_divergence, mean_field, prior_variances
from widebnn.vi.network import Network, network

__all__ = ["Fit", "fit"]


@dataclass(frozen=True, eq=False)
class Fit:
    """Result of a fit.

    Attributes
    ----------
    network
        The network that was fitted.
    posterior
        The posterior $q$.
    point
        Point estimates at the end of training; see `Network`.
    state
        State of the network at the end of training; see `Network`.
    elbo
        Both terms in every epoch, arrays (epoch,): the log likelihood summed over the minibatches, and the
        mean KL divergence, each at the $q$ of its step.
    seconds
        Wall time of all epochs, without compilation.
    loss
        The loss $ℓ$, which says what outputs are outputs of.
    input_shape
        Shape of one input.
    """

    network: Network
    posterior: MeanField
    point: PyTree
    state: PyTree
    elbo: Elbo
    seconds: float
    loss: Loss
    input_shape: tuple[int, ...]


class Carry(NamedTuple):
    """What goes from step to step."""

    posterior: MeanField
    point: PyTree
    state: PyTree
    optimiser: PyTree
    epoch: Array


class Minibatch(NamedTuple):
    """Observations of a step, which of them count, and its key."""

    rows: Array
    counts: Array
    rng_key: Array


Terms = tuple[Array, Array]
"""The expected log likelihood and the share of the KL divergence."""


class Plan(NamedTuple):
    """What the program of an epoch knows."""

    apply: Callable[..., Any]
    loss: Loss
    optimiser: optax.GradientTransformation
    batch_size: int
    augment: Callable[[Key[Array, ""], Array], Array] | None
    num_samples: int


class Data(NamedTuple):
    """What the program of an epoch is given, the same in every epoch."""

    x: Array
    y: Array
    rng_key: Array
    prior_variance: Variances
    temperature: Array


def fit(
    rng_key: Key[Array, ""],
    model: nnx.Module | nn.Module | BNN | Embedding | Network,
    x: Inputs,
    y: Shaped[Array | np.ndarray, "n ..."],
    loss: Loss,
    optimiser: optax.GradientTransformation,
    *,
    num_epochs: int,
    batch_size: int | None = None,
    temperature: Number = 1.0,
    prior_variance: Variances = 0.2,
    initial_std: Number = 1e-3,
    num_samples: int = 1,
    augment: Callable[[Key[Array, ""], Array], Array] | None = None,
    progress: bool = True,
) -> Fit:
    """Fit a mean-field Gaussian to a tempered posterior (Blundell et al. 2015; Huix et al. 2022, Appendix D).

    Each epoch puts the observations into a new order and cuts it into $L$ minibatches. The $l$-th has the
    objective $∑_i E_q[log L(y_i | x_i, w)] − η KL(q ‖ P₀)/L$, over its own observations $i$, so that all
    objectives together are the ELBO. A step descends the negative objective, times $L/n$. The last minibatch
    is filled up with observations that do not count.

    Parameters
    ----------
    rng_key
        Key of all randomness.
    model
        As in `widebnn.vi.network`; the means of $q$ start at its parameters. Fits of one `Network` share
        their compiled programs.
    x, y
        Inputs $(n, ...)$ and what `loss` compares outputs with: labels $(n,)$ or targets $(n, d_out)$.
    loss
        From outputs and $y$ to the loss $ℓ$ of each observation, such as `widebnn.vi.cross_entropy`.
    optimiser
        An Optax gradient transformation; schedules count steps, $⌈n/b⌉$ an epoch with batches of $b$.
    num_epochs, batch_size
        Number of passes over the data, and of observations in a step: 128 by default, or all where there are
        fewer.
    temperature
        $η ≥ 0$, such as 1, or what `widebnn.vi.temperature` returns for these observations.
    prior_variance
        $v$ of the prior $N(0, v)$ of a weight, one number or one for each leaf: 1/5 as in the text of Huix et
        al., 1/25 as in their published code.
    initial_std
        Where every $σ$ starts; $10⁻³$ as in their text, $10⁻⁴$ in the published code.
    num_samples
        Number of draws of the weights in each step.
    augment
        From a key and $x$ of a minibatch to another $x$, such as `widebnn.data.flip_and_crop`.
    progress
        Whether to show a progress bar.

    Returns
    -------
    Fit
        The fitted posterior, point estimates and state of the network, and the ELBO of every epoch. Ctrl-C
        ends the fit after the epoch that is going on, with a `widebnn.ChainWarning`.
    """
    at_least(1, num_epochs=num_epochs)
    refuse_fork()
    non_negative(temperature=temperature)
    positive(initial_std=initial_std)
    if not isinstance(optimiser, optax.GradientTransformation):
        raise TypeError(f"optimiser must be one of optax, such as optax.adam(1e-3); got {brief(optimiser)}")
    one_key(rng_key=rng_key)
    x, y, batch_size = _check_data(x, y, batch_size)

    init_key, run_key = jax.random.split(rng_key)
    batch = jax.device_put(np.zeros((batch_size, *x.shape[1:]), x.dtype))  # for its shape
    taken = network(model, batch, init_key)
    if is_of_classes(loss):
        num_classes = jax.eval_shape(taken, taken.weights, batch).shape[1]
        y = jnp.asarray(labels(len(y), num_classes, y=y))

    carry = _start(Static(optimiser), initial_std, taken.weights, taken.point, taken.state)
    prior_variances(carry.posterior, prior_variance)
    _check_loss(taken, carry.posterior, batch, jax.device_put(np.asarray(y)[:batch_size]), loss)

    plan = Plan(taken.apply, loss, optimiser, batch_size, augment, at_least(1, num_samples=num_samples))
    temperature_of_kl = jax.device_put(np.asarray(temperature, jnp.result_type(float)))  # compiles nothing
    data = Data(x, y, run_key, prior_variance, temperature_of_kl)

    epoch = functools.partial(_epoch, Static(plan), data)
    (posterior, point, state, *_), terms, seconds = _run(
        epoch, carry, num_epochs, len(x), temperature, progress
    )
    log_likelihood, kl = (np.concatenate(term) for term in zip(*terms))
    return Fit(
        taken, posterior, point, state, Elbo(log_likelihood, kl, temperature), seconds, loss, x.shape[1:]
    )


@jax.jit
def _start(optimiser: Static, initial_std: Number, weights: Any, point: Any, state: Any) -> Carry:
    posterior = mean_field(weights, initial_std)
    carry = Carry(posterior, point, state, optimiser.value.init((posterior, point)), jnp.asarray(0))
    return jax.tree.map(jnp.copy, carry)  # an epoch uses up what it is given


def _step(plan: Plan, data: Data, carry: Carry, minibatch: Minibatch) -> tuple[Carry, Terms]:
    """A descent step on the objective of a minibatch, which also returns the two terms of its ELBO."""
    augment_key, draw_key = jax.random.split(minibatch.rng_key)
    inputs, targets = data.x[minibatch.rows], data.y[minibatch.rows]
    inputs = inputs if plan.augment is None else plan.augment(augment_key, inputs)

    def objective(trained):
        posterior, point = trained

        def log_likelihoods(weights):
            outputs, state = plan.apply(weights, point, carry.state, inputs, True)
            return -plan.loss(outputs, targets), state

        expected, state = expectation(draw_key, posterior, log_likelihoods, num_samples=plan.num_samples)
        log_likelihood = jnp.sum(jnp.where(minibatch.counts, expected, 0))
        num_batches = -(-len(data.x) // plan.batch_size)
        kl = kl_divergence(posterior, data.prior_variance) / num_batches
        negative = -num_batches / len(data.x) * (log_likelihood - data.temperature.astype(kl.dtype) * kl)
        return negative, (state, (log_likelihood, kl))

    trained = carry.posterior, carry.point
    gradient, (state, terms) = jax.grad(objective, has_aux=True)(trained)
    with jax.numpy_dtype_promotion("standard"):  # Optax raises floats to integer powers
        updates, optimiser_state = plan.optimiser.update(gradient, carry.optimiser, trained)
    posterior, point = jax.tree.map(jnp.add, trained, updates)
    return Carry(posterior, point, state, optimiser_state, carry.epoch), terms


@functools.partial(jax.jit, donate_argnums=2)
def _epoch(plan: Static, data: Data, carry: Carry, is_made: Bool[Array, ""]) -> tuple[Carry, Terms]:
    """A pass over n observations in a new order, which also returns the sums of both terms.

    Where `is_made` is false the carry stays as it is: such a call compiles.
    """
    n, batch_size = len(data.x), plan.value.batch_size
    num_batches = -(-n // batch_size)
    step = functools.partial(_step, plan.value, data)

    def made(carry):
        order_key, step_key = jax.random.split(jax.random.fold_in(data.rng_key, carry.epoch))
        order = jnp.resize(jax.random.permutation(order_key, n), (num_batches, batch_size))
        counts = jnp.arange(num_batches * batch_size).reshape(order.shape) < n
        keys = jax.random.split(step_key, num_batches)
        minibatches = Minibatch(order, counts, keys)
        carry, terms = jax.lax.scan(step, carry, minibatches)
        return carry._replace(epoch=carry.epoch + 1), jax.tree.map(lambda term: term.sum()[None], terms)

    terms = jax.tree.map(lambda term: jnp.zeros(1, term.dtype), jax.eval_shape(made, carry)[1])
    return jax.lax.cond(is_made, made, lambda carry: (carry, terms), carry)


def _run(
    epoch: Callable[[Carry, Any], tuple[Carry, Terms]],
    carry: Carry,
    num_epochs: int,
    n: int,
    temperature: Number,
    progress: bool,
) -> Snapshot:
    """All epochs, with their terms as draws."""
    carry, _ = epoch(carry, np.False_)  # compiles
    since = time.perf_counter()

    def advance(snapshot):
        carry, of_epoch = epoch(snapshot.carry, np.True_)
        snapshot.draws.append(jax.tree.map(np.asarray, of_epoch))
        log_likelihood, kl = snapshot.draws[-1]
        value = Elbo(log_likelihood, kl, temperature).value.item()
        if not math.isfinite(value):
            raise FloatingPointError(
                f"the ELBO is {value} after epoch {len(snapshot.draws)}: the optimiser's steps are too "
                "large, or the loss is not finite where q starts"
            )
        snapshot = Snapshot(carry, snapshot.draws, time.perf_counter() - since)
        return snapshot, 1, f"ELBO per observation {value / n:.4f}"

    def ended(snapshot, number, is_interrupted):
        if is_interrupted:
            return "interrupted"
        return "num_epochs" if number == num_epochs else None

    snapshot, made, stopped = loop(
        advance,
        ended,
        Snapshot(carry, [], 0.0),
        0,
        total=num_epochs,
        unit="epoch",
        progress=progress,
    )
    if stopped == "interrupted":
        warn(f"the fit was interrupted after {made:,} of {num_epochs:,} epochs, which are returned")
    return snapshot


def _check_data(
    x: Inputs, y: Array | np.ndarray, batch_size: int | None
) -> tuple[Float[Array, "n ..."], Shaped[Array, "n ..."], int]:
    """`x` and `y` as arrays, finite and with a row for each observation, and the size of a batch."""
    x, given = observed(x=x), real(y=y)
    y = observed(y=y) if jnp.issubdtype(given.dtype, jnp.floating) else jnp.array(given)
    n = len(x)
    if n == 0 or y.shape[:1] != (n,):
        raise ValueError(f"x and y must have one row per observation, n ≥ 1; got {x.shape} and {y.shape}")
    batch_size = min(128, n) if batch_size is None else at_least(1, batch_size=batch_size)
    if batch_size > n:
        raise ValueError(f"batch_size must be at most {n}, the number of observations; got {batch_size}")
    return x, y, batch_size


def _check_loss(taken: Network, posterior: MeanField, x: Array, y: Array, loss: Loss) -> None:
    """The loss of one step, traced."""

    def losses(weights):
        outputs, _ = taken.apply(weights, taken.point, taken.state, x, True)
        return loss(outputs, y)

    values = jax.eval_shape(losses, posterior.mean)
    if values.shape != x.shape[:1]:
        raise ValueError(f"loss must return one number for each of {len(x)} observations; got {values.shape}")
