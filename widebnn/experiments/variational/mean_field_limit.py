"""How far the ELBO is from its mean-field limit, over neurons and observations (Huix et al. 2022, §3).

F̃ is the ELBO with the prediction averaged inside the loss, a function of the distribution ν of the neurons'
variational parameters alone. Three claims: |ELBO − F̃| ≤ C p/N (Theorem 1), the suprema differ by no more
(Theorem 2), and p observations tell F̃/p up to O(p^{-1/2}) (eq. 27).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from widebnn import data, vi
from widebnn._check import at_least, one_of, positive
from widebnn.experiments.variational.ascent import climb, curve, maximise
from widebnn.vi.models import SCALINGS

__all__ = [
    "CONCENTRATION",
    "MEAN_FIELD_GAP",
    "SUPREMA",
    "Concentration",
    "MeanFieldGap",
    "Suprema",
    "concentration",
    "mean_field_gap",
    "suprema",
]

Row = dict[str, Any]


@dataclass(frozen=True)
class MeanFieldGap:
    """F̃ − ELBO at random q, over width: the square loss on diabetes, the cross-entropy on digits.

    Attributes
    ----------
    losses, scalings, widths
        The grid, whose losses are "square" and "cross-entropy".
    num_train
        p.
    num_posteriors
        Random q for each width: means from N(0, v), all deviations √v.
    prior_variance
        v.
    num_samples
        Draws of the weights for the cross-entropy.
    seed
        Of everything.
    """

    losses: tuple[str, ...] = ("square", "cross-entropy")
    scalings: tuple[str, ...] = ("mean-field", "ntk")
    widths: tuple[int, ...] = (16, 64, 256, 1_024, 4_096)
    num_train: int = 100
    num_posteriors: int = 10
    prior_variance: float = 1 / 5
    num_samples: int = 400
    seed: int = 0


@dataclass(frozen=True)
class Suprema:
    """The best ELBO of N neurons against the best F̃, on a curve, with η = τ p/N.

    Attributes
    ----------
    taus, widths
        The grid.
    num_train
        p.
    prior_variance
        v.
    max_mean, min_std, max_std
        Ξ, compact as the theorem asks: |μ| ≤ `max_mean`, `min_std` ≤ σ ≤ `max_std`.
    max_atoms
        Atoms of ν* at most.
    num_starts
        Random starts of the best ELBO, next to one at ν*.
    seed
        Of everything.
    """

    taus: tuple[float, ...] = (0.01, 0.02)
    widths: tuple[int, ...] = (8, 16, 32, 64, 128, 256, 512)
    num_train: int = 20
    prior_variance: float = 1 / 5
    max_mean: float = 2.0
    min_std: float = 0.01
    max_std: float = 1.0
    max_atoms: int = 12
    num_starts: int = 3
    seed: int = 0


@dataclass(frozen=True)
class Concentration:
    """F̃/p at one ν over p images drawn from all 1,797 digits, with replacement.

    Attributes
    ----------
    num_train
        p, several.
    deltas
        δ.
    num_replicates
        Independent samples of p images.
    width
        Neurons of ν, whose means are drawn from N(0, 1).
    prior_variance
        v; all deviations are √v.
    seed
        Of everything.
    """

    num_train: tuple[int, ...] = (16, 64, 256, 1_024, 4_096)
    deltas: tuple[float, ...] = (0.5, 0.1, 0.01)
    num_replicates: int = 10_000
    width: int = 16
    prior_variance: float = 1 / 5
    seed: int = 0


MEAN_FIELD_GAP = {
    "smoke": MeanFieldGap(widths=(16, 128, 1_024), num_train=50, num_posteriors=10, num_samples=50),
    "laptop": MeanFieldGap(),
    "colab": MeanFieldGap(widths=(16, 64, 256, 1_024, 4_096, 16_384), num_posteriors=20, num_samples=2_000),
    "paper": MeanFieldGap(
        widths=(16, 64, 256, 1_024, 4_096, 16_384, 65_536), num_posteriors=30, num_samples=4_000
    ),
}
SUPREMA = {
    "smoke": Suprema(taus=(0.02,), widths=(16, 32, 64, 128), num_starts=1),
    "laptop": Suprema(),
    "colab": Suprema(widths=(8, 16, 32, 64, 128, 256, 512, 1_024, 2_048), num_starts=10),
    "paper": Suprema(
        taus=(0.005, 0.01, 0.02, 0.05),
        widths=(8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096),
        num_starts=10,
    ),
}
CONCENTRATION = {
    "smoke": Concentration(num_train=(16, 64, 256, 1_024), num_replicates=1_000),
    "laptop": Concentration(),
    "colab": Concentration(num_train=(16, 64, 256, 1_024, 4_096, 16_384), num_replicates=100_000),
    "paper": Concentration(num_train=(16, 64, 256, 1_024, 4_096, 16_384, 65_536), num_replicates=100_000),
}
"""The configuration of each experiment at each scale; the paper proves and does not measure."""


def mean_field_gap(config: MeanFieldGap, on_row: Callable[[Row], None] = lambda row: None) -> list[Row]:
    """F̃ − ELBO = Σ_i E ℓ(f_i, y_i) − ℓ(E f_i, y_i), which η KL(q ‖ P₀) has no part in (Theorem 1).

    Under the square loss it is Σ_i Var f(x_i), exact. Under the cross-entropy it is a mean over draws, less
    ⟨∇ℓ(E f_i), f_i − E f_i⟩, whose mean is zero because E f_i is exact.

    Parameters
    ----------
    config
        What to compute.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with loss, scaling, width, posterior (its number), gap and its standard error gap_error, 0 where it
    is exact.

    Raises
    ------
    ValueError
        If a name is unknown or a number is out of range.
    """
    for name in config.losses:
        one_of(("square", "cross-entropy"), losses=name)
    for name in config.scalings:
        one_of(SCALINGS, scalings=name)
    at_least(2, num_samples=config.num_samples)
    positive(prior_variance=config.prior_variance)
    rows = []
    for loss in config.losses:
        dataset = (data.diabetes if loss == "square" else data.digits)(config.num_train, 1)
        x, d_out = jnp.asarray(dataset.x_train), 1 if loss == "square" else 10
        for scaling in config.scalings:
            for width in config.widths:
                model = vi.TwoLayer(x.shape[1], width, d_out, scaling=scaling, rngs=nnx.Rngs(0))
                net = vi.network(model, x, jax.random.key(0))
                if loss == "square":
                    gap = _gap_of_square(x, scaling)
                else:
                    gap = _gap_of_classes(config, net, dataset, scaling)
                for number in range(config.num_posteriors):
                    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(config.seed), width), number)
                    q = _random_posterior(key, net, config.prior_variance, config.prior_variance**0.5)
                    value, error = map(float, gap(key, q))
                    row = {"loss": loss, "scaling": scaling, "width": width, "posterior": number}
                    rows.append(row | {"gap": value, "gap_error": error})
                    on_row(rows[-1])
    return rows


def _random_posterior(rng_key, net: vi.Network, variance: float, std: float) -> vi.MeanField:
    """Means from N(0, std²), deviations √v."""
    prior = vi.mean_field(jax.tree.map(jnp.zeros_like, net.weights), std)
    return vi.mean_field(prior.draw(rng_key), variance**0.5)


def _gap_of_square(x, scaling: str):
    return lambda rng_key, q: (vi.output_moments(q, x, scaling=scaling).variance.sum(), 0.0)


def _gap_of_classes(config: MeanFieldGap, net: vi.Network, dataset, scaling: str):
    x, labels = jnp.asarray(dataset.x_train), jnp.asarray(dataset.labels_train)

    @jax.jit
    def gap(rng_key, q):
        centre = vi.output_moments(q, x, scaling=scaling).mean
        there, slope = jax.value_and_grad(lambda f: vi.cross_entropy(f, labels).sum())(centre)

        def remainder(key):
            f = net(q.draw(key), x)
            return jnp.sum(vi.cross_entropy(f, labels)) - there - jnp.sum(slope * (f - centre))

        values = jax.lax.map(remainder, jax.random.split(rng_key, config.num_samples))
        return values.mean(), values.std(ddof=1) / np.sqrt(config.num_samples)

    return gap


def suprema(config: Suprema, on_row: Callable[[Row], None] = lambda row: None) -> list[Row]:
    """sup F̃ over all ν on the compact Ξ, with a certificate, against the best ELBO of N neurons (Theorem 2).

    F̃ is concave in ν, so that at any ν no other can be better by more than max_θ D(θ) − ∫D dν, D its first
    variation: a maximum over the parameters of one neuron. Atoms are added where D is greatest until that is
    small (the Frank–Wolfe method), and all are moved to the best places in between. Under the square loss
    ELBO ≤ F̃, so that sup F̃ − sup ELBO is at least 0 and at most what is found here.

    Parameters
    ----------
    config
        What to compute.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with tau, width; best_limit = F̃(ν*), certificate, how much larger sup F̃ may be (up to the search for
    the maximum of D, which is not exhaustive), num_atoms of ν*; best_elbo and gap, their difference;
    predicted, N⁻¹ Σ_i ∫Var φ(θ, x_i) dν*, its first order.

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    for tau in config.taus:
        positive(taus=tau)
    for name in ("prior_variance", "max_mean", "min_std", "max_std"):
        positive(**{name: getattr(config, name)})
    at_least(1, max_atoms=config.max_atoms)
    rows = []
    with jax.enable_x64(True):
        for tau in config.taus:
            atoms, weights, best_limit, certificate = _best_limit(config, tau)
            x, _ = curve(config.num_train)
            variance = float(neurons(atoms, x, config.prior_variance)[1].sum(axis=0) @ weights)
            for width in config.widths:
                best = _best_elbo(config, tau, width, atoms, weights)
                row = {
                    "tau": tau,
                    "width": width,
                    "best_limit": best_limit,
                    "certificate": certificate,
                    "num_atoms": len(weights),
                    "best_elbo": best,
                    "gap": best_limit - best,
                    "predicted": variance / width,
                }
                rows.append(row)
                on_row(row)
    return rows


