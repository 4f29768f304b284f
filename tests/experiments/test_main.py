"""The command line: what it prints, and that what is wrong is said in a line."""

from pathlib import Path

import pytest
from study.grids import CONFIG, declared, registry, rows_of

from widebnn.experiments import CLAIMS, EXPERIMENTS, __main__, ledger
from widebnn.study.ledger import text
from widebnn.study.ledger_page import page

RESULTS = Path(__file__).parents[2] / "book" / "results"


def test_list_names_every_experiment_and_row(capsys):
    assert __main__.main(["list", "--results", str(RESULTS)]) == 0
    printed = capsys.readouterr().out
    for name in (*EXPERIMENTS, *(claim.id for claim in CLAIMS)):
        assert name in printed
    assert "laptop*" in printed  # shipped


@pytest.mark.parametrize("name", ["P-F1", "over_width"])
def test_show_says_what_is_claimed_and_how_it_runs(capsys, name):
    assert __main__.main(["show", name]) == 0
    printed = capsys.readouterr().out
    (claim,) = EXPERIMENTS["over_width"].claims
    assert claim.claim in printed and claim.rule in printed and "step_sizes = (0.2, 0.1, 0.01)" in printed
    assert "not as in the paper: num_steps, there " in printed


def declare(monkeypatch, function):
    """The command line knows one experiment alone."""
    one = registry(declared(function))
    for name in ("find", "run", "report"):
        monkeypatch.setattr(__main__, name, getattr(one, name))


def test_run_computes_and_loads(capsys, tmp_path, monkeypatch):
    calls = []

    def noted(config):
        calls.extend(config.widths)
        yield from rows_of(config)

    declare(monkeypatch, noted)
    arguments = ["run", "H-F1", "--scale", "laptop", "--results", str(tmp_path)]
    assert __main__.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "grid at laptop scale, in 3 parts" in printed and "6 rows: 0 s on " in printed
    assert "width 2, steps 30, repeat 0, tau 0.1" in printed and "by the rule, at laptop scale" in printed
    assert __main__.main(arguments) == 0
    assert "width 2" not in capsys.readouterr().out and calls == [2, 4, 8]


def test_a_stopped_run_goes_on(capsys, tmp_path, monkeypatch):
    def stopped(config):
        if config.widths == (4,):
            raise KeyboardInterrupt
        return rows_of(config)

    arguments = ["run", "grid", "--scale", "smoke", "--results", str(tmp_path)]
    declare(monkeypatch, stopped)
    assert __main__.main(arguments) == 130
    assert "goes on with --resume" in capsys.readouterr().err
    declare(monkeypatch, rows_of)
    assert __main__.main(arguments) == 1
    assert "1 of 2 parts of an interrupted run" in capsys.readouterr().err
    assert __main__.main([*arguments, "--resume"]) == 0
    printed = capsys.readouterr().out
    assert "width 4" in printed and "width 2" not in printed and CONFIG.widths == (2, 4)


@pytest.mark.slow
def test_ledger_prints_text_or_writes_the_page(capsys, tmp_path):
    entries, path = ledger(RESULTS), tmp_path / "ledger.md"
    assert __main__.main(["ledger", "--results", str(RESULTS)]) == 0
    assert capsys.readouterr().out == text(entries) + "\n"
    assert __main__.main(["ledger", "--results", str(RESULTS), "--write", str(path)]) == 0
    assert path.read_text() == page(entries)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "P-F99"], ["name must be one of", "'P-F1'", "'over_width'", "'P-F99'"]),
        (["show", "P-F99"], ["name must be one of", "'P-F99'"]),
        (["ledger", "--results", "nowhere"], ["results", "there is no 'nowhere'"]),
    ],
)
def test_what_is_wrong_is_said_in_a_line(capsys, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert __main__.main(arguments) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and all(word in error for word in words)
    assert not list(tmp_path.iterdir())
