"""The best ELBO of N neurons against the best of its mean-field limit (Huix et al. 2022, Theorem 2)."""

import itertools
from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from book.experiments.ascent import climb, curve, maximise
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.trends import exponent
from widebnn import vi
from widebnn.tables import Measure, Row, Rows


@experiment(SETTINGS["suprema"], parts=("taus", "num_train"))
def suprema(
    taus, widths, num_train, prior_variance, max_mean, min_std, max_std, max_atoms, num_starts, seed
) -> Iterator[Row]:
    """The best ELBO of N neurons against sup F̃ over all ν on the compact Ξ, which has a certificate.

    F̃, the ELBO with the prediction averaged inside the loss, is concave in the distribution ν of the neurons'
    variational parameters, so that at any ν no other can be better by more than max_θ D(θ) − ∫D dν, D its
    first variation: a maximum over the parameters of one neuron. Atoms are added where D is greatest until
    that is small (the Frank–Wolfe method), and all are moved to the best places in between. Under the square
    loss ELBO ≤ F̃, so that sup F̃ − sup ELBO is at least 0 and at most the gap plus the certificate.

    Yields
    ------
    Rows with tau, num_train p, width; best_limit = F̃(ν*), certificate, how much larger sup F̃ may be (up to
    the search for the maximum of D, which is not exhaustive), num_atoms of ν*; best_elbo and gap, their
    difference; predicted, N⁻¹ Σ_i ∫Var g(θ, x_i) dν*, its first order.
    """
    space = _Space(prior_variance, max_mean, min_std, max_std)
    for tau, p in itertools.product(taus, num_train):
        with jax.enable_x64(True):
            atoms, weights, best_limit, certificate = _best_limit(space, tau, p, max_atoms, seed)
            x, _ = curve(p)
            variance = float(neurons(atoms, x, prior_variance)[1].sum(axis=0) @ weights)
        for width in widths:
            with jax.enable_x64(True):  # not while the consumer of a row computes
                best = _best_elbo(space, tau, p, width, atoms, weights, num_starts, seed + width)
            yield {
                "tau": tau,
                "num_train": p,
                "width": width,
                "best_limit": best_limit,
                "certificate": certificate,
                "num_atoms": len(weights),
                "best_elbo": best,
                "gap": best_limit - best,
                "predicted": variance / width,
            }


@suprema.claim("V-T2")
def differ_by_the_variance(rows: Rows) -> Iterator[Finding]:
    for tau, of_tau in rows.by("tau"):
        gaps, of = ([Measure(row["gap"], row["certificate"]) for row in of_tau], f"τ = {tau:g}")
        against = [gap / row["predicted"] for gap, row in zip(gaps, of_tau, strict=True)]
        greatest = max(against, key=attrgetter("value"))
        yield Finding(f"{of}: N times the gap ÷ Σ Var g, greatest over N and p", greatest, above=0, below=1.5)
        uncertain = max(of_tau.column("certificate") / of_tau.column("gap"))
        yield Finding(f"{of}: what the certificate leaves open ÷ the gap", uncertain, below=0.05)
        widest = of_tau.where(width=max(of_tau.values("width")))
        slope = exponent(sorted(widest.values("num_train")), widest.over("num_train", "gap"))
        yield Finding(f"{of}: exponent of the gap in p, largest N", slope, below=1.15)


def neurons(
    theta: Float[Array | np.ndarray, "N parameters"],
    x: Float[Array | np.ndarray, "n d"],
    prior_variance: float,
) -> tuple[Float[Array, "n N"], Float[Array, "n N"], Float[Array, " N"]]:
    """E g, Var g and the KL divergence of neurons θ = (μ_b, ρ_b, μ_a, ρ_a), which are 2d + 2 numbers each."""
    d = x.shape[1]
    mean = jnp.concatenate([theta[:, :d], theta[:, 2 * d : 2 * d + 1]], axis=1)
    std = jax.nn.softplus(jnp.concatenate([theta[:, d : 2 * d], theta[:, 2 * d + 1 :]], axis=1))
    first, second = vi.relu_moments(x @ mean[:, :d].T, x**2 @ std[:, :d].T ** 2)
    a, a_std = mean[None, :, d], std[None, :, d]
    variance = second * a_std**2 + (second - first**2) * a**2
    log_ratio = 2 * jnp.log(std) - jnp.log(prior_variance)
    kl = jnp.sum(jnp.expm1(log_ratio) - log_ratio + mean**2 / prior_variance, axis=1) / 2
    return first * a, variance, kl