def neurons(theta, x, prior_variance: float):
    """Of neurons θ = (μ_b, ρ_b, μ_a, ρ_a), rows of (N, 2d + 2): E φ and Var φ (n, N), and KL (N,)."""
    d = x.shape[1]
    mean = jnp.concatenate([theta[:, :d], theta[:, 2 * d : 2 * d + 1]], axis=1)
    std = jax.nn.softplus(jnp.concatenate([theta[:, d : 2 * d], theta[:, 2 * d + 1 :]], axis=1))
    first, second = vi.relu_moments(x @ mean[:, :d].T, x**2 @ std[:, :d].T ** 2)
    a, a_std = mean[None, :, d], std[None, :, d]
    variance = second * a_std**2 + (second - first**2) * a**2
    log_ratio = 2 * jnp.log(std) - jnp.log(prior_variance)
    kl = jnp.sum(jnp.expm1(log_ratio) - log_ratio + mean**2 / prior_variance, axis=1) / 2
    return first * a, variance, kl


def _best_limit(config: Suprema, tau: float):
    """ν* as atoms and weights, F̃(ν*), and the certificate."""
    x, y = curve(config.num_train)
    p, rng = config.num_train, np.random.default_rng(config.seed)
    low, high = _bounds(config, x.shape[1])

    def limit(nu):
        weights = nu["mass"] / jnp.sum(nu["mass"])
        phi, _, kl = neurons(nu["theta"], x, config.prior_variance)
        return -jnp.sum((y[:, 0] - phi @ weights) ** 2) - tau * p * (kl @ weights)

    @jax.jit
    def variation(theta, prediction):
        phi, _, kl = neurons(theta, x, config.prior_variance)
        return 2 * (y[:, 0] - prediction) @ phi - tau * p * kl

    slope = jax.jit(jax.value_and_grad(lambda one, prediction: variation(one[None], prediction)[0]))
    atoms, mass, best = np.zeros((0, len(low))), np.zeros(0), -np.inf
    prediction, certificate = jnp.zeros(p), np.inf
    for _ in range(config.max_atoms):
        candidates = np.clip(_random_atoms(rng, 4_000, len(low), config), low, high)
        order = np.argsort(np.asarray(variation(candidates, prediction)))[::-1]
        here = partial(slope, prediction=prediction)
        found = [climb(here, s, (low, high)) for s in (*atoms, *candidates[order[:8]])]
        new, height = max(found, key=lambda pair: pair[1])
        if len(atoms):
            weights = jnp.asarray(mass / mass.sum())
            certificate = max(height - float(variation(atoms, prediction) @ weights), 0.0)
            if certificate < 1e-5 * abs(best):
                break
        atoms = np.concatenate([atoms, new[None]])
        mass = np.append(mass, 0.1 * mass.sum() if len(mass) else 1.0)
        count = len(mass)
        bounds = (
            {"theta": np.tile(low, (count, 1)), "mass": np.zeros(count)},
            {"theta": np.tile(high, (count, 1)), "mass": np.full(count, 10.0)},
        )
        nu, best = maximise(limit, {"theta": jnp.asarray(atoms), "mass": jnp.asarray(mass)}, bounds)
        kept = np.asarray(nu["mass"]) > 1e-9
        atoms, mass = np.asarray(nu["theta"])[kept], np.asarray(nu["mass"])[kept]
        prediction = neurons(atoms, x, config.prior_variance)[0] @ jnp.asarray(mass / mass.sum())
    return jnp.asarray(atoms), jnp.asarray(mass / mass.sum()), best, certificate


