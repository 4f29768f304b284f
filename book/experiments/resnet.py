"""ResNet-20 over the temperature of the ELBO, in and out of distribution (Huix et al. 2022, Figs. 2, 6)."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Annotated

from book.experiments.experiment import experiment
from book.experiments.findings import Finding
from book.experiments.tempered_fits import RULE_OF_CURVES, RULE_OF_ENTROPIES, TemperedFits, curves, entropies
from flax import nnx
from widebnn import data, vi
from widebnn._check import one_of
from widebnn.tables import Results, Row

__all__ = ["ResNet", "resnet"]

TOP_CHANNELS = 64
LEAST_REPEATS, LEAST_EPOCHS = 3, 40
PRIOR_VARIANCES = {"batch": 0.2, "none": 1.0}
"""By normaliser: that of the paper, and the one that scaled convolutions are made for."""


class ResNet(TemperedFits):
    """`widebnn.vi.ResNet20` in 1/N scaling; N = 64, its top channels, in η = τp/N."""

    dataset: str = "cifar10"
    outside: str = "svhn"
    num_train: int = 50_000
    num_test: int = 5_000
    taus: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2, 0.1)
    num_epochs: int = 200
    norms: Annotated[tuple[str, ...], partial(one_of, PRIOR_VARIANCES), "Normalisers of the network."] = (
        "batch",
    )
    augment: Annotated[bool, "Whether images are flipped and cropped at each step."] = True


@experiment(
    "ResNet-20 over the temperature of the ELBO",
    scales={  # the paper states data, augmentation, prior, m and repeats
        "smoke": ResNet(
            dataset="digits",
            outside="digits",
            num_train=256,
            num_test=100,
            taus=(1e-4, 1.0),
            num_repeats=1,
            num_epochs=3,
            batch_size=32,
            learning_rate=0.01,
            initial_std=0.01,
            num_draws=5,
            augment=False,
        ),
        "laptop": ResNet(
            outside="fashion_mnist",
            num_train=4_000,
            num_test=500,
            taus=(1e-5, 1e-3, 1e-2, 0.1),
            num_repeats=1,
            num_epochs=10,
            batch_size=100,
            learning_rate=0.05,
            initial_std=0.01,
            num_draws=10,
            seed=1,
        ),
        "colab": ResNet(  # a third of the images, so that three repeats take no longer than one of all
            outside="fashion_mnist",
            num_train=16_000,
            num_test=2_000,
            num_repeats=3,
            num_epochs=40,
            batch_size=250,
            learning_rate=0.02,
            initial_std=0.01,
        ),
        "paper": ResNet(norms=("batch", "none")),
    },
    parts=("norms", "taus"),
)
def resnet(config: ResNet) -> Iterator[Row]:
    """Fit ResNet-20 with each normaliser at each τ and repeat, and look at its predictions.

    Yields
    ------
    Rows with norm, and all that `book.experiments.tempering` has but `weights`.
    """
    images = config.images(colour=True)
    augment = partial(data.flip_and_crop, fill=images.black) if config.augment else None
    for norm in config.norms:

        def model(rngs: nnx.Rngs, norm=norm) -> vi.ResNet20:
            return vi.ResNet20(images.x_train.shape[3], images.num_classes, norm=norm, rngs=rngs)

        options = {"prior_variance": PRIOR_VARIANCES[norm], "augment": augment}
        for row, _ in config.fits(images, model, TOP_CHANNELS, **options):
            yield {"norm": norm} | row


@resnet.claim(
    "V-F2",
    where="Figure 2",
    claim="Over τ ResNet-20, with augmentation and batch normalisation, goes from accurate and confident to "
    "the prior, and is least calibrated between.",
    paper="CIFAR-10: the same trends",
    rule=RULE_OF_CURVES + " They are resolved by three repeats or more of forty epochs or more.",
    would_change="All 50,000 images, 40 to 200 epochs, and three repeats or more, on an accelerator.",
    page="20-resnet#fig-resnet-curves",
)
def curves_of_the_first_normaliser(results: Results) -> Iterator[Finding]:
    """As in the paper, where it is batch normalisation."""
    is_long = (
        results.settings["num_repeats"] >= LEAST_REPEATS and results.settings["num_epochs"] >= LEAST_EPOCHS
    )
    for finding in curves(_first(results)):
        yield replace(finding, resolved=is_long)


@resnet.claim(
    "V-F6a",
    where="Figure 6",
    claim="Predictive entropies rise with τ inside and outside the distribution (CIFAR-10 against SVHN).",
    paper="confident inside and diffuse outside at small τ, spiky at high values at large τ",
    rule=RULE_OF_ENTROPIES + " Other images outside than those of SVHN do not count.",
    would_change="A run with SVHN outside the distribution, and fits of all images.",
    page="20-resnet#fig-resnet-entropy",
)
def entropies_of_the_first_normaliser(results: Results) -> Iterator[Finding]:
    """As in the paper, where it is batch normalisation."""
    if results.settings["outside"] == "svhn":
        yield from entropies(_first(results))


def _first(results: Results) -> Results:
    """Those of the first normaliser."""
    return replace(results, rows=results.rows.where(norm=results.settings["norms"][0]))