class _Space(NamedTuple):
    """Ξ, the parameters of a neuron: means at most so large, deviations between two bounds."""

    prior_variance: float
    max_mean: float
    min_std: float
    max_std: float

    def bounds(self, d: int):
        """The corners of Ξ, in (μ_b, ρ_b, μ_a, ρ_a)."""
        low, high = (np.log(np.expm1(std)) for std in (self.min_std, self.max_std))
        rho = np.concatenate([np.zeros(d), np.ones(d), [0.0, 1.0]]).astype(bool)
        return np.where(rho, low, -self.max_mean), np.where(rho, high, self.max_mean)

    def atoms(self, rng, count: int, d: int):
        """Means from N(0, 1), deviations those of the prior."""
        theta = np.full((count, 2 * d + 2), np.log(np.expm1(self.prior_variance**0.5)))
        theta[:, [*range(d), 2 * d]] = rng.normal(size=(count, d + 1))
        return theta


def _best_limit(space: _Space, tau: float, p: int, max_atoms: int, seed: int):
    """ν* as atoms and weights, F̃(ν*), and the certificate."""
    x, y = curve(p)
    rng = np.random.default_rng(seed)
    low, high = space.bounds(x.shape[1])

    def limit(nu):
        weights = nu["mass"] / jnp.sum(nu["mass"])
        phi, _, kl = neurons(nu["theta"], x, space.prior_variance)
        return -jnp.sum((y[:, 0] - phi @ weights) ** 2) - tau * p * (kl @ weights)

    @jax.jit
    def variation(theta, prediction):
        phi, _, kl = neurons(theta, x, space.prior_variance)
        return 2 * (y[:, 0] - prediction) @ phi - tau * p * kl

    slope = jax.jit(jax.value_and_grad(lambda one, prediction: variation(one[None], prediction)[0]))
    atoms, mass, best = np.zeros((0, len(low))), np.zeros(0), -np.inf
    prediction, certificate = jnp.zeros(p), np.inf
    for _ in range(max_atoms):
        candidates = np.clip(space.atoms(rng, 4_000, x.shape[1]), low, high)
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
        atoms, mass = (np.asarray(nu["theta"])[kept], np.asarray(nu["mass"])[kept])
        prediction = neurons(atoms, x, space.prior_variance)[0] @ jnp.asarray(mass / mass.sum())
    return (jnp.asarray(atoms), jnp.asarray(mass / mass.sum()), best, certificate)


def _best_elbo(space: _Space, tau, p: int, width: int, atoms, weights, num_starts, seed) -> float:
    """The best of local maxima over N neurons: from ν*, rounded to N equal parts, and from random starts."""
    x, y = curve(p)
    low, high = space.bounds(x.shape[1])
    rng = np.random.default_rng(seed)

    def elbo(theta):
        phi, variance, kl = neurons(theta, x, space.prior_variance)
        misfit = jnp.sum((y[:, 0] - phi.mean(axis=1)) ** 2) + jnp.sum(variance) / width**2
        return -misfit - tau * p * kl.mean()

    levels = (np.arange(width) + 0.5) / width
    rounded = np.asarray(atoms)[np.searchsorted(np.cumsum(weights)[:-1], levels)]
    starts = [rounded + 0.05 * rng.normal(size=rounded.shape)]
    starts += [space.atoms(rng, width, x.shape[1]) for _ in range(num_starts)]
    bounds = (np.tile(low, (width, 1)), np.tile(high, (width, 1)))
    return max(maximise(elbo, jnp.asarray(np.clip(start, *bounds)), bounds)[1] for start in starts)
