"""Every experiment and every claim of the book is whole."""

import copy
import dataclasses
import sys

import pytest
from widebnn.experiments import CLAIMS, EXPERIMENTS
from widebnn.study import Configuration

from widebnn import data, experiments
from widebnn.scale import SCALES


@pytest.mark.slow
def test_parts_of_a_real_experiment_give_the_rows_of_the_whole():
    one = EXPERIMENTS["elbo_ratio"]
    config = dataclasses.replace(one.config("smoke"), num_train=(20, 10), widths=(4, 8), scalings=("ntk",))
    parts = one.parts(config)
    assert len(parts) == 4
    assert [row for part in parts for row in one(part)] == list(one(config))


def test_declarations_are_whole():
    for name, one in EXPERIMENTS.items():
        assert one.name == name and set(one.scales) == set(SCALES)
        # Workers import it by this name, and get a configuration as deepcopy does.
        assert getattr(sys.modules[one.__module__], one.__reduce__()) is one
        (kind,) = {type(config) for config in one.scales.values()}
        assert issubclass(kind, Configuration)
        for config in one.scales.values():
            assert len(one.parts(config)) == len(set(one.parts(config)))
            assert copy.deepcopy(config) == config
        # Sphinx takes what stands before a colon there for a type, and leaves it out of the tables
        assert one.__doc__ and ": " not in one.__doc__.partition("\n")[0]
    for claim in CLAIMS:
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


def test_shipped_results_are_found_and_reported():
    results = experiments.shipped("over_width")
    assert (results.name, results.scale) == ("over_width", "laptop")
    assert results.source.startswith("laptop scale, seed 1; ") and " on " in results.source
    assert experiments.report("P-F1", results).verdict == experiments.report("P-F1").verdict
    assert experiments.report("V-F2").experiment is EXPERIMENTS["resnet"]
    with pytest.raises(FileNotFoundError, match=r"none of over_width_paper.*holds theorems_laptop, "):
        experiments.shipped("over_width", "paper")
