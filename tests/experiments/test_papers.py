"""Settings of runs against what the papers state."""

import pytest

from book.experiments.papers import meets, of_paper, of_run
from widebnn.tables import Results, Rows


@pytest.mark.parametrize(
    ("changes", "is_met"),
    [
        ({}, True),
        ({"steps": [4_000_000], "chains": [8]}, True),
        ({"n": [64]}, False),
        ({"steps": [3_000_000, 100]}, False),
    ],
)
def test_a_setting_is_the_papers_where_it_has_its_data_sizes_and_steps(changes, is_met):
    paper = of_paper("gain_over_width")
    assert paper["chains"] == [1] and meets(paper | changes, paper) is is_met


def test_what_a_paper_does_not_state_is_not_met():
    paper = of_paper("over_reg")
    assert paper == {"data": ["cifar10"]} and not meets(paper | {"n": [8], "steps": [10**7]}, paper)
    assert of_paper("theorems") == {}


def test_settings_of_a_run_come_from_what_it_was_run_with_and_its_rows():
    rows = Rows([{"width": 8, "num_train": 4}, {"width": 16, "num_train": 4}])
    found = of_run(Results(rows, {"dataset": "cifar10", "repeats": [0, 1]}, {}, "landscape"))
    assert found == {"data": ["cifar10"], "n": [4], "width": [8, 16], "depth": [1], "repeats": [2]}


def test_a_row_has_the_settings_that_it_rests_on():
    settings = {"widths": [128, 256], "function_widths": [16, 32], "num_functions": 500, "num_draws": 1_000}
    run = Results(Rows(), settings | {"num_train": 16, "num_chains": 4, "num_steps": 50}, {}, "theorems")
    functions, of_prior, chains = (of_run(run, row) for row in ("H-F3", "H-T2.1", "P-T2.1"))
    assert functions["width"] == [16, 32] and functions["draws"] == [500] and functions["depth"] == [3]
    assert functions["n"] == [3] == of_paper("theorems", "H-F3")["n"] and "steps" not in functions
    assert of_prior["draws"] == [1_000] and "chains" not in of_prior and of_prior["depth"] == [1]
    assert chains["chains"] == [4] and chains["steps"] == [50]
