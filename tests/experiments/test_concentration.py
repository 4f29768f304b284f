"""The limit functional over samples of the data: the bound, and the deviations below it."""

import dataclasses

import numpy as np
import pytest

from widebnn.experiments import concentration


@pytest.mark.slow
def test_bound_holds_and_deviations_are_those_of_means():
    config = dataclasses.replace(concentration.config("smoke"), num_train=(10, 40))
    for row in concentration(config):
        assert abs(row["rms"] - row["std"] / np.sqrt(row["num_train"])) < 5 * row["rms_error"]
        allowed = row["delta"] + 4 * np.sqrt(row["delta"] / config.num_replicates)
        assert row["exceedance"] <= allowed
        assert 0 < row["quantile"] < row["bound"]
        assert (row["exceedance_short"] > row["delta"]) == (row["losses"] == "coin")
