"""The command line: what it prints, and that what is wrong is said in a line."""

import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from study.grids import CONFIG, declared, registry, rows_of

from widebnn.experiments import CLAIMS, EXPERIMENTS, T4, __main__, ledger
from widebnn.study.ledger import text
from widebnn.study.ledger_json import as_json
from widebnn.study.ledger_page import page

RESULTS = Path(__file__).parents[2] / "book" / "results"


def test_list_names_every_experiment_and_row(capsys):
    assert __main__.main(["list", "--results", str(RESULTS)]) == 0
    printed = capsys.readouterr().out
    for name in (*EXPERIMENTS, *(claim.id for claim in CLAIMS)):
        assert name in printed
    assert "laptop*" in printed  # shipped


@pytest.mark.parametrize("name", ["P-F1", "over_width", "H-F2", "V-F6a"])
def test_show_says_what_is_claimed_and_how_it_runs(capsys, name):
    assert __main__.main(["show", name]) == 0
    printed = capsys.readouterr().out
    claims = [claim for claim in CLAIMS if name in (claim.id, claim.experiment)]
    assert claims
    for claim in claims:
        assert claim.claim in printed and claim.rule in printed
        assert not claim.experiment or f"{claim.experiment}: {EXPERIMENTS[claim.experiment].title}" in printed


def declare(monkeypatch, function):
    """The command line knows one experiment alone."""
    one = registry(declared(function))
    for name in ("find", "run", "forecast", "summarise"):
        monkeypatch.setattr(__main__, name, getattr(one, name))


def test_run_forecasts_computes_and_loads(capsys, tmp_path, monkeypatch):
    calls = []

    def noted(config):
        calls.extend(config.widths)
        yield from rows_of(config)

    declare(monkeypatch, noted)
    arguments = ["run", "H-F1", "--scale", "smoke", "--results", str(tmp_path)]
    assert __main__.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "grid at smoke scale, in 2 parts" in printed and "no run is on record" in printed
    assert "width 2, steps 30, repeat 0, tau 0.1" in printed and "4 rows: 0 s on " in printed
    assert __main__.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "about 0 s, 0 s of it to compile, " in printed and "GiB (host): as it took on" in printed
    assert calls == list(CONFIG.widths)


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
    assert "width 4" in printed and "width 2" not in printed


@pytest.mark.slow
def test_ledger_prints_text_or_json_or_writes_the_page(capsys, tmp_path):
    assert __main__.main(["ledger", "--results", str(RESULTS)]) == 0
    assert capsys.readouterr().out == text(ledger(RESULTS)) + "\n"
    assert __main__.main(["ledger", "--json", "--results", str(RESULTS)]) == 0
    assert capsys.readouterr().out == as_json(ledger(RESULTS)) + "\n"
    with pytest.raises(SystemExit):
        __main__.main(["ledger", "--json", "--write", "ledger.md"])
    path = tmp_path / "ledger.md"
    assert __main__.main(["ledger", "--results", str(RESULTS), "--write", str(path)]) == 0
    assert path.read_text() == page(ledger(RESULTS))


def test_summarise_says_what_results_say(capsys):
    assert __main__.main(["summarise", "P-F1", "--results", str(RESULTS)]) == 0
    one = capsys.readouterr().out
    assert one.startswith("P-F1") and "by the rule, at laptop scale: " in one and "(wanted: above 0)" in one
    assert __main__.main(["summarise", "--results", str(RESULTS)]) == 0
    assert one in capsys.readouterr().out


def test_columns_of_the_list_do_not_meet(capsys):
    assert __main__.main(["list", "--results", str(RESULTS)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len({line.index("smoke") for line in lines}) == 1
    assert all(line[line.index("smoke") - 1] == " " for line in lines)


@pytest.mark.slow
def test_a_reader_may_stop_reading():
    """Where the other end of a pipe is closed there is nothing to complain of."""
    program = "from widebnn.experiments import __main__; __main__.main(['ledger'])"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "P-F99"], ["name must be one of", "'P-F1'", "'over_width'", "'P-F99'"]),
        (["show", "P-F99"], ["name must be one of", "'P-F99'"]),
        (["run", "V-C", "--executor", "threads"], ["executor", "processes:N or dask:ADDRESS", "'threads'"]),
        (["run", "V-C", "--executor", "processes:0"], ["executor", "'processes:0'"]),
        (["ledger", "--results", "nowhere"], ["results", "there is no 'nowhere'"]),
        (["summarise", "V-C", "--results", "nowhere"], ["results", "there is no 'nowhere'"]),
        (["summarise", "--results", "."], ["results must be a folder that holds results; got '.'"]),
        (["summarise", "--scale", "paper", "--results", "."], ["holds results at scale paper; got '.'"]),
    ],
)
def test_what_is_wrong_is_said_in_a_line(capsys, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert __main__.main(arguments) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    for word in words:
        assert word in error
    assert not list(tmp_path.iterdir())


def test_executors_by_name():
    with __main__._executor(None) as executor:
        assert executor is None
    with __main__._executor("processes:2") as executor:
        assert isinstance(executor, ProcessPoolExecutor) and executor._max_workers == 2


def test_on_a_card_its_speed_is_measured_before_a_run(capsys, monkeypatch):
    monkeypatch.setattr(__main__.jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(__main__, "measured_speed", lambda: T4)
    monkeypatch.setattr(__main__, "run", stopped)
    assert __main__.main(["run", "tempering", "--scale", "colab", "--results", str(RESULTS)]) == 130
    assert "GiB (device): an estimate" in capsys.readouterr().out


def stopped(*args, **options):
    raise KeyboardInterrupt


def test_forecast_has_hours_for_each_card_and_dashes_where_nothing_is_on_record(capsys, tmp_path):
    assert __main__.main(["forecast", "P-F1", "--scale", "paper"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert [name in header for name in ("as on record", "Tesla T4", "A100", "H100")] == [True] * 4
    cpu, *cards = (float(hours.replace(",", "")) for hours in row.split()[2:])
    assert cpu > cards[0] > cards[1] > cards[2] > 0
    assert __main__.main(["forecast", "--scale", "laptop", "--results", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(EXPERIMENTS) + 1


def test_show_says_where_paper_scale_is_not_the_papers(capsys):
    assert __main__.main(["show", "H-F7a"]) == 0
    shown = capsys.readouterr().out
    assert "not as in the paper: num_chains, there 1 (Hron et al., §4.2.1): several chains tell" in shown
