"""The experiment on ResNet-20: its grid and its rows, on a network that compiles in seconds."""

import pytest

from book.experiments.resnet import resnet

from .judging import judged


@pytest.mark.parametrize(
    ("num_repeats", "num_epochs", "said"),
    [
        (3, 40, "reproduced"),
        (2, 40, "not testable at this scale"),
        (3, 39, "not testable at this scale"),
        (1, 10, "not testable at this scale"),
    ],
)
def test_few_repeats_or_short_fits_decide_nothing(num_repeats, num_epochs, said):
    numbers = {  # by τ: accuracy, confidence, NLL, ECE
        1e-5: (0.8, 0.85, 0.5, 0.05),
        1e-3: (0.75, 0.45, 1.0, 0.3),
        0.1: (0.1, 0.11, 2.3, 0.01),
    }
    names = "accuracy", "confidence", "nll", "ece"
    rows = [
        {"norm": "batch", "tau": tau, "repeat": repeat}
        | {name: number + 1e-4 * repeat for name, number in zip(names, of_tau, strict=True)}
        for tau, of_tau in numbers.items()
        for repeat in range(num_repeats)
    ]
    claim = resnet, "V-F2"
    config = {"norms": ["batch"], "num_repeats": num_repeats, "num_epochs": num_epochs}
    assert judged(*claim, rows, **config) == said
