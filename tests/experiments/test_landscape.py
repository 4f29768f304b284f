"""The experiment on slices: what its rows hold."""

import dataclasses

import numpy as np
import pytest

from widebnn.experiments import landscape

from .judging import claim_of, findings

TINY = dataclasses.replace(
    landscape.config("smoke"),
    problems=((4, 6), (64, 6)),
    training_time=0.02,
    resolution=4,
    num_products=8,
    repeats=(0, 3),
)


@pytest.fixture(scope="module")
def rows():
    return list(landscape(TINY))


@pytest.mark.slow
def test_rows_cover_the_grid(rows):
    assert [(r["repeat"], r["width"], r["num_train"], r["parametrisation"]) for r in rows] == [
        (k, w, n, p) for k in TINY.repeats for w, n in TINY.problems for p in "θφ"
    ]
    for row in rows:
        for name in ("barrier_potential", "barrier_energy", "curvature"):
            assert 0 <= row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
        assert len(row["potential"]) == 15 and min(row["potential"]) == 0
        assert row["spread_potential"] == pytest.approx(np.std(row["potential"]), rel=1e-3, abs=0.01)
        assert row["curvature_residual"] < 0.2 * row["curvature_high"]


@pytest.mark.slow
def test_both_parametrisations_have_the_same_trained_networks(rows):
    for theta, phi in zip(rows[::2], rows[1::2], strict=True):
        assert (theta["misfit"], theta["norm"]) == (phi["misfit"], phi["norm"])


@pytest.mark.slow
def test_repeats_have_networks_of_their_own_and_run_alone(rows):
    first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    for one, other in zip(first, second, strict=True):
        assert one["misfit"] != other["misfit"]
    (alone,) = landscape.parts(dataclasses.replace(TINY, repeats=(0,)))
    assert list(landscape(alone)) == first


def test_the_claim_has_errors_over_triples_and_students_t():
    scatter = [0.9, 1.0, 1.1]  # of three triples
    rows = [
        {
            "repeat": repeat,
            "width": width,
            "num_train": num_train,
            "parametrisation": name,
            "spread_potential": factor * num_train**2 * share,
            "curvature": factor * share,
            "barrier_potential": factor * share,
        }
        for repeat, factor in enumerate(scatter)
        for width, num_train in ((16, 32), (64, 32), (64, 8))
        for name, share in (("θ", 10.0), ("φ", 16 / width))
    ]
    found = findings(claim_of(landscape, "H-F5"), rows)
    assert {finding.degrees for finding in found} == {2}
    relative = np.std(scatter, ddof=1) / np.sqrt(3)
    step = next(one for one in found if one.what.startswith("curvature in φ"))
    assert step.value == pytest.approx(1 / 4)
    assert step.error == pytest.approx(np.sqrt(2) * relative / 4)
    growth = found[-1]
    assert growth.value == pytest.approx(4)
    assert growth.error == pytest.approx(4 * np.sqrt(2) * relative)


def test_repriorisation_flattens_what_it_meets(rows):
    for theta, phi in zip(rows[::2], rows[1::2], strict=True):
        assert phi["curvature"] < theta["curvature"]
        assert phi["barrier_potential"] < theta["barrier_potential"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"dataset": "imagenet"},
            "dataset must be one of 'cifar10', 'cifar10-8x8', 'digits', 'mnist'; got 'imagenet'",
        ),
        ({"problems": ()}, "problems must have at least one entry"),
        ({"problems": ((8, 0),)}, "problems must be at least 1; got 0"),
        ({"momentum": 1.0}, r"momentum must lie in \[0, 1\); got 1.0"),
        ({"resolution": 1}, "resolution must be at least 2; got 1"),
        ({"repeats": ()}, "repeats must have at least one entry"),
        ({"repeats": (-1,)}, "repeats must be at least 0; got -1"),
    ],
)
def test_configurations_that_cannot_run_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        dataclasses.replace(TINY, **change)


def test_paper_scale_has_what_the_paper_states():
    paper = landscape.config("paper")
    assert {n for w, n in paper.problems if w != 128} == {128}
    assert {w for w, n in paper.problems if n != 128} == {128}
    assert paper.noise_std == 0.1
