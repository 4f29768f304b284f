"""Scales sampled beside the weights: calibrated by simulation, and what that gains on real tables."""

import json
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from scipy.stats import chisquare

from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from widebnn import collectors, samplers, targets
from widebnn.models import BNN, FCN
from widebnn.tables import Measure, Results, Row, folder

PRIORS = {
    "noise_std": targets.LogNormal(0.4, 0.8),
    "readout_std": targets.LogNormal(1.0, 0.8),
    "weight_std": targets.LogNormal(1.4, 1.0),
}
LEAST_P = 0.001  # of ranks that are called uniform
NUM_SPLITS = 5  # of the tables that ship


@experiment(SETTINGS["learned_scales"])
def learned_scales(num_sets, num_train, width, num_draws, thin, burn_in, seed) -> Iterator[Row]:
    """Ranks of the scales and of the function that made a data set, among draws of its posterior.

    Where prior, data and sampler agree each rank is as likely as any other (Talts et al. 2018).

    Yields
    ------
    Rows with quantity, a scale or "f" at a new input, and by rank the number of data sets, `ranks`.
    """
    x_key, *keys = jax.random.split(jax.random.key(seed), num_sets + 1)
    x = jax.random.normal(x_key, (num_train + 1, 2))
    x, x_new = x[:-1], x[-1:]

    def of_data(y) -> targets.Scaled:
        bnn = BNN(FCN(2, width, bias_std=0.5, rngs=nnx.Rngs(0)), 1, noise_std=1.0)
        return targets.scaled(targets.marginal(bnn, x, y), **PRIORS)

    prior = of_data(jnp.zeros((num_train, 1)))

    def of_set(rng_key):
        truth_key, readout_key, noise_key, start_key, burn_key, run_key = jax.random.split(rng_key, 6)
        truth = prior.draw_prior(truth_key)
        psi = prior.at(truth).bnn.embedding(truth.network, jnp.concatenate([x, x_new]))
        f = psi @ jax.random.normal(readout_key, (psi.shape[1], 1))
        noise = prior.scales(truth)["noise_std"] * jax.random.normal(noise_key, (num_train, 1))
        target = of_data(f[:-1] + noise)
        kernel = samplers.function_space_hmc(0.1, jitter=1).bind(target)

        def step(state, key):
            return kernel.step(key, state)[0], None

        def draw(state, key):
            steps_key, draw_key = jax.random.split(key)
            state, _ = jax.lax.scan(step, state, jax.random.split(steps_key, thin))
            scales = jnp.stack(list(target.scales(state.position).values()))
            return state, jnp.append(scales, collectors.output(x_new)(target, state.position, draw_key))

        start_key, momentum_key = jax.random.split(start_key)
        start = kernel.init(prior.draw_prior(start_key), momentum_key)
        state, _ = jax.lax.scan(step, start, jax.random.split(burn_key, burn_in))
        _, found = jax.lax.scan(draw, state, jax.random.split(run_key, num_draws))
        wanted = jnp.append(jnp.stack(list(prior.scales(truth).values())), f[-1])
        return jnp.sum(found < wanted[None, :], axis=0)

    ranks = np.asarray(jax.jit(jax.vmap(of_set))(jnp.stack(keys)))
    for name, column in zip([*PRIORS, "f"], ranks.T, strict=True):
        yield {"quantity": name, "ranks": np.bincount(column, minlength=num_draws + 1).tolist()}


@learned_scales.claim("X-8")
def scales_are_calibrated(results: Results) -> Iterator[Finding]:
    rows = results.rows
    least = min(float(chisquare(row["ranks"]).pvalue) for row in rows)
    what = f"p-value of uniform ranks, the least of {len(rows)} times {len(rows)}"
    yield Finding(what, min(1.0, len(rows) * least), above=LEAST_P, decides=True)
    for data, gain in over_the_limit().items():
        yield Finding(
            f"{data}: NLL of 64 units less that of the limit", gain, below=0, degrees=NUM_SPLITS - 1
        )


def over_the_limit() -> dict[str, Measure]:
    """By table that ships, the score of a network of 64 units less that of the infinite width."""
    fits = json.loads((folder() / "tabular.json").read_text())["fits"]
    nll = {(fit["data"], fit["method"]): fit.get("nll") for fit in fits}
    return {
        data: Measure.over_splits(np.subtract(nll[data, "64 units"], nll[data, "NNGP"]))
        for data in dict.fromkeys(data for data, _ in nll)
    }
