"""The command line: what it prints, and that what is wrong is said in a line."""

from pathlib import Path

import pytest

from book.experiments import __main__, experiment
from book.experiments.claims import CLAIMS
from book.experiments.registry import EXPERIMENTS

RESULTS = Path(__file__).parents[2] / "book" / "results"


def test_list_names_every_experiment_and_row(capsys):
    assert __main__.main(["list", "--results", str(RESULTS)]) == 0
    printed = capsys.readouterr().out
    rows = [claim.id for claim in CLAIMS.values() if claim.experiment]
    assert all(name in printed for name in (*EXPERIMENTS, *rows)) and "laptop*" in printed


@pytest.mark.parametrize("name", ["P-F1", "over_width"])
def test_show_says_what_is_claimed_and_how_it_runs(capsys, name):
    assert __main__.main(["show", name]) == 0
    printed = capsys.readouterr().out
    claim = CLAIMS["P-F1"]
    assert claim.claim in printed and claim.rule in printed and "step_sizes = (0.2, 0.1, 0.01)" in printed


def test_run_computes_and_loads(capsys, tmp_path):
    arguments = ["run", "V-C", "--scale", "smoke", "--results", str(tmp_path), "--set", "num_replicates=50"]
    assert __main__.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "concentration at smoke scale" in printed and "13 rows: " in printed
    assert __main__.main(arguments) == 0
    assert "Wrote" not in capsys.readouterr().out
    assert __main__.main(arguments[:-2]) == 1
    assert "of other settings" in capsys.readouterr().err


def test_a_stopped_run_says_how_it_goes_on(capsys, tmp_path, monkeypatch):
    def stopped(self, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment.Experiment, "__call__", stopped)
    assert __main__.main(["run", "suprema", "--scale", "smoke", "--results", str(tmp_path)]) == 130
    assert "the same command goes on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "P-F99"], ["name must be one of", "'P-F1'", "'over_width'", "'P-F99'"]),
        (
            ["run", "P-F1", "--scale", "smoke", "--set", "width=3"],
            ["setting must be one of", "'widths'", "'width'"],
        ),
        (["run", "P-F1", "--scale", "smoke", "--set", "seed"], ["NAME=VALUE", "'seed'"]),
        (["ledger", "--results", "nowhere"], ["results", "there is no 'nowhere'"]),
    ],
)
def test_what_is_wrong_is_said_in_a_line(capsys, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert __main__.main(arguments) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and all(word in error for word in words)
    assert not list(tmp_path.iterdir())