def _best_elbo(config: Suprema, tau: float, width: int, atoms, weights) -> float:
    """The best of local maxima over N neurons: from ν*, rounded to N equal parts, and from random starts."""
    x, y = curve(config.num_train)
    low, high = _bounds(config, x.shape[1])
    rng = np.random.default_rng(config.seed + width)

    def elbo(theta):
        phi, variance, kl = neurons(theta, x, config.prior_variance)
        misfit = jnp.sum((y[:, 0] - phi.mean(axis=1)) ** 2) + jnp.sum(variance) / width**2
        return -misfit - tau * config.num_train * kl.mean()

    levels = (np.arange(width) + 0.5) / width
    rounded = np.asarray(atoms)[np.searchsorted(np.cumsum(weights)[:-1], levels)]
    starts = [rounded + 0.05 * rng.normal(size=rounded.shape)]
    starts += [_random_atoms(rng, width, len(low), config) for _ in range(config.num_starts)]
    bounds = (np.tile(low, (width, 1)), np.tile(high, (width, 1)))
    return max(maximise(elbo, jnp.asarray(np.clip(start, *bounds)), bounds)[1] for start in starts)


def _bounds(config: Suprema, d: int):
    """The corners of Ξ, in (μ_b, ρ_b, μ_a, ρ_a)."""
    low, high = (np.log(np.expm1(std)) for std in (config.min_std, config.max_std))
    rho = np.concatenate([np.zeros(d), np.ones(d), [0.0, 1.0]]).astype(bool)
    return np.where(rho, low, -config.max_mean), np.where(rho, high, config.max_mean)


