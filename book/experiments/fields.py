"""Fields that many configurations have."""

from functools import partial
from typing import Annotated

from book.experiments.configuration import Count, Counts, Positive, Several
from book.experiments.images import LOADERS
from widebnn._check import one_of
from widebnn.vi.models import SCALINGS

__all__ = [
    "Images",
    "Losses",
    "Noise",
    "NumChains",
    "NumProjections",
    "NumTest",
    "NumTrain",
    "PriorVariance",
    "Scalings",
    "Seed",
    "Thin",
    "Widths",
]

Images = Annotated[str, partial(one_of, LOADERS), "Images, by name."]
NumTrain = Annotated[Count, "Images that are observed."]
NumTest = Annotated[Count, "Images that are predicted, capped at the number available."]
NumChains = Annotated[Several, "Chains, each from a prior draw of its own."]
Thin = Annotated[Count, "Steps from one draw to the next."]
NumProjections = Annotated[Several, "Random directions in the space of the weights that the data inform."]
Widths = Annotated[Counts, "Part of the grid."]
Losses = Annotated[tuple[str, ...], partial(one_of, ("square", "cross-entropy")), "Part of the grid."]
Scalings = Annotated[tuple[str, ...], partial(one_of, SCALINGS), "Of outputs: part of the grid."]
PriorVariance = Annotated[Positive, "v, the prior variance of a weight."]
Noise = Annotated[Positive, "σ."]
Seed = Annotated[int, "Seed for all randomness."]
