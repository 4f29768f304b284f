"""The experiment on slices: what its rows hold."""

import dataclasses

import numpy as np
import pytest

from widebnn.experiments import LANDSCAPE, Landscape, landscape

TINY = dataclasses.replace(
    LANDSCAPE["smoke"], problems=((4, 6), (64, 6)), training_time=0.02, resolution=4, num_products=8
)


@pytest.fixture(scope="module")
def rows():
    seen = []
    rows = landscape(TINY, on_row=seen.append)
    assert rows == seen
    return rows


@pytest.mark.slow
def test_rows_cover_the_grid(rows):
    assert [(r["width"], r["num_train"], r["parametrisation"]) for r in rows] == [
        (w, n, p) for w, n in TINY.problems for p in "θφ"
    ]
    for row in rows:
        for name in ("barrier_potential", "barrier_energy", "curvature"):
            assert 0 <= row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
        assert len(row["potential"]) == 15 and min(row["potential"]) == 0
        assert row["spread_potential"] == pytest.approx(np.std(row["potential"]), rel=1e-3, abs=0.01)
        assert row["curvature_residual"] < 0.2 * row["curvature_high"]


def test_both_parametrisations_have_the_same_trained_networks(rows):
    for theta, phi in zip(rows[::2], rows[1::2], strict=True):
        assert (theta["misfit"], theta["norm"]) == (phi["misfit"], phi["norm"])


def test_repriorisation_flattens_what_it_meets(rows):
    for theta, phi in zip(rows[::2], rows[1::2], strict=True):
        assert phi["curvature"] < theta["curvature"]
        assert phi["barrier_potential"] < theta["barrier_potential"]


def test_bad_configurations_are_refused_before_anything_runs():
    words = "dataset must be one of 'cifar10', 'digits', 'mnist'; got 'imagenet'"
    with pytest.raises(ValueError, match=words):
        landscape(dataclasses.replace(TINY, dataset="imagenet"), on_row=pytest.fail)


def test_paper_scale_has_what_the_paper_states():
    paper = LANDSCAPE["paper"]
    assert isinstance(paper, Landscape)
    assert {n for w, n in paper.problems if w != 128} == {128}
    assert {w for w, n in paper.problems if n != 128} == {128}
    assert paper.noise_std == 0.1