def _random_atoms(rng, count: int, size: int, config: Suprema):
    """Means from N(0, 1), deviations those of the prior."""
    d = size // 2 - 1
    theta = np.full((count, size), np.log(np.expm1(config.prior_variance**0.5)))
    theta[:, [*range(d), 2 * d]] = rng.normal(size=(count, d + 1))
    return theta


def concentration(config: Concentration, on_row: Callable[[Row], None] = lambda row: None) -> list[Row]:
    """|F^p_τ(ν) − R_τ(ν)| against M_G √(log(2/δ)/(2p)): Hoeffding, with the sign that the paper has reversed.

    KL terms cancel: what is left is a mean of p losses G̃(ν; (x, y)) = ℓ(E f(x), y) less that over the
    population, here all digits, so that M_G, the largest loss in it, and R_τ(ν) are exact.

    Parameters
    ----------
    config
        What to compute.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with num_train p, delta; rms of the difference over replicates and its standard error rms_error; std
    of one loss; bound M_G √(log(2/δ)/(2p)); quantile of the absolute difference at 1 − δ; exceedance, the
    share of replicates beyond the bound.

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    for delta in config.deltas:
        if not 0 < delta < 1:
            raise ValueError(f"deltas must lie in (0, 1); got {delta}")
    at_least(2, num_replicates=config.num_replicates)
    dataset = data.digits(1_796, 1)
    x = jnp.asarray(np.concatenate([dataset.x_train, dataset.x_test]))
    labels = jnp.asarray(np.concatenate([dataset.y_train, dataset.y_test]).argmax(axis=1))
    key = jax.random.key(config.seed)
    net = vi.network(vi.TwoLayer(x.shape[1], config.width, 10, rngs=nnx.Rngs(0)), x, key)
    q = _random_posterior(key, net, config.prior_variance, 1.0)
    losses = np.asarray(vi.cross_entropy(vi.output_moments(q, x).mean, labels), np.float64)
    rng = np.random.default_rng(config.seed)
    rows = []
    for p in config.num_train:
        means = [losses[rng.integers(len(losses), size=p)].mean() for _ in range(config.num_replicates)]
        difference = np.array(means) - losses.mean()
        rms = np.sqrt(np.mean(difference**2))
        for delta in config.deltas:
            bound = losses.max() * np.sqrt(np.log(2 / delta) / (2 * p))
            row = {
                "num_train": p,
                "delta": delta,
                "rms": float(rms),
                "rms_error": float(np.std(difference**2) / (2 * rms * np.sqrt(config.num_replicates))),
                "std": float(losses.std()),
                "bound": float(bound),
                "quantile": float(np.quantile(np.abs(difference), 1 - delta)),
                "exceedance": float(np.mean(np.abs(difference) > bound)),
            }
            rows.append(row)
            on_row(row)
    return rows
