"""ResNet-20 over the temperature of the ELBO, in and out of distribution (Huix et al. 2022, Figs. 2, 6)."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from flax import nnx

from widebnn import data, vi
from widebnn._check import one_of
from widebnn.experiments.settings.ood_split import InAndOut
from widebnn.experiments.variational.tempering import TemperedFits, adam, checked, row_of

__all__ = ["RESNET", "ResNet", "resnet"]

TOP_CHANNELS = 64
PRIOR_VARIANCES = {"batch": 0.2, "none": 1.0}
"""By normaliser: that of the paper, and the one that scaled convolutions are made for."""


@dataclass(frozen=True)
class ResNet(TemperedFits):
    """`widebnn.vi.ResNet20` in 1/N scaling; N = 64, its top channels, in η = τp/N.

    Attributes
    ----------
    norms
        "batch", "none" or both, as `widebnn.vi.ResNet20` has them.
    augment
        Whether images are flipped and cropped at each step.
    """

    dataset: str = "cifar10"
    outside: str = "svhn"
    num_train: int = 50_000
    num_test: int = 5_000
    taus: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2, 0.1)
    num_epochs: int = 200
    norms: tuple[str, ...] = ("batch",)
    augment: bool = True


RESNET = {
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
    ),
    "colab": ResNet(num_repeats=1, num_epochs=40, learning_rate=0.02, initial_std=0.01),
    "paper": ResNet(norms=("batch", "none")),
}
"""The configuration at each scale; the paper states data, augmentation, prior, m and repeats."""


def resnet(config: ResNet, on_row: Callable[[dict[str, Any]], None] = lambda row: None) -> list[dict]:
    """Fit ResNet-20 at each τ and repeat with each normaliser, and look at its predictions.

    Parameters
    ----------
    config
        What to run.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with norm, and all that `widebnn.experiments.tempering` has but `weights`.

    Raises
    ------
    ValueError
        If a number is out of range, a name is unknown, or there are not so many images.
    OSError
        If the images have to be downloaded and cannot be.
    """
    for norm in config.norms:
        one_of(PRIOR_VARIANCES, norm=norm)
    images = checked(config)
    rows = []
    for norm in config.norms:
        for repeat in range(config.num_repeats):
            for tau in config.taus:
                rows.append({"norm": norm} | _row(config, images, norm, tau, repeat))
                on_row(rows[-1])
    return rows


def _row(config: ResNet, images: InAndOut, norm: str, tau: float, repeat: int) -> dict[str, Any]:
    fit_key, predict_key = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), repeat))
    rngs = nnx.Rngs(jax.random.fold_in(fit_key, 0))
    fitted = vi.fit(
        fit_key,
        vi.ResNet20(images.x_train.shape[3], images.num_classes, norm=norm, rngs=rngs),
        images.x_train,
        images.labels_train,
        vi.cross_entropy,
        adam(config),
        num_epochs=config.num_epochs,
        batch_size=config.batch_size,
        temperature=vi.temperature(tau, len(images.x_train), TOP_CHANNELS),
        prior_variance=PRIOR_VARIANCES[norm],
        initial_std=config.initial_std,
        augment=functools.partial(data.flip_and_crop, fill=images.black) if config.augment else None,
        progress=False,
    )
    return row_of(config, images, tau, repeat, fitted, predict_key)
