"""Accuracy, calibration and weights over the temperature of the ELBO (Huix et al. 2022, Figures 1 and 5)."""

import math
from collections.abc import Iterator
from typing import Annotated

import numpy as np
from book.experiments.configuration import Count
from book.experiments.experiment import experiment
from book.experiments.fields import PriorVariance
from book.experiments.findings import Finding
from book.experiments.images import PIXELS
from book.experiments.ood_split import rounded, shares
from book.experiments.repeats import degrees_of_freedom
from book.experiments.tempered_fits import (
    RULE_OF_CURVES,
    RULE_OF_ENTROPIES,
    TemperedFits,
    curves,
    entropies,
    flat,
)
from flax import nnx
from widebnn import vi
from widebnn.tables import Measure, Results, Row

__all__ = ["Tempering", "tempering"]

MEAN_EDGES = np.linspace(-2, 2, 81)
STD_EDGES = np.linspace(0, 0.6, 61)
NUM_UNITS = 60
NUM_CLASSES = 10  # of each of the data sets


class Tempering(TemperedFits):
    """The two-layer ReLU network in 1/N scaling, with a prior N(0, `prior_variance`) and cross-entropy.

    Means start at N(0, 0.01²), as in `widebnn.vi.TwoLayer`.
    """

    width: Annotated[Count, "Width N of the hidden layer."] = 400
    prior_variance: PriorVariance = 0.2
    local: Annotated[bool, "Whether steps use local reparametrisation."] = True


@experiment(
    "a two-layer network over the temperature of the ELBO",
    scales={  # the paper states data, prior, m and repeats, other numbers are ours
        "smoke": Tempering(
            dataset="digits",
            outside="digits",
            num_train=500,
            num_test=300,
            taus=(1e-3, 1e-2, 0.1, 1.0),
            num_repeats=2,
            num_epochs=50,
            batch_size=50,
            learning_rate=0.02,
            initial_std=0.1,
            width=256,
        ),
        "laptop": Tempering(
            num_repeats=8, num_epochs=12, batch_size=500, learning_rate=0.01, initial_std=0.1, seed=1
        ),
        "colab": Tempering(
            taus=(1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 0.03, 0.1, 0.3, 1.0),
            batch_size=500,
            learning_rate=0.01,
            initial_std=0.1,
        ),
        "paper": Tempering(taus=(1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 0.03, 0.1, 0.3, 1.0), local=False),
    },
    parts="taus",
)
def tempering(config: Tempering) -> Iterator[Row]:
    """Fit q at each τ and repeat, and look at its predictions and its weights.

    Yields
    ------
    Rows with tau, eta and repeat; of the last epoch `log_likelihood`, per observation, and `kl`, per weight;
    what `book.experiments.classification_summary` says; `mean_norm` and `std`, the root mean square of μ
    and the mean of σ; seconds. The first repeat also has `weights`: edges and shares of histograms of μ and
    σ, and ‖μ‖ and the mean of σ of the weights into and out of each of some hidden units.
    """
    images = config.images(colour=False)

    def model(rngs: nnx.Rngs) -> vi.TwoLayer:
        return vi.TwoLayer(images.x_train.shape[1], config.width, images.num_classes, rngs=rngs)

    options = {"prior_variance": config.prior_variance, "local": config.local}
    for row, fitted in config.fits(images, model, config.width, **options):
        yield row | ({"weights": _weights(fitted.posterior)} if row["repeat"] == 0 else {})


tempering.claim(
    "V-F1",
    where="Figure 1",
    claim="Over τ a two-layer network goes from accurate and confident to the prior, and is least calibrated "
    "between.",
    paper="MNIST: accuracy falls and NLL rises at large τ, ECE is low at both ends",
    rule=RULE_OF_CURVES,
    page="19-tempering#fig-tempering-curves",
)(curves)


@tempering.claim(
    "V-F5",
    where="Figure 5",
    claim="At large τ the variational means and deviations are those of the prior, at small τ deviations are "
    "near 0.",
    paper="as the deviation of the prior, which histograms on MNIST come close to at large τ; Appendix C.1 "
    "states a variance of 1/5",
    number="0.2",
    rule="At the largest τ the mean deviation is within a twentieth of the prior's, the means are below a "
    "twentieth of it and hardly a deviation lies below half of it; at the smallest τ most do, and the means "
    "are larger. Errors are those of repeats, judged by Student's t; shares are those of the first.",
    would_change="τ down to 1e-6, and the deviation of 0.2 that Appendix C.3 states for this figure.",
    page="19-tempering#fig-tempering-weights",
)
def weights_over_tau(results: Results) -> Iterator[Finding]:
    rows, prior = results.rows, math.sqrt(results.settings["prior_variance"])
    degrees = degrees_of_freedom(results)
    std, norm = rows.over("tau", "std"), rows.over("tau", "mean_norm")
    yield Finding("mean σ ÷ the prior's, largest τ", std[-1] / prior, above=0.95, below=1.05, degrees=degrees)
    small = norm[-1] / prior
    yield Finding("root mean square of μ ÷ the prior's σ, largest τ", small, below=0.05, degrees=degrees)
    grown = norm[0] / norm[-1]
    yield Finding("root mean square of μ, smallest τ ÷ largest", grown, above=1, degrees=degrees)
    taus = min(rows.values("tau")), max(rows.values("tau"))
    num_weights = results.settings["width"] * (PIXELS + NUM_CLASSES)
    cold, warm = (
        _share_below(prior / 2, rows.one(tau=tau, repeat=0)["weights"], num_weights) for tau in taus
    )
    yield Finding("share of σ below half the prior's, smallest τ", cold, above=0.5)
    yield Finding("share of σ below half the prior's, largest τ", warm, below=0.01)


tempering.claim(
    "V-F6b",
    where="Figure 6, on other data",
    claim="Predictive entropies rise with τ inside and outside the distribution (MNIST against "
    "Fashion-MNIST).",
    paper="the same, on data that the paper does not use",
    rule=RULE_OF_ENTROPIES,
    page="19-tempering#fig-tempering-entropy",
)(entropies)


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
        "mean_edges": [rounded(edge) for edge in MEAN_EDGES],
        "mean": shares(flat(posterior.mean), MEAN_EDGES),
        "std_edges": [rounded(edge) for edge in STD_EDGES],
        "std": shares(flat(posterior.std), STD_EDGES),
        "unit_norm": [rounded(norm) for norm in np.linalg.norm(means, axis=0)],
        "unit_std": [rounded(std) for std in stds.mean(axis=0)],
    }
