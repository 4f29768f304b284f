"""ResNet-20 over the temperature of the ELBO, in and out of distribution (Huix et al. 2022, Figs. 2, 6)."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from flax import nnx

from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.tempered_fits import curves, entropies, fits
from widebnn import data, vi
from widebnn.tables import Results, Row

TOP_CHANNELS = 64
LEAST_REPEATS, LEAST_EPOCHS = 3, 40
PRIOR_VARIANCES = {"batch": 0.2, "none": 1.0}
"""By normaliser: that of the paper, and the one that scaled convolutions are made for."""


@experiment(SETTINGS["resnet"], parts=("norms", "taus"))
def resnet(*, dataset, outside, num_train, num_test, norms, augment, **settings) -> Iterator[Row]:
    """ResNet-20 over the temperature of the ELBO, with each normaliser, in and out of distribution.

    Yields
    ------
    Rows with norm, and all that `book.experiments.tempering` has but `weights`.
    """
    images = data.ood_split(dataset, outside, num_train, num_test, colour=True)
    augment = partial(data.flip_and_crop, fill=images.black) if augment else None
    for norm in norms:

        def model(rngs: nnx.Rngs, norm=norm) -> vi.ResNet20:
            return vi.ResNet20(images.x_train.shape[3], images.num_classes, norm=norm, rngs=rngs)

        options = {"prior_variance": PRIOR_VARIANCES[norm], "augment": augment}
        for row, _ in fits(images, model, TOP_CHANNELS, options, **settings):
            yield {"norm": norm} | row


@resnet.claim("V-F2")
def curves_of_the_first_normaliser(results: Results) -> Iterator[Finding]:
    """As in the paper, where it is batch normalisation."""
    is_long = (
        results.settings["num_repeats"] >= LEAST_REPEATS and results.settings["num_epochs"] >= LEAST_EPOCHS
    )
    for finding in curves(_first(results)):
        yield replace(finding, resolved=is_long)


@resnet.claim("V-F6a")
def entropies_of_the_first_normaliser(results: Results) -> Iterator[Finding]:
    """As in the paper, where it is batch normalisation."""
    if results.settings["outside"] == "svhn":
        yield from entropies(_first(results))


def _first(results: Results) -> Results:
    """Those of the first normaliser."""
    return replace(results, rows=results.rows.where(norm=results.settings["norms"][0]))
