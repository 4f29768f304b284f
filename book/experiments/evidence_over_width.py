"""The evidence of networks with one hidden layer over their width (X-10, X-11)."""

import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from book.experiments.chain_summaries import jackknife
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.limiting_scales import at_most_probable_scales, kernels
from book.experiments.regression_tables import Split, split
from widebnn import nngp, smc, targets
from widebnn.models import BNN
from widebnn.tables import Measure, Results, Row, Rows

LEAST_EFFECTIVE = 0.1
"""Share of prior draws that must be effective where their mean counts."""
LEAST_WIDTH = 64
"""From which the expansion in 1/d is asked for."""
AT_ONCE = 100


@experiment(SETTINGS["evidence_over_width"], parts="datasets")
def evidence_over_width(
    datasets, num_train, widths, repeats, num_particles, num_draws, num_units, seed
) -> Iterator[Row]:
    """Evidence of finite networks at the most probable scales of their limit, and c₁ of one unit.

    Yields
    ------
    Rows with dataset and width: `limit`, log Z_∞; `slope`, c₁, with its error; of each repeat, a pilot and an
    island of `widebnn.smc`, `log_evidences` and `num_temperatures`; `difference`, log Z_d − log Z_∞, with its
    error, by draws from the prior where a tenth of them are effective, and else by the islands, as `source`
    says.
    """
    for dataset in datasets:
        data = split(dataset, num_train, 0, seed)
        networks = at_most_probable_scales(data.x, data.y)
        precise = {"relative_error": 0.02, "max_units": num_units}
        slope = nngp.evidence_slope(networks(1), data.x, data.y, jax.random.key(seed), **precise)
        found = {"dataset": dataset, "limit": slope.log_evidence}
        found |= Measure(slope.slope, slope.error).columns("slope")
        for width in widths:
            bnn = networks(width)
            target = targets.marginal(bnn, data.x, data.y)
            options = {"num_particles": num_particles, "num_islands": 1, "progress": False}
            keys = [jax.random.fold_in(jax.random.key(seed), repeat) for repeat in repeats]
            runs = [smc(key, target, **options) for key in keys]
            row = {"width": width, "log_evidences": [run.log_evidence for run in runs]}
            row |= {"num_temperatures": [len(run.temperatures) for run in runs]}
            by_draws, share = by_prior_draws(jax.random.key(seed + 1), bnn, data, num_draws)
            is_effective = share > LEAST_EFFECTIVE
            difference = by_draws if is_effective else by_islands(row["log_evidences"], slope.log_evidence)
            row |= {"effective": share, "source": "prior draws" if is_effective else "particles"}
            yield found | row | difference.columns("difference")


def by_islands(log_evidences: list[float], limit: float) -> Measure:
    """log of the mean of Ẑ ÷ Z_∞, and its error by the jackknife."""

    def log_mean(values):
        return float(np.logaddexp.reduce(values) - math.log(len(values)))

    return jackknife(log_mean, np.array(log_evidences) - limit)


def by_prior_draws(rng_key, bnn: BNN, data: Split, num_draws: int) -> tuple[Measure, float]:
    """log Z_d − log Z_∞ by draws from the prior, and the share of them that are effective.

    With K̂ in place of K, log Z_∞ is log p(y | K̂), of which the mean of exp is Z_d. ⟨G, K̂ − K⟩ has mean 0 and
    is added as a control variate: it leaves an error of order 1/d.
    """
    target = targets.marginal(bnn, data.x, data.y)
    kernel, d_out = kernels(bnn, data.x), data.y.shape[1]
    noise = float(bnn.noise_std) ** 2 * np.eye(len(kernel))
    inverse = np.linalg.inv(kernel + noise)
    alpha = inverse @ data.y
    gradient = (d_out * inverse - alpha @ alpha.T) / 2

    def log_density(k):
        factor = np.linalg.cholesky(k + noise)
        white = scipy.linalg.solve_triangular(factor, data.y, lower=True)
        return -np.sum(white**2) / 2 - d_out * np.log(np.diag(factor)).sum()

    gains, controls = [], []
    with threadpool_limits(1, user_api="blas"):
        for keys in np.split(jax.random.split(rng_key, num_draws), range(AT_ONCE, num_draws, AT_ONCE)):
            for psi in np.asarray(_embeddings(target, keys), np.float64):
                drawn = psi @ psi.T
                gains.append(log_density(drawn) - log_density(kernel))
                controls.append(np.sum(gradient * (drawn - kernel)))
    weights = np.exp(np.array(gains) - max(gains))
    share = float(weights.sum() ** 2 / np.sum(weights**2) / num_draws)
    if share <= LEAST_EFFECTIVE:
        return Measure(math.nan), share
    ratio = Measure.mean(np.exp(gains) + np.array(controls))
    return Measure(math.log(ratio.value), ratio.error and ratio.error / ratio.value), share


@jax.jit
def _embeddings(target, keys):
    return jax.lax.map(lambda key: target.embedding(target.draw_prior(key)), keys)


@evidence_over_width.claim("X-10")
def slope_of_one_unit(results: Results) -> Iterator[Finding]:
    degrees = len(results.settings["repeats"]) - 1
    rows = Rows(row for row in results.rows if row["width"] >= LEAST_WIDTH)
    widest = max(rows.values("width"))
    for row in rows:
        slope = Measure.of(row, "slope")
        sign = math.copysign(1, slope.value)
        measured = sign * row["width"] * np.array(Measure.of(row, "difference"))
        ratio = Measure(*map(float, measured)) / Measure(abs(slope.value), slope.error)
        what = f"{row['dataset']}, width {row['width']:,}: d (log Z_d − log Z_∞) ÷ c₁"
        is_by_draws = row["source"] == "prior draws"
        size: dict[str, Any] = {"above": 0.5, "below": 1.5} if row["width"] == widest else {"above": 0}
        yield Finding(what, ratio, **size, degrees=math.inf if is_by_draws else degrees)


@evidence_over_width.claim("X-11")
def fewer_temperatures(rows: Rows) -> Iterator[Finding]:
    for dataset, of in rows.by("dataset"):
        counts = {row["width"]: np.array(row["num_temperatures"], float) for row in of}
        means = {width: Measure.mean(count) for width, count in counts.items()}
        degrees = len(of[0]["num_temperatures"]) - 1
        narrow, wide = min(means), max(means)
        what = f"{dataset}: temperatures at width {wide:,} ÷ {narrow:,}"
        yield Finding(what, means[wide] / means[narrow], below=0.5, degrees=degrees)
