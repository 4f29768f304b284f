"""What the published pCNL samples, and how far that is from the posterior (Pezzetti et al. 2025, eqs. 8–9).

The code takes Φ(φ) = −log p(y | T(φ)) for the potential, in the gradient and in the acceptance ratio. That
leaves out what T does to the prior and to volumes: its chains have the law ∝ exp(−½‖φ‖² − Φ(φ)). Back in θ it
is p(θ) p(y | θ)² / p(y | θ^{≤L}): the likelihood counts twice, for the readout. A Gaussian likelihood with
variance σ², squared, is one with variance σ²/2, so that, with U_s the potential of the inner parameters at
noise variance s and up to a constant:

- the readout given the rest has its exact posterior at σ²/2 in place of σ²,
- the inner parameters have the potential U_{σ²/2} − U_{σ²} in place of U_{σ²}.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Float

from widebnn import data, samplers, targets
from widebnn._check import at_least
from widebnn.diagnostics import effective_sample_size, rhat
from widebnn.experiments.settings.images import images
from widebnn.models import BNN, FCN
from widebnn.samplers._base import Potential
from widebnn.sampling import sample
from widebnn.targets._readout import readout_posterior
from widebnn.targets._repriorised import Repriorised
from widebnn.tree import normal_like

__all__ = ["PUBLISHED_PCNL", "PublishedPCNL", "published_marginal", "published_pcnl", "published_potential"]


Collected = dict[str, np.ndarray]


def published_potential(target: Repriorised) -> Potential:
    """Φ(φ) = −log p(y | T(φ)) = ‖y − ΨT(φ)‖²/(2σ²), which the published code takes for the potential of φ.

    Parameters
    ----------
    target
        `widebnn.targets.repriorised`, whose map T is meant.

    Raises
    ------
    TypeError
        If `target` is something else.
    """
    if not isinstance(target, Repriorised):
        raise TypeError(f"target must be targets.repriorised(...); got {type(target).__name__}")
    likelihood = targets.standard(target.bnn, target.x, target.y).potential
    return lambda position: likelihood(target.to_parameters(position))


def published_marginal(target: targets.NetworkTarget) -> Potential:
    """U_{σ²/2} − U_{σ²}: the potential of the inner parameters under the published law, φ_W integrated out.

    With K̂ the empirical kernel and up to a constant,

        ½ Σ_j y_:jᵀ[(K̂ + (σ²/2) I)⁻¹ − (K̂ + σ² I)⁻¹] y_:j + (d_out/2) log [det(K̂ + (σ²/2) I)/det(K̂ + σ² I)].

    Parameters
    ----------
    target
        A network's target whose positions are inner parameters: `widebnn.targets.marginal`, rotated or not.

    Raises
    ------
    TypeError
        If `target` is no target of a network.
    """
    if not isinstance(target, targets.NetworkTarget):
        raise TypeError(f"target must be a network's target; got {type(target).__name__}")

    def potential(position):
        psi, variance = target.embedding(position), target.bnn.noise_std**2
        half, whole = (readout_posterior(psi, target.y, s, target.space) for s in (variance / 2, variance))
        quadratic = half.quadratic() - whole.quadratic()
        return (quadratic + target.bnn.out_features * (half.log_det() - whole.log_det())) / 2

    return potential


@dataclass(frozen=True)
class PublishedPCNL:
    """The configuration of one run of the experiment.

    Attributes
    ----------
    dataset
        "cifar10" or "digits".
    num_train, num_test
        Images that are observed, and images that are predicted, as far as there are so many.
    widths
        Of the hidden layer.
    num_chains, num_samples, burn_in
        Of the HMC chains on the inner parameters of each law, tuned to an acceptance of 0.8.
    leapfrog_steps
        Of an HMC proposal, one number for each of `widths`.
    pcnl_steps
        Of the published pCNL on all of φ, tuned to an acceptance of 0.6, one number for each of `widths`; the
        first third is burn-in.
    noise_std
        σ.
    seed
        Of everything.
    """

    dataset: str = "cifar10"
    num_train: int = 256
    num_test: int = 100
    widths: tuple[int, ...] = (128, 1_024)
    num_chains: int = 2
    num_samples: int = 1_000
    burn_in: int = 300
    leapfrog_steps: tuple[int, ...] = (30, 10)
    pcnl_steps: tuple[int, ...] = (30_000, 6_000)
    noise_std: float = 0.1
    seed: int = 0


PUBLISHED_PCNL = {
    "smoke": PublishedPCNL(
        dataset="digits",
        num_train=32,
        num_test=20,
        widths=(16, 64),
        num_samples=100,
        burn_in=50,
        leapfrog_steps=(10, 10),
        pcnl_steps=(3_000, 3_000),
    ),
    "laptop": PublishedPCNL(num_samples=500, burn_in=200, pcnl_steps=(18_000, 3_000)),
    "colab": PublishedPCNL(num_chains=4),
    "paper": PublishedPCNL(
        widths=(128, 512, 1_024, 2_048, 4_096),
        num_chains=4,
        num_samples=5_000,
        burn_in=1_000,
        leapfrog_steps=(30, 15, 10, 10, 10),
        pcnl_steps=(1_000_000,) * 5,
    ),
}
"""The configuration at each scale; "paper" has the widths and the number of steps of Pezzetti et al."""


def published_pcnl(
    config: PublishedPCNL, on_row: Callable[[dict[str, Any]], None] = lambda row: None
) -> list[dict]:
    """Compare the law of the published pCNL with the posterior of a network with one hidden layer.

    Both laws are sampled by HMC on the inner parameters with rotated inputs, the readout integrated out in
    closed form. Then the published pCNL is run on all of φ from a draw of the posterior, to see which of the
    two laws it obeys.

    Parameters
    ----------
    config
        What to run.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    One row for each width. For f at test and at training images (prefix `test_`, `train_`), over images ×
    outputs: `mean_shift`, the root mean square difference of the means in posterior standard deviations;
    `mean_shift_error`, what the Monte Carlo errors alone would give; `mean_shift_largest`;
    `mean_shift_readout`, the part that the readout's law brings about at equal inner parameters; `std_ratio`
    (mean, `_low`, `_high`, `_error`), published over posterior. `potential_shift` is that of U in its
    posterior standard deviations. `misfit_exact`, `_published` and `_chain` are means of Φ under the
    posterior, the published law and in the published chain; `potential_prior_std` and `misfit_prior_std` the
    standard deviations of U and Φ over draws of φ from N(0, I).

    Raises
    ------
    ValueError
        If the dataset's name is unknown, there are fewer than two chains, or `leapfrog_steps` or `pcnl_steps`
        differ in length from `widths`.
    """
    at_least(2, num_chains=config.num_chains)
    for name in ("leapfrog_steps", "pcnl_steps"):
        if len(given := getattr(config, name)) != len(config.widths):
            raise ValueError(f"{name} must have one entry for each width of {config.widths}; got {given}")
    dataset = images(config.dataset, config.num_train, config.num_test)
    rows = []
    for width, *num_steps in zip(config.widths, config.leapfrog_steps, config.pcnl_steps, strict=True):
        rows.append({"width": width} | _compare(config, dataset, width, *num_steps))
        on_row(rows[-1])
    return rows


def _compare(
    config: PublishedPCNL, dataset: data.Dataset, width: int, leapfrog_steps: int, pcnl_steps: int
) -> dict[str, Any]:
    y, variance = dataset.y_train, config.noise_std**2
    features = FCN(dataset.x_train.shape[1], width, depth=1, rngs=nnx.Rngs(config.seed))
    bnn = BNN(features, y.shape[1], config.noise_std)
    exact = targets.rotated(targets.marginal(bnn, dataset.x_train, y))
    embedding = exact.embedding_at(jnp.concatenate([dataset.x_test, dataset.x_train]))
    keys = jax.random.split(jax.random.key(config.seed), 4)

    def means(position, rng_key):
        """E[f | θ^{≤L}] under the posterior and under the published law, test images first."""
        psi = embedding(position, rng_key)
        return jnp.stack(
            [psi @ exact.readout_posterior(position, s).mean() for s in (variance, variance / 2)]
        )

    def law(reg):
        """What is collected where the readout has its posterior at noise variance `reg`."""

        def spread(position, rng_key):
            covariance = exact.readout_posterior(position, reg).covariance(embedding(position, rng_key))
            return jnp.diag(covariance)

        def misfit(position, rng_key):
            phi = normal_like(rng_key, bnn.template(dataset.x_train).readout)
            readout = exact.readout_posterior(position, reg).transform(phi)
            return jnp.sum((y - exact.embedding(position) @ readout) ** 2) / (2 * variance)

        return {"potential": exact.potential, "means": means, "variance": spread, "misfit": misfit}

    def run(rng_key, potential, reg):
        return sample(
            rng_key,
            samplers.tuned(partial(samplers.hmc, potential, num_steps=leapfrog_steps), 0.8),
            targets.from_potential(potential, exact.template),
            num_samples=config.num_samples,
            burn_in=config.burn_in,
            num_chains=config.num_chains,
            collect=law(reg),
        )

    right = run(keys[0], exact.potential, variance)
    published = run(keys[1], published_marginal(exact), variance / 2)

    whole = targets.repriorised(exact.bnn, exact.x, y)
    misfit = published_potential(whole)
    position = whole.draw_prior(keys[2])._replace(inner=jax.tree.map(lambda leaf: leaf[0], right.position))
    chain = sample(
        keys[2],
        samplers.tuned(partial(samplers.pcnl, misfit), 0.6, step_size=0.01),
        whole,
        num_samples=pcnl_steps // 15,
        thin=10,
        burn_in=pcnl_steps // 3,
        initial=jax.tree.map(lambda leaf: leaf[None], position),
        collect={"misfit": misfit},
    )
    from_prior = sample(
        keys[3],
        samplers.pcn(lambda position: jnp.zeros(()), 1.0),  # independent draws of N(0, I)
        whole,
        num_samples=200,
        collect={"potential": whole.potential, "misfit": misfit},
    )

    row, num_test = {}, len(dataset.x_test)
    for name, part in (("test", slice(num_test)), ("train", slice(num_test, None))):
        row |= {
            f"{name}_{key}": value
            for key, value in _shifts(right.collected, published.collected, part).items()
        }
    scale = right["potential"].std()
    (before, error), (after, other_error) = (
        _mean(draws["potential"] / scale) for draws in (right, published)
    )
    row["potential_shift"], row["potential_shift_error"] = after - before, np.hypot(error, other_error)
    for name, draws in (("exact", right), ("published", published), ("chain", chain)):
        row[f"misfit_{name}"], row[f"misfit_{name}_error"] = _mean(draws["misfit"])
    row["acceptance_chain"], row["step_size_chain"] = chain.acceptance_rate, chain.step_size
    row["potential_prior_std"] = from_prior["potential"].std()
    row["misfit_prior_std"] = from_prior["misfit"].std()
    for name, draws in (("exact", right), ("published", published)):
        row[f"ess_{name}"] = effective_sample_size(draws["potential"])
        row[f"rhat_{name}"] = rhat(draws["potential"])
    return {key: float(value) for key, value in row.items()}


def _mean(draws: Float[np.ndarray, "chain draw *event"]):
    """Mean over chains and draws, and its Monte Carlo error."""
    return draws.mean(axis=(0, 1)), draws.std(axis=(0, 1)) / np.sqrt(effective_sample_size(draws))


def _moments(given: Float[np.ndarray, "chain draw m d_out"], variance: Float[np.ndarray, "chain draw m"]):
    """Mean and standard deviation of f, (m, d_out), each with its Monte Carlo error."""
    mean, mean_error = _mean(given)
    square, square_error = _mean(variance[..., None] + (given - mean) ** 2)
    return mean, mean_error, np.sqrt(square), square_error / (2 * np.sqrt(square))


def _shifts(right: Collected, published: Collected, part: slice) -> dict[str, Any]:
    """The published law of f against the posterior, at some of the images."""
    before, after = right["means"][:, :, 0, part], right["means"][:, :, 1, part]
    mean, mean_error, std, std_error = _moments(before, right["variance"][..., part])
    other = _moments(published["means"][:, :, 1, part], published["variance"][..., part])
    shift, ratio = (other[0] - mean) / std, other[2] / std
    return {
        "mean_shift": _rms(shift),
        "mean_shift_error": _rms(np.hypot(mean_error, other[1]) / std),
        "mean_shift_largest": np.abs(shift).max(),
        "mean_shift_readout": _rms((after - before).mean(axis=(0, 1)) / std),
        "std_ratio": ratio.mean(),
        "std_ratio_low": ratio.min(),
        "std_ratio_high": ratio.max(),
        "std_ratio_error": _rms(ratio * np.hypot(std_error / std, other[3] / other[2])),
    }


def _rms(values):
    return np.sqrt(np.mean(np.asarray(values) ** 2))
