"""Accuracy, calibration and weights over the temperature of the ELBO (Huix et al. 2022, Figures 1 and 5)."""

import math
from collections.abc import Iterator

import numpy as np
from flax import nnx

from book.experiments.chain_summaries import rounded, shares
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.images import PIXELS
from book.experiments.tempered_fits import curves, entropies, fits, flat
from book.experiments.trends import degrees_of_freedom
from widebnn import vi
from widebnn.data import ood_split
from widebnn.tables import Measure, Results, Row

MEAN_EDGES = np.linspace(-2, 2, 81)
STD_EDGES = np.linspace(0, 0.6, 61)
NUM_UNITS = 60
NUM_CLASSES = 10  # of each of the data sets


@experiment(SETTINGS["tempering"], parts="taus")
def tempering(
    *, dataset, outside, num_train, num_test, width, prior_variance, local, **settings
) -> Iterator[Row]:
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

    options = {"prior_variance": prior_variance, "local": local}
    for row, fitted in fits(images, model, width, options, **settings):
        yield row | ({"weights": _weights(fitted.posterior)} if row["repeat"] == 0 else {})


tempering.claim("V-F1")(curves)
tempering.claim("V-F6b")(entropies)


@tempering.claim("V-F5")
def weights_over_tau(results: Results) -> Iterator[Finding]:
    rows, prior = results.rows, math.sqrt(results.settings["prior_variance"])
    degrees = degrees_of_freedom(results)
    std, norm = rows.over("tau", "std"), rows.over("tau", "mean_norm")
    yield Finding("mean σ ÷ the prior's, largest τ", std[-1] / prior, above=0.95, below=1.05, degrees=degrees)
    small = norm[-1] / prior
    yield Finding("root mean square of μ ÷ the prior's σ, largest τ", small, below=0.05, degrees=degrees)
    grown = norm[0] / norm[-1]
    yield Finding("root mean square of μ, smallest τ ÷ largest", grown, above=1, degrees=degrees)
    yield Finding(
        "mean σ ÷ the prior's, smallest τ", std[0] / prior, below=0.05, null=1, degrees=degrees, decides=True
    )
    taus = min(rows.values("tau")), max(rows.values("tau"))
    num_weights = results.settings["width"] * (PIXELS + NUM_CLASSES)
    cold, warm = (
        _share_below(prior / 2, rows.one(tau=tau, repeat=0)["weights"], num_weights) for tau in taus
    )
    yield Finding("share of σ below half the prior's, smallest τ less largest", cold - warm, above=0)


def _share_below(bound: float, histograms: Row, num_weights: int) -> Measure:
    """Of the deviations, with its binomial error; that of a share of none is one in `num_weights`."""
    share = float(sum(np.array(histograms["std"])[np.array(histograms["std_edges"])[1:] <= bound]))
    return Measure(share, max(math.sqrt(share * (1 - share) / num_weights), 1 / num_weights))


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
