"""Two algorithms as printed, against what they should sample (Pezzetti et al. 2025, Algorithms 1 and 2)."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.posterior import prior
from book.experiments.published_pcnl import published_marginal, published_potential
from widebnn import samplers, targets
from widebnn.driver import sample
from widebnn.models import BNN, FCN
from widebnn.samplers import accept
from widebnn.tables import Measure, Row, Rows
from widebnn.targets import Target
from widebnn.tree import half_square_difference, inner_product, normal_like


@experiment(SETTINGS["algorithms"], parts="cases")
def algorithms(*, cases, num_draws, width, noise_std, dimension, step_size, seed, **chains) -> Iterator[Row]:
    """Two algorithms, as printed and as they should be.

    Algorithm 1 accepts by the log likelihood, which after repriorisation is that of T(φ), in place of −U(φ).
    Algorithm 2 accepts by p(v | D)/p(u | D), which leaves out that its proposal is not symmetric.

    Yields
    ------
    Rows with algorithm ("pCN", "pCNL"), acceptance ("printed", "right"), target ("network", or "U = 0");
    quantity, "misfit" ‖y − f‖²/(2σ²) at the data for pCN, "square" ‖φ‖²/d for pCNL; its mean over the chain,
    under the posterior, and under the law that the printed algorithm has where that is known (None
    elsewhere), as chain, posterior and law, each with its standard error: over chains, or of importance
    sampling.
    """
    chain = partial(sample, jax.random.key(seed), **chains)
    for case in cases:
        if case == "pCNL, U = 0":
            yield from _flat(chain, dimension, step_size)
        else:
            yield from _network(chain, case, width, noise_std, step_size, num_draws, seed)


def printed_is_off(algorithm: str) -> Callable[[Rows], Iterator[Finding]]:
    """What says that an algorithm as printed leaves the posterior, and has the law that is known of it."""

    def summary(rows: Rows) -> Iterator[Finding]:
        for target, found in rows.where(algorithm=algorithm).by("target"):
            printed, right = (found.one(acceptance="printed"), found.one(acceptance="right"))
            what = f"{target}: mean {printed['quantity']}"
            off = Measure.of(printed, "posterior") - Measure.of(printed, "chain")
            yield Finding(f"{what}, posterior less chain as printed", off, above=0)
            against = [(right, "posterior", "corrected chain less posterior")]
            if printed["law"] is not None:
                against.append((printed, "law", "chain as printed less its law"))
            for row, wanted, words in against:
                share = (Measure.of(row, "chain") - Measure.of(row, wanted)) / abs(off.value)
                yield Finding(f"{what}, {words}, ÷ the first difference", share, above=-0.2, below=0.2)

    return summary


algorithms.claim("P-A1")(printed_is_off("pCN"))
algorithms.claim("P-A2")(printed_is_off("pCNL"))


def _network(chain, algorithm, width, noise_std, beta, num_draws, seed) -> Iterator[Row]:
    x = jnp.array([-1.8, -1.2, -0.3, 0.1, 1.0, 1.7])[:, None]
    y = jnp.sin(2 * x) + 0.3 * x
    bnn = BNN(FCN(1, width, bias_std=1.0, rngs=nnx.Rngs(seed)), 1, noise_std, bias_std=1.0)
    whole = targets.repriorised(bnn, x, y)
    posterior, law = _exact(targets.marginal(bnn, x, y), num_draws, seed)
    if algorithm == "pCN":
        quantity, function = "misfit", published_potential(whole)
        printed = targets.from_potential(function, whole.template), samplers.pcn(beta)
        right = whole, samplers.pcn(beta)
    else:
        quantity, function, law = "square", _mean_square(whole), None
        printed, right = (whole, printed_pcnl(beta)), (whole, samplers.pcnl(beta))
    yield from _rows(
        algorithm, "network", quantity, chain, function, printed, right, posterior[quantity], law
    )


def _flat(chain, dimension, beta) -> Iterator[Row]:
    """All of N(0, I): accepted by ½‖u‖² − ½‖v‖², the proposal of pCNL leads to N(0, I/2)."""
    target = prior(jnp.zeros(dimension))
    printed, right = (target, printed_pcnl(beta)), (target, samplers.pcnl(beta))
    laws = Measure(1.0, 0.0), Measure(0.5, 0.0)
    yield from _rows("pCNL", "U = 0", "square", chain, _mean_square(target), printed, right, *laws)


def _rows(algorithm, name, quantity, chain, function, printed, right, posterior, law) -> Iterator[Row]:
    """The mean of a function in two chains, each of a target and a sampler."""
    for acceptance, (target, sampler), of in (("printed", printed, law), ("right", right, None)):
        draws = chain(target, sampler, collect={"value": lambda _, position: function(position)})
        mean = Measure.mean(draws["value"].astype(np.float64).mean(axis=1))
        yield (
            {"algorithm": algorithm, "acceptance": acceptance, "target": name, "quantity": quantity}
            | mean.columns("chain")
            | posterior.columns("posterior")
            | (of.columns("law") if of else {"law": None, "law_error": None})
        )


def _mean_square(target: Target) -> Callable[..., Any]:
    dimension = sum(leaf.size for leaf in jax.tree.leaves(target.template))
    return lambda position: inner_product(position, position) / dimension


class printed_pcnl(samplers.pcnl):
    """Algorithm 2: the proposal of pCNL, accepted by the ratio of posterior densities at its two ends."""

    def step(self, target, rng_key, state):
        shrink = jnp.sqrt(1 - self.step_size**2)

        def propose(u, g, xi):
            return shrink * u - (1 - shrink) * g + self.step_size * xi

        noise_key, accept_key = jax.random.split(rng_key)
        noise = normal_like(noise_key, state.position)
        proposal = self.init(target, jax.tree.map(propose, state.position, state.gradient, noise))
        square = half_square_difference(proposal.position, state.position)
        return accept(accept_key, state.potential - proposal.potential - square, state, proposal)


def _exact(target, num_draws, seed) -> tuple[dict[str, Measure], Measure]:
    """Means under the posterior, and of the misfit under the law ∝ exp(−½‖φ‖² − Φ(φ)).

    Prior draws of the inner parameters are weighted; the readout has its Gaussian law given them, at noise
    variance σ² and σ²/2 (`published_marginal`).
    """
    variance = target.bnn.noise_std**2
    published = published_marginal(target)

    def misfit(u, reg):
        psi, of_readout = (target.embedding(u), target.readout_posterior(u, reg))
        residual = jnp.sum((target.y - psi @ of_readout.mean()) ** 2)
        return (residual + target.y.shape[1] * jnp.trace(of_readout.covariance(psi))) / (2 * variance)

    def one(rng_key):
        u = target.draw_prior(rng_key)
        free = target.bnn.template(target.x).readout.size
        size = free + sum(leaf.size for leaf in jax.tree.leaves(u))
        square = (inner_product(u, u) + free) / size  # φ_W ~ N(0, I), whatever u is
        return (target.potential(u), published(u), misfit(u, variance), misfit(u, variance / 2), square)

    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), 1), num_draws)
    found = jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=1_000))(keys)
    u, u_published, right, wrong, square = (np.asarray(column, np.float64) for column in found)
    weight, weight_published = np.exp(u.min() - u), np.exp(u_published.min() - u_published)
    posterior = {"misfit": weighted_mean(weight, right), "square": weighted_mean(weight, square)}
    return posterior, weighted_mean(weight_published, wrong)


def weighted_mean(weight: np.ndarray, values: np.ndarray) -> Measure:
    """By draws of these weights, which need not sum to 1."""
    weight = weight / weight.sum()
    mean = float(weight @ values)
    return Measure(mean, float(np.sqrt(weight**2 @ (values - mean) ** 2)))
