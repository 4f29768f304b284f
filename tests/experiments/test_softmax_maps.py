"""The experiments under a softmax likelihood: what their rows hold, and that their summaries are right."""

import numpy as np
import pytest

from book.experiments.softmax_maps import LABELLED, _std, laplace_map, softmax_gain

from .judging import findings, judged


def made(gains: dict[int, float], more: float = 1.0, ess: float = 0.05, error: float = 1e-4):
    """Rows over width: the better Gaussian map has `gains` times the identity's, the Laplace `more` of it."""
    per_map = {"identity": lambda g: 1.0, "Gaussian, λ = σ²": lambda g: g / 3, "Gaussian, λ = k": lambda g: g}
    per_map["Laplace"] = lambda g: g * more
    return [
        {"width": width, "map": name, "ms_per_step": 30.0 if name == "Laplace" else 1.0}
        | {f"ess_{of}": ess * factor(gain) for of in ("projections", "predictions")}
        | {f"ess_{of}_error": error for of in ("projections", "predictions")}
        | {f"rhat_{of}": 1.005 if name == "identity" else 1.02 for of in ("projections", "predictions")}
        for width, gain in gains.items()
        for name, factor in per_map.items()
    ]


@pytest.mark.parametrize(
    ("widest", "num_steps", "word"),
    [
        (1.3, 1_000, "holds"),
        (0.7, 1_000, "fails"),
        (1.0, 1_000, "open"),
        (1.3, 300, "open"),  # 120 effective samples of the identity
    ],
)
def test_the_better_gaussian_map_at_the_widest_network_decides(widest, num_steps, word):
    claim = softmax_gain, "H-F11a"
    rows = made({128: widest, 8: 0.5, 32: 9.0})
    assert judged(*claim, rows, num_chains=8, num_steps=num_steps) == word
    found = findings(*claim, rows, num_chains=8, num_steps=num_steps)
    assert [finding.decides for finding in found] == [False, True, False, False] + [False] * 4
    published = round(widest / 3, 3)  # λ = σ²
    assert [round(f.value, 3) for f in found] == [0.5, widest, round(widest - 0.5, 3), published] * 2


@pytest.mark.parametrize(
    ("gain", "more", "word"),
    [
        (2.0, 1.2, "holds in part"),  # a second is worth less than without a map
        (0.5, 1.2, "holds in part"),  # a step too
        (0.5, 0.9, "fails"),
        (50.0, 1.2, "holds"),
    ],
)
def test_the_laplace_map_is_compared_with_the_better_gaussian_map_and_with_none(gain, more, word):
    claim = laplace_map, "H-F11b"
    rows = made({8: 1.0, 128: gain}, more)
    assert judged(*claim, rows, num_chains=8, num_steps=1_000) == word
    found = findings(*claim, rows, num_chains=8, num_steps=1_000)
    assert [round(f.value, 3) for f in found] == [more, gain * more, round(gain * more / 30, 3)] * 2
    assert found[0].chains.ess == pytest.approx(400 * gain * min(more, 1)) and found[0].chains.rhat == 1.02


def test_standard_error_of_a_standard_deviation():
    draws = np.random.default_rng(0).standard_normal((500, 400))
    found = np.array([_std(row) for row in draws])
    assert abs(found[:, 1].mean() / found[:, 0].std() - 1) < 5 / np.sqrt(2 * 500)


def test_two_digits_are_two_classes_in_common_units():
    x, labels, x_new, num_classes = LABELLED["two digits"](64)
    assert x.shape == (64, 4)
    assert x_new.shape == (20, 4)
    assert set(labels) == {0, 1} and num_classes == 2
    assert abs(float(x.mean())) < 1e-5
    assert abs(float(x.std()) - 1) < 1e-5
    spread = np.asarray(x).std(axis=0)
    assert (np.diff(spread) < 0).all()  # leading components first
