"""Accuracy, calibration and weights over the temperature of the ELBO (Huix et al. 2022, Figures 1 and 5)."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from flax import nnx

from book.experiments.chain_summaries import rounded, shares
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.tempered_fits import curves, entropies, fits, flat
from book.experiments.trends import degrees_of_freedom
from widebnn import vi
from widebnn.data import ood_split
from widebnn.tables import Measure, Results, Row, Rows

MEAN_EDGES = np.linspace(-2, 2, 81)
STD_EDGES = np.linspace(0, 0.6, 61)
NUM_UNITS = 60


@experiment(SETTINGS["tempering"], parts="taus")
def tempering(*, dataset, outside, num_train, num_test, width, prior_variance, **settings) -> Iterator[Row]:
    """A two-layer network over the temperature of the ELBO: its predictions and its weights.

    Yields
    ------
    Rows with tau, eta and repeat; of the last epoch `log_likelihood`, per observation, and `kl`, per weight;
    what `widebnn.metrics.classification_summary` says; `mean_norm` and `std`, the root mean square of μ
    and the mean of σ; seconds. The first repeat also has `weights`: edges and shares of histograms of μ and
    σ, and ‖μ‖ and the mean of σ of the weights into and out of each of some hidden units.
    """
    images = ood_split(dataset, outside, num_train, num_test)

    def model(rngs: nnx.Rngs) -> vi.TwoLayer:
        return vi.TwoLayer(images.x_train.shape[1], width, images.num_classes, rngs=rngs)

    options = {"prior_variance": prior_variance}
    for row, fitted in fits(images, model, width, options, **settings):
        yield row | ({"weights": _weights(fitted.posterior)} if row["repeat"] == 0 else {})


tempering.claim("V-F1")(curves)
tempering.claim("V-F6b")(entropies)


@experiment(SETTINGS["published_temperature"], parts="initial_stds")
def published_temperature(initial_stds, **settings) -> Iterator[Row]:
    """The same network at the temperature that the published code takes for a τ, from several first σ.

    Yields
    ------
    The rows of `tempering` with `initial_std`.
    """
    for initial_std in initial_stds:
        for row in tempering(initial_std=initial_std, **settings):
            yield {"initial_std": initial_std} | row


@tempering.claim("V-F5")
def weights_over_tau(results: Results, beside: Sequence[Results]) -> Iterator[Finding]:
    rows, prior = results.rows, math.sqrt(results.settings["prior_variance"])
    known: dict[str, Any] = {"degrees": degrees_of_freedom(results)}
    (*_, std), (*_, norm) = rows.over("tau", "std"), rows.over("tau", "mean_norm")
    yield Finding("mean σ ÷ the prior's, largest τ", std / prior, above=0.95, below=1.05, **known)
    yield Finding("root mean square of μ ÷ the prior's σ, largest τ", norm / prior, below=0.05, **known)
    taus = rows.values("tau")
    what = "correlation of a unit's ‖μ‖ and mean σ"
    yield Finding(f"{what}, smallest τ", _correlation(rows, min(taus)), below=-0.5)
    yield Finding(f"{what}, largest τ", _correlation(rows, max(taus)), above=-0.5)
    for run in beside:
        known = {"degrees": degrees_of_freedom(run)}
        for tau, of in run.rows.by("tau"):
            low, *_, high = sorted(of.over("initial_std", "std"), key=lambda one: one.value)
            yield Finding(
                f"mean σ ÷ the prior's, τ = {tau:.2g}, first σ 0.1", high / prior, below=0.25, **known
            )
            what = f"mean σ, τ = {tau:.2g}, from the smallest first σ ÷ from the largest"
            yield Finding(what, low / high, above=0.5, **known)


def _correlation(rows: Rows, tau: float) -> Measure:
    """Of some hidden units in the first repeat, by Fisher's error."""
    weights = rows.one(tau=tau, repeat=0)["weights"]
    r = float(np.corrcoef(weights["unit_norm"], weights["unit_std"])[0, 1])
    return Measure(r, (1 - r**2) / math.sqrt(NUM_UNITS - 3))


def _weights(posterior: vi.MeanField) -> Row:
    """Histograms of μ and σ, and some hidden units, each with the weights into it and out of it."""
    means, stds = (
        np.concatenate([part["hidden"]["kernel"], np.transpose(part["readout"]["kernel"])])[:, :NUM_UNITS]
        for part in (posterior.mean, posterior.std)
    )
    return {
        "mean_edges": rounded(MEAN_EDGES.tolist()),
        "mean": shares(flat(posterior.mean), MEAN_EDGES),
        "std_edges": rounded(STD_EDGES.tolist()),
        "std": shares(flat(posterior.std), STD_EDGES),
        "unit_norm": rounded(np.linalg.norm(means, axis=0).tolist()),
        "unit_std": rounded(stds.mean(axis=0).tolist()),
    }
