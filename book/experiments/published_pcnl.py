"""What the published pCNL samples, and how far that is from the posterior (Pezzetti et al. 2025, eqs. 8–9).

The code takes Φ(φ) = −log p(y | T(φ)) for the potential, in the gradient and in the acceptance ratio. That
leaves out what T does to the prior and to volumes: its chains have the law ∝ exp(−½‖φ‖² − Φ(φ)). Back in θ it
is p(θ) p(y | θ)² / p(y | θ^{≤L}): the likelihood counts twice, for the readout. A Gaussian likelihood with
variance σ², squared, is one with variance σ²/2, so that, with U_s the potential of the inner parameters at
noise variance s and up to a constant:

- the readout given the rest has its exact posterior at σ²/2 in place of σ²,
- the inner parameters have the potential U_{σ²/2} − U_{σ²} in place of U_{σ²}.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from book.experiments.chain_summaries import behind
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.images import images
from book.experiments.posterior import dense
from widebnn import collectors, estimates, samplers, targets
from widebnn.collectors import Collector
from widebnn.diagnostics import effective_sample_size, rhat
from widebnn.driver import Draws, sample
from widebnn.samplers import Potential
from widebnn.tables import Row, Rows
from widebnn.targets import NetworkTarget
from widebnn.tree import normal_like

THIN, BURN_IN = 10, 3
"""Steps per draw of the published chain, and its steps per step of burn-in."""


def published_potential(target: NetworkTarget) -> Potential:
    """Φ(φ) = −log p(y | T(φ)) up to a constant, which the published code takes for the potential of φ.

    T is the map of `target`, a `widebnn.targets.repriorised`.
    """
    likelihood = targets.standard(target.bnn, target.x, target.y).potential
    return lambda position: likelihood(target.to_parameters(position))


def published_marginal(target: NetworkTarget) -> Potential:
    """U_{σ²/2} − U_{σ²}: the potential of the inner parameters under the published law, φ_W integrated out.

    U_s is that of `target` at noise variance s: `widebnn.targets.marginal`, rotated or not.
    """
    variance = target.bnn.noise_std**2

    def potential(position):
        half, whole = (target.readout_posterior(position, s).potential() for s in (variance / 2, variance))
        return half - whole

    return potential


@experiment(SETTINGS["published_pcnl"], parts=(("widths", "leapfrog_steps", "pcnl_steps"),))
def published_pcnl(
    *, dataset, num_train, num_test, widths, leapfrog_steps, pcnl_steps, noise_std, seed, **chains
) -> Iterator[Row]:
    """The law of the published pCNL against the posterior of a network with one hidden layer.

    Both laws are sampled by HMC on the inner parameters with rotated inputs, the readout integrated out in
    closed form. Then the published pCNL is run on all of φ from a draw of the posterior, to see which of the
    two laws it obeys.

    Yields
    ------
    One row per width. For f at test and at training images (prefix `test_`, `train_`), over images ×
    outputs: `mean_shift`, the root mean square difference of the means in posterior standard deviations;
    `mean_shift_error`, what the Monte Carlo errors alone would give; `std_ratio`, published over posterior,
    with its error. `potential_shift` is the shift of U in its posterior standard deviations.
    `misfit_exact`, `_published` and `_chain` are means of Φ under the posterior, the published law and in
    the published chain; `potential_prior_std` and `misfit_prior_std` the standard deviations of U and Φ
    over draws of φ from N(0, I).
    """
    dataset = images(dataset, num_train, num_test)
    run = partial(sample, **chains)
    for width, *steps in zip(widths, leapfrog_steps, pcnl_steps, strict=True):
        exact = dense(dataset, width, 1, noise_std, seed).rotated
        row = _compare(exact, dataset, jax.random.split(jax.random.key(seed), 4), run, *steps)
        yield {"width": width} | {name: float(value) for name, value in row.items()}


@published_pcnl.claim("X-4")
def samples_another_law(rows: Rows) -> Iterator[Finding]:
    for width, found in rows.by("width"):
        chain, exact, published = (
            found.measure(f"misfit_{name}", f"misfit_{name}_error")
            for name in ("chain", "exact", "published")
        )
        off, of = exact - chain, f"width {width:,}"
        laws = ("exact", "published")
        chains = behind(
            *([row[f"{column}_{law}"] for row in found for law in laws] for column in ("ess", "rhat"))
        )
        yield Finding(f"{of}: mean of Φ, posterior less published chain", off, above=0, chains=chains)
        share = (chain - published) / abs(off.value)
        what = f"{of}: mean of Φ, chain less its law, ÷ the difference above"
        yield Finding(what, share, above=-0.2, below=0.2)
        shift = found.measure("potential_shift", "potential_shift_error")
        yield Finding(f"{of}: shift of U in its posterior deviations", shift, above=0, chains=chains)
        std = found.measure("train_std_ratio", "train_std_ratio_error")
        yield Finding(
            f"{of}: deviation of f at training images, published ÷ posterior", std, below=1, chains=chains
        )


def _compare(exact: Any, dataset, keys, run, leapfrog_steps, pcnl_steps) -> Row:
    whole = targets.repriorised(exact.bnn, exact.x, exact.y)
    x = jnp.concatenate([dataset.x_test, dataset.x_train])
    potentials = {"exact": exact.potential, "published": published_marginal(exact)}
    regs = exact.bnn.noise_std**2, exact.bnn.noise_std**2 / 2
    laws = {
        name: run(
            rng_key,
            targets.from_potential(potential, exact.template),
            samplers.tuned(samplers.hmc(0.1, num_steps=leapfrog_steps), 0.8),
            collect=_at_readout(exact, x, reg),
        )
        for rng_key, (name, potential), reg in zip(keys, potentials.items(), regs)
    }
    exact_law, published = laws.values()
    start = whole.draw_prior(keys[2])._replace(inner=jax.tree.map(lambda leaf: leaf[0], exact_law.position))
    chain = _published_chain(keys[2], whole, start, pcnl_steps)
    row, num_test = _over_prior(keys[3], whole), len(dataset.x_test)
    for name, part in (("test", slice(num_test)), ("train", slice(num_test, None))):
        shifts = _shifts(exact_law.collected, published.collected, part)
        row |= {f"{name}_{key}": value for key, value in shifts.items()}
    scale = exact_law["potential"].std()
    (before, error), (after, other_error) = (_mean(law["potential"] / scale) for law in laws.values())
    row["potential_shift"], row["potential_shift_error"] = (after - before, np.hypot(error, other_error))
    for name, draws in (laws | {"chain": chain}).items():
        row[f"misfit_{name}"], row[f"misfit_{name}_error"] = _mean(draws["misfit"])
    for name, law in laws.items():
        row[f"ess_{name}"] = effective_sample_size(law["potential"])
        row[f"rhat_{name}"] = rhat(law["potential"])
    return row | {"step_size_chain": chain.step_size}


def _at_readout(exact: Any, x, reg) -> dict[str, Collector]:
    """What is collected of a law whose readout has its posterior at noise variance `reg`."""
    embedding = partial(collectors.prepared(collectors.embedding(x), exact), exact)
    template = exact.bnn.template(exact.x).readout

    def means(_, position, rng_key):
        """E[f | θ^{≤L}]."""
        return embedding(position, rng_key) @ exact.readout_posterior(position, reg).mean()

    def spread(_, position, rng_key):
        return exact.readout_posterior(position, reg).variance(embedding(position, rng_key))

    def misfit(_, position, rng_key):
        readout = exact.readout_posterior(position, reg).transform(normal_like(rng_key, template))
        return jnp.sum((exact.y - exact.embedding(position) @ readout) ** 2) / (2 * exact.bnn.noise_std**2)

    return {
        "potential": lambda _, position: exact.potential(position),
        "means": means,
        "variance": spread,
        "misfit": misfit,
    }


def _published_chain(rng_key, whole, start, num_steps) -> Draws:
    misfit = published_potential(whole)
    return sample(
        rng_key,
        targets.from_potential(misfit, whole.template),
        samplers.tuned(samplers.pcnl(0.01), 0.6),
        num_samples=2 * num_steps // (BURN_IN * THIN),
        thin=THIN,
        burn_in=num_steps // BURN_IN,
        num_chains=1,
        initial=jax.tree.map(lambda leaf: leaf[None], start),
        collect={"misfit": collectors.potential},
    )


def _over_prior(rng_key, whole) -> Row:
    """Standard deviations of U and Φ over independent draws of φ from N(0, I)."""
    misfit = published_potential(whole)
    collect = {"potential": lambda _, u: whole.potential(u), "misfit": lambda _, u: misfit(u)}
    draws = estimates.prior_draws(rng_key, whole, collect, 200)
    return {f"{name}_prior_std": draws[name].std() for name in ("potential", "misfit")}


def _mean(draws: Float[np.ndarray, "chain draw *event"]):
    """Mean over chains and draws, and its Monte Carlo error."""
    return draws.mean(axis=(0, 1)), draws.std(axis=(0, 1)) / np.sqrt(effective_sample_size(draws))


def _moments(given: Float[np.ndarray, "chain draw m d_out"], variance: Float[np.ndarray, "chain draw m"]):
    """Mean and standard deviation of f, (m, d_out), each with its Monte Carlo error."""
    mean, mean_error = _mean(given)
    square, square_error = _mean(variance[..., None] + (given - mean) ** 2)
    return (mean, mean_error, np.sqrt(square), square_error / (2 * np.sqrt(square)))


def _shifts(right, published, part: slice) -> dict[str, Any]:
    """The published law of f against the posterior, at some of the images."""
    (mean, mean_error, std, std_error), other = (
        _moments(law["means"][:, :, part], law["variance"][..., part]) for law in (right, published)
    )
    shift, ratio = (other[0] - mean) / std, other[2] / std
    return {
        "mean_shift": _rms(shift),
        "mean_shift_error": _rms(np.hypot(mean_error, other[1]) / std),
        "std_ratio": ratio.mean(),
        "std_ratio_error": _rms(ratio * np.hypot(std_error / std, other[3] / other[2])),
    }


def _rms(values):
    return np.sqrt(np.mean(np.asarray(values) ** 2))
