"""Without cooling the best mean-field q is the prior, in the limit (Huix et al. 2022, §2)."""

import itertools
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Float

from book.experiments.ascent import curve, maximise
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.trends import degrees_of_freedom
from widebnn import data, vi
from widebnn.tables import Results, Row
from widebnn.vi.models import SCALINGS


@experiment(SETTINGS["collapse"], parts=("losses", "scalings", "widths"))
def collapse(
    losses,
    scalings,
    widths,
    num_points,
    num_digits,
    prior_variance,
    num_steps,
    num_samples,
    num_repeats,
    seed,
) -> Iterator[Row]:
    """The best q of a plain ELBO over width.

    KL(q* ‖ P₀) over width, and what is left of the predictions.

    The square loss has its ELBO in closed form and is maximised by L-BFGS, once; the cross-entropy is fitted
    by Bayes by Backprop, full batches. Both start at the prior's deviations, with small means.

    Yields
    ------
    Rows with loss, scaling, width, repeat; kl_divergence; predicted, the same to first order, where only the
    readout's means move, and None where that has no closed form; output_rms, the root mean square of E f over
    observations.
    """
    for loss, scaling, width in itertools.product(losses, scalings, widths):
        is_square = loss == "square"
        for repeat in range(1 if is_square else num_repeats):
            with jax.enable_x64(is_square):
                if is_square:
                    row = _square(scaling, width, num_points, prior_variance, seed)
                else:
                    options = num_digits, prior_variance, num_steps, num_samples
                    row = _cross_entropy(scaling, width, *options, seed + repeat)
            yield {"loss": loss, "scaling": scaling, "width": width, "repeat": repeat} | row


@collapse.claim("V-P2")
def tends_to_the_prior(results: Results) -> Iterator[Finding]:
    degrees = degrees_of_freedom(results)
    for loss, fits in results.rows.where(scaling="mean-field").by("loss"):
        for column, name in (("kl_divergence", "KL(q* ‖ P₀)"), ("output_rms", "E f, root mean square")):
            found = fits.over("width", column)
            what = f"{loss}: {name}, widest ÷ narrowest"
            yield Finding(what, found[-1] / found[0], below=0.1, degrees=degrees)


def _square(scaling, width, num_points, prior_variance, seed) -> Row:
    x, y = curve(num_points)
    options = {"prior_variance": prior_variance, "scaling": scaling}
    model = vi.TwoLayer(x.shape[1], width, 1, scaling=scaling, rngs=nnx.Rngs(seed))
    weights = vi.network(model, x, jax.random.key(0)).weights
    weights = jax.tree.map(lambda w: jnp.asarray(w, x.dtype), weights)
    start = vi.mean_field(weights, prior_variance**0.5)
    q, _ = maximise(lambda q: vi.square_elbo(q, x, y, **options).value, start)
    predicted = _predicted(prior_variance, x, 2 * y, scaling, width, 2.0)
    return _row(prior_variance, q, x, scaling) | {"predicted": predicted}


def _cross_entropy(scaling, width, num_digits, prior_variance, num_steps, num_samples, seed) -> Row:
    dataset = data.digits(num_digits, 1)
    x, labels, n = (jnp.asarray(dataset.x_train), jnp.asarray(dataset.labels_train), num_digits)
    # One step of this size takes means to where the gradient vanishes, by the curvature 1/v of the KL
    # divergence; steps that fall as 1/t then make the mean over all draws so far.
    optimiser = optax.sgd(lambda step: n * prior_variance / (1 + step))
    fitted = vi.fit(
        jax.random.key(seed),
        vi.TwoLayer(x.shape[1], width, 10, scaling=scaling, rngs=nnx.Rngs(seed)),
        x,
        labels,
        vi.cross_entropy,
        optimiser,
        num_epochs=num_steps,
        batch_size=n,
        prior_variance=prior_variance,
        initial_std=prior_variance**0.5,
        num_samples=num_samples,
        progress=False,
    )
    residual = jax.nn.one_hot(labels, 10) - 0.1
    # in the other scaling the outputs are of order one, and the softmax is no longer that of zero
    is_small = scaling == "mean-field"
    predicted = _predicted(prior_variance, x, residual, scaling, width, 0.0) if is_small else None
    return _row(prior_variance, fitted.posterior, x, scaling) | {"predicted": predicted}


def _predicted(v: float, x, gradient, scaling: str, width: int, curvature: float) -> float:
    """KL(q* ‖ P₀) where only the readout's means move, all neurons alike, and the loss is a quadratic.

    At the prior every neuron's feature is r(x) = E relu(⟨b, x⟩) = √(v/2π) ‖x‖, and means of b have no
    gradient. With means α of the readout, E f = cNαr, and Σ_i g_i E f_i − ½ h Σ_i (E f_i)² − Nα²/(2v) is
    greatest at α = c Σ_i g_i r_i / (h c² N Σ_i r_i² + 1/v), where KL = Nα²/(2v).
    """
    scale = SCALINGS[scaling](width)
    r = jnp.sqrt(v / (2 * jnp.pi)) * jnp.linalg.norm(x, axis=1)
    alpha = scale * (r @ gradient) / (curvature * scale**2 * width * jnp.sum(r**2) + 1 / v)
    return float(width * jnp.sum(alpha**2) / (2 * v))


def _row(prior_variance, q: vi.MeanField, x: Float[Array | np.ndarray, "n d_in"], scaling: str) -> Row:
    mean = vi.output_moments(q, x, scaling=scaling).mean
    return {
        "kl_divergence": float(vi.kl_divergence(q, prior_variance)),
        "output_rms": float(np.sqrt(np.mean(np.square(mean)))),
    }
