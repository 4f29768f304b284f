"""What the limit theorems say vanishes, estimated over width (Hron et al. 2022; Pezzetti et al. 2025)."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from book.experiments.chain_summaries import behind
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.images import images
from book.experiments.trends import exponent, vanishing
from widebnn import collectors, estimates, nngp, samplers, targets
from widebnn.diagnostics import effective_sample_size, rhat
from widebnn.driver import sample
from widebnn.models import BNN, FCN
from widebnn.tables import Measure, Row, Rows

CHAINS = {
    "pCN": (targets.repriorised, samplers.pcn),
    "pCNL": (targets.repriorised, samplers.pcnl),
    "pCN, inner": (targets.marginal, samplers.pcn),
}
"""The chains of Pezzetti et al. (2025), Theorems 2.1, 2.2 and 3.1: the target and the sampler of each."""

QUANTILES = {"5 %": 0.05, "median": 0.5, "95 %": 0.95}


@experiment(SETTINGS["theorems"])
def theorems(
    dataset, num_train, widths, num_draws, function_widths, num_functions, step_size, noise_std, seed, **chain
) -> Iterator[Row]:
    """What vanishes in the limit theorems, over width: divergences, gradients, distances and rejections.

    Yields
    ------
    Rows with quantity, width, value and its standard error:

    - "KL in φ", KL(N(0, I) ‖ P(φ | D)); "KL in θ", the same of θ less its limit, which is in the column
      limit (Tr K̂ replaced by its known mean);
    - "gradient, 5 %", "gradient, median", "gradient, 95 %": quantiles of ‖∇U‖ under the posterior;
    - "rejection, pCN", "rejection, pCNL", "rejection, pCN, inner": one less the mean acceptance, with R̂ and
      effective samples of U in the columns rhat and ess;
    - "Kolmogorov": the distance of the law of f_{T(φ)}(x), φ ~ N(0, I), from the NNGP posterior at the worst
      x; "Wasserstein": a bound on that of second order, root mean square over x.
    """
    dataset = images(dataset, num_train, 1)
    x = dataset.x_train
    y = np.where(dataset.y_train.argmax(axis=1) % 2 == 0, 0.5, -0.5)[:, None].astype(x.dtype)

    run = partial(sample, num_samples=chain.pop("num_steps"), **chain)

    def network(in_features, width, depth):
        return BNN(FCN(in_features, width, depth, rngs=nnx.Rngs(seed)), 1, noise_std)

    def key(width, number):
        return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), width), number)

    for width in function_widths:
        yield from _functions(key(width, 0), network(1, width, 3), num_functions, width)
    for width in widths:
        bnn = network(x.shape[1], width, 1)
        yield from _over_prior(key(width, 0), bnn, x, y, num_draws, width)
        for number, (name, (kind, sampler)) in enumerate(CHAINS.items(), start=1):
            target = targets.rotated(kind(bnn, x, y))
            draws = run(key(width, number), target, sampler(step_size))
            missing = estimates.mean_and_mcse(1 - draws.stats["acceptance_rate"])
            u = draws["potential"]
            known = {"rhat": float(rhat(u)), "ess": float(effective_sample_size(u))}
            yield _row(f"rejection, {name}", width, missing, **known)


@theorems.claim("H-F1")
def simple_in_phi(rows: Rows) -> Iterator[Finding]:
    in_phi, in_theta = rows.where(quantity="KL in φ"), _in_theta(rows)
    each = zip(in_phi.over("width", "value", "error"), in_theta, strict=True)
    slope = exponent(sorted(in_phi.values("width")), [phi / theta for phi, theta in each])
    yield Finding("KL, φ ÷ θ: exponent in the width", slope, below=0, decides=True)
    yield Finding("KL in θ, widest ÷ narrowest", in_theta[-1] / in_theta[0], above=0.5)


@theorems.claim("H-P2.3")
def divergence_in_theta(rows: Rows) -> Iterator[Finding]:
    of_theta = rows.where(quantity="KL in θ")
    limit = of_theta.where(width=max(of_theta.values("width")))[0]["limit"]
    gaps = of_theta.over("width", "value", "error")
    whole = _in_theta(rows)[-1]
    phi = rows.where(quantity="KL in φ").over("width", "value", "error")[-1]
    first, last = (Measure(abs(gap.value), gap.error) for gap in (gaps[0], gaps[-1]))
    yield Finding("KL at the widest ÷ closed form", whole / limit, above=0.99, below=1.01)
    yield Finding("distance from the closed form, widest ÷ narrowest", last / first, below=0.5)
    yield Finding("KL at the widest, θ ÷ φ", whole / phi, above=10)


def _in_theta(rows: Rows) -> list[Measure]:
    """KL(N(0, I) ‖ P(θ | D)) over width: rows have what it differs from its limit by."""
    found = rows.where(quantity="KL in θ")
    each = zip(found.over("width", "value", "error"), found.over("width", "limit"), strict=True)
    return [Measure(gap.value + limit.value, gap.error) for gap, limit in each]


VANISHING = {
    "H-F3": ["Wasserstein"],
    "H-T2.1": ["KL in φ"],
    "H-P2.2": ["Kolmogorov"],
    "H-P3.1": [f"gradient, {name}" for name in QUANTILES],
    "P-T2.1": ["rejection, pCN"],
    "P-T2.2": ["rejection, pCNL"],
    "P-T3.1": ["rejection, pCN, inner"],
}
"""By row of the ledger, what tends to 0."""


def _vanish(id: str) -> None:
    @theorems.claim(id)
    def findings(rows: Rows) -> Iterator[Finding]:
        for name in VANISHING[id]:
            found = rows.where(quantity=name)
            chains = behind(found.column("ess"), found.column("rhat")) if "rejection" in name else None
            falls = vanishing(name, sorted(found.values("width")), found.over("width", "value", "error"))
            yield from (replace(finding, chains=chains) for finding in falls)


for _id in VANISHING:
    _vanish(_id)


def _row(quantity, width, estimate, **more) -> Row:
    value, error = float(estimate.value), float(estimate.error)
    return {"quantity": quantity, "width": width, "value": value, "error": error} | more


def _over_prior(rng_key, bnn, x, y, num_draws, width) -> Iterator[Row]:
    """Theorem 2.1 and Propositions 2.3 and 3.1: prior draws, weighted by e^{−U} for the posterior."""
    target = targets.rotated(targets.marginal(bnn, x, y))
    collect = {
        "potential": collectors.potential,
        "gradient": lambda target, u: optax.tree.norm(jax.grad(target.potential)(u)),
    }
    draws = estimates.prior_draws(rng_key, target, collect, num_draws)
    u = draws["potential"].astype(np.float64)
    yield _row("KL in φ", width, estimates.kl_from_prior(u))

    gp = nngp.gaussian_process(nngp.nngp_kernel(bnn), x, y, bnn.noise_std)
    limit, trace = float(gp.kl_from_prior()), float(jnp.trace(gp.prior))
    energy = (float(np.sum(y.astype(np.float64) ** 2)) + trace) / (2 * bnn.noise_std**2)
    of_readout = energy - u + len(x) * np.log(bnn.noise_std)
    theta = estimates.kl_from_prior(u, of_readout)
    yield _row("KL in θ", width, estimates.Estimate(theta.value - limit, theta.error), limit=limit)

    weights = np.exp(u.min() - u)
    for name, q in QUANTILES.items():
        quantile = partial(lambda q, g, w: np.quantile(g, q, weights=w, method="inverted_cdf"), q)
        yield _row(f"gradient, {name}", width, estimates.by_groups(quantile, draws["gradient"], weights))


def _functions(rng_key, bnn, num_functions, width) -> Iterator[Row]:
    """Proposition 2.2: f(x) is normal given the inner weights, and a mixture of normals over the prior."""
    x, y = jnp.array([[-1.0], [0.2], [1.0]]), jnp.array([[-0.5], [0.4], [0.2]])
    grid = jnp.linspace(-1.6, 1.6, 33)[:, None]
    gp = nngp.gaussian_process(nngp.nngp_kernel(bnn), x, y, bnn.noise_std)
    limit = (np.asarray(gp.mean(grid)[:, 0]), np.asarray(jnp.diag(gp.covariance(grid))))

    target = targets.marginal(bnn, x, y)
    mean, covariance = (collectors.predictive_mean(grid), collectors.predictive_covariance(grid))
    collect = {"mean": lambda *at: mean(*at)[:, 0], "variance": lambda *at: jnp.diag(covariance(*at))}
    found = estimates.prior_draws(rng_key, target, collect, num_functions)
    m, v = (found[name].astype(np.float64) for name in ("mean", "variance"))
    yield _row("Kolmogorov", width, estimates.kolmogorov_distance(m, v, *limit, num_points=41))
    # W₂² is convex: that of the mixture is at most the mean of those of its parts, each of two normals.
    square = (m - limit[0]) ** 2 + (np.sqrt(v) - np.sqrt(limit[1])) ** 2
    yield _row("Wasserstein", width, estimates.by_groups(lambda square: np.sqrt(square.mean()), square))
