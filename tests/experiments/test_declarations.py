"""Every experiment and every claim of the book is whole."""

import dataclasses
import importlib

import pytest

from widebnn import data, experiments
from widebnn.experiments import CLAIMS, EXPERIMENTS
from widebnn.scale import SCALES


@pytest.mark.slow
def test_parts_of_a_real_experiment_give_the_rows_of_the_whole():
    one = EXPERIMENTS["elbo_ratio"]
    config = dataclasses.replace(one.config("smoke"), num_train=(20, 10), widths=(4, 8), scalings=("ntk",))
    parts = one.parts(config)
    assert len(parts) == 4
    assert [row for part in parts for row in one(part)] == list(one(config))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_declarations_are_of_a_kind(name):
    one = EXPERIMENTS[name]
    assert one.name == name
    kinds = {type(config) for config in one.scales.values()}
    assert len(kinds) == 1 and set(one.scales) == set(SCALES)
    costs = {scale: one.cost(config) for scale, config in one.scales.items()}
    for config in one.scales.values():
        assert len(one.parts(config)) == len(set(one.parts(config)))
    assert 0 < costs["smoke"].operations < costs["laptop"].operations < costs["colab"].operations
    assert costs["paper"].operations > 0
    if costs["smoke"].steps is not None:
        assert 0 < costs["smoke"].steps < costs["colab"].steps
    if costs["smoke"].floats is not None:
        assert 0 < 4 * costs["colab"].floats < 12 * 2**30, "Colab's card has 15 GiB"


@pytest.mark.parametrize("one", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_first_line_is_whole_in_the_reference(one):
    """Sphinx takes what stands before a colon there for a type, and leaves it out of the tables."""
    assert one.__doc__ and ": " not in one.__doc__.partition("\n")[0]


@pytest.mark.parametrize("one", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_workers_find_experiments_by_their_names(one):
    assert getattr(importlib.import_module(one.__module__), one.__qualname__) is one


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.id}-{claim.experiment}")
def test_claims_are_whole(claim):
    assert claim.claim.endswith(".") and (claim.id.startswith("X") or (claim.where and claim.paper))
    assert claim.experiment in EXPERIMENTS and claim.chapter and claim.rule.endswith(".")


@pytest.mark.parametrize(
    "name", ["gain_over_data", "gain_resnet", "architectures", "step_cost", "elbo_ratio"]
)
def test_experiments_of_several_data_sets_say_which(name, tmp_path, monkeypatch):
    """All that their parts load, and with nothing there the first of them is missed."""
    experiment = EXPERIMENTS[name]
    for config in experiment.scales.values():
        parts = [set(experiment.observes(part)) for part in experiment.parts(config)]
        assert all(hasattr(data, loader) for loader, _ in experiment.observes(config))
        assert all(len(part) == 1 for part in parts) and set.union(*parts) == set(experiment.observes(config))
    monkeypatch.setenv("WIDEBNN_DATA", "absent")
    with pytest.raises(NotADirectoryError, match="WIDEBNN_DATA must be a folder of data files"):
        experiments.run(name, "paper", tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_row_finds_the_experiment_that_serves_it():
    assert experiments.find("P-F1").name == experiments.find("over_width").name == "over_width"


def test_shipped_results_are_found_and_reported():
    results = experiments.shipped("over_width")
    assert (results.name, results.scale) == ("over_width", "laptop")
    assert results.source.startswith("laptop scale, seed 1; ") and " on " in results.source
    assert experiments.report("P-F1", results).verdict == experiments.report("P-F1").verdict
    assert experiments.report("V-F2").experiment is EXPERIMENTS["resnet"]
    with pytest.raises(FileNotFoundError, match=r"none of over_width_paper.*holds theorems_laptop, "):
        experiments.shipped("over_width", "paper")
