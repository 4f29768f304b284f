"""Whether the sign of c₁ says on which tables a finite network predicts better than its limit (X-12)."""

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax.tree_util import Partial
from scipy.special import logsumexp
from scipy.stats import norm

from book.experiments.chain_summaries import behind
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.limiting_scales import at_most_probable_scales, kernels
from book.experiments.regression_tables import Split, split
from widebnn import collectors, nngp, smc, targets
from widebnn.diagnostics import convergence_summary
from widebnn.models import BNN
from widebnn.tables import Measure, Results, Row

LEAST_TABLES = 6
"""Tables on which both signs must be known, for their share to say anything."""


@experiment(SETTINGS["evidence_sign"], parts=(("datasets", "per_column"),))
def evidence_sign(
    datasets, per_column, num_train, num_test, width, splits, num_particles, num_islands, seed
) -> Iterator[Row]:
    """Held-out NLL of a network and of its limit at the same scales, over tables whose c₁ has either sign.

    Yields
    ------
    Rows with dataset, per_column and split: `slope`, c₁, with its error; `limit`, log Z_∞, and `log_evidence`
    of the network, with its error; the NLL of both, `nll_limit` and `nll_network`, in units of standardised
    targets; the number of temperatures; R̂ and effective samples of means at new inputs, over islands.
    """
    for dataset, has_columns in zip(datasets, per_column, strict=True):
        for number in splits:
            data = split(dataset, num_train, num_test, number)
            networks = at_most_probable_scales(data.x, data.y, has_columns)
            rng_key = jax.random.fold_in(jax.random.key(seed), number)
            slope = nngp.evidence_slope(networks(1), data.x, data.y, rng_key)
            row = {"dataset": dataset, "per_column": has_columns, "split": number}
            row |= Measure(slope.slope, slope.error).columns("slope") | {"limit": slope.log_evidence}
            row |= {"nll_limit": nll_of_limit(networks(1), data)}
            yield row | of_network(rng_key, networks(width), data, num_particles, num_islands)


def nll_of_limit(bnn: BNN, data: Split) -> float:
    """Of the Gaussian process, in float64."""
    n, kernel = len(data.x), kernels(bnn, data.x, data.x_test)
    noise = float(bnn.noise_std) ** 2
    factor = np.linalg.cholesky(kernel[:n, :n] + noise * np.eye(n))
    white, cross = (scipy.linalg.solve_triangular(factor, of, lower=True) for of in (data.y, kernel[:n, n:]))
    variance = np.diag(kernel)[n:] - np.sum(cross**2, axis=0) + noise
    return float(-norm.logpdf(data.y_test, cross.T @ white, np.sqrt(variance)[:, None]).mean())


def of_network(rng_key, bnn: BNN, data: Split, num_particles: int, num_islands: int) -> Row:
    """The NLL of the mixture over particles of all islands, and what is said of them."""
    target = targets.marginal(bnn, data.x, data.y)
    moments = Partial(_side_by_side, collectors.predictive_moments(data.x_test))
    options = {"num_particles": num_particles, "num_islands": num_islands, "progress": False}
    run = smc(rng_key, target, collect={"moments": moments}, **options)
    found = run["moments"].astype(np.float64)  # (island, particle, row, 2)
    each = norm.logpdf(data.y_test[:, 0], found[..., 0], np.sqrt(found[..., 1]))
    summary = convergence_summary(found[..., 0])
    return {
        "nll_network": float(
            math.log(found[..., 0, 0].size) - np.asarray(logsumexp(each, axis=(0, 1))).mean()
        ),
        **Measure(run.log_evidence, run.log_evidence_error).columns("log_evidence"),
        "num_temperatures": len(run.temperatures),
        "rhat": summary["rhat"],
        "ess": summary["ess_bulk"],
    }


def _side_by_side(moments, target, position):
    mean, variance = moments(target, position)
    return jnp.concatenate([mean, variance[:, None]], axis=1)


@evidence_sign.claim("X-12")
def sign_tells_tables_apart(results: Results) -> Iterator[Finding]:
    rows, settings = results.rows, results.settings
    share = settings["num_test"] / (settings["num_train"] + settings["num_test"])
    degrees = len(settings["splits"]) - 1
    particles = behind((row["ess"] for row in rows), (row["rhat"] for row in rows))
    for has_columns, of_scales in rows.by("per_column"):
        agree, signs, lines = [], [], []
        for dataset, of in of_scales.by("dataset"):
            slope = Measure.over_splits(of.column("slope"), share)
            worse = Measure.over_splits(of.column("nll_network") - of.column("nll_limit"), share)
            if all(abs(one.value) > 2 * (one.error or 0) for one in (slope, worse)):
                agree.append(slope.value * worse.value < 0)
                signs.append(slope.value > 0)
            wanted: dict[str, Any] = {"below": 0} if slope.value > 0 else {"above": 0}
            scales = "a scale per column" if has_columns else "one scale"
            what = f"{dataset}, {scales}, c₁ = {slope}: NLL less that of the limit"
            lines.append(Finding(what, worse, **wanted, degrees=degrees, chains=particles))
        scales = "a scale per column" if has_columns else "one scale"
        number = len(agree)
        is_told = number >= LEAST_TABLES and len(set(signs)) == 2
        near = (sum(agree) + 1) / (number + 2)  # so that no error is 0
        found = Measure(float(np.mean(agree or [math.nan])), math.sqrt(near * (1 - near) / max(number, 1)))
        what = f"{scales}: share of {number} tables on which the signs agree"
        yield Finding(what, found, above=0.5, decides=not has_columns, resolved=is_told, chains=particles)
        yield from lines
