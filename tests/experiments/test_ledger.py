"""The ledger: nothing left out, the page as the stored results have it, verdicts that follow the numbers."""

import dataclasses
import json
import re
import shutil
from pathlib import Path

import nbformat
import pytest

from widebnn import experiments
from widebnn.experiments import CLAIMS, EXPERIMENTS, ledger
from widebnn.study import VERDICTS, load, save, verdict
from widebnn.study.ledger import page, text

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "book" / "results"
PAGE = ROOT / "book" / "ledger.md"

# The list of what the ledger must hold, kept apart from the declarations.
REPRIORISATION = "H-F2 H-F3 H-T2.1 H-P2.2 H-P2.3 H-P3.1 H-F5 H-F6 H-F7a H-F7b H-F8a H-F8b H-F9 H-F10 H-F11"
APPENDICES = "H-AB H-AC H-AD H-AE1"
PCN = "P-T2.1 P-T2.2 P-T3.1 P-A1 P-A2 P-F1 P-F2 P-F3 P-F4 P-F5 P-F6 P-X"
VARIATIONAL = "V-P2 V-T1 V-T2 V-C V-F1 V-F2 V-F3 V-F4 V-F5 V-F6 V-A1"
BEYOND = "X-1 X-2 X-3 X-4 X-5"
ROWS = " ".join((REPRIORISATION, APPENDICES, PCN, VARIATIONAL, BEYOND)).split()


@pytest.fixture(scope="module")
def entries():
    return ledger(RESULTS)


def test_no_row_is_missing_and_none_is_new(entries):
    ids = [entry.claim.id for entry in entries]
    assert list(dict.fromkeys(ids)) == ROWS
    twice = {name for name in ids if ids.count(name) > 1}
    assert twice == {"V-F6"}  # on two data sets
    for name in ROWS:
        assert re.search(rf"^\| \[?{re.escape(name)}\b", PAGE.read_text(), re.MULTILINE), (
            f"{name} is not on the page"
        )


def test_every_experiment_serves_a_row():
    assert {claim.experiment for claim in CLAIMS} == set(EXPERIMENTS)


def test_page_is_that_of_the_stored_results(entries):
    assert PAGE.read_text() == page(entries), (
        "write it: python -m widebnn.experiments ledger --results book/results --write book/ledger.md"
    )


def test_verdicts_come_from_results_and_nothing_else(entries):
    for entry in entries:
        stored = [
            s
            for s in ("laptop", "colab", "paper")
            if (RESULTS / f"{entry.claim.experiment}_{s}.json").exists()
        ]
        assert (entry.verdict == "not yet run") == (not stored or not entry.findings)
        assert entry.scale == (stored[-1] if stored else None)
        assert entry.verdict in VERDICTS
        for finding in entry.findings:
            assert finding.wanted != "above -inf" and finding.what


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.chapter], ids=lambda c: f"{c.id}-{c.experiment}")
def test_links_lead_to_figures_that_there_are(claim):
    chapter = nbformat.read(ROOT / "book" / f"{claim.chapter}.ipynb", as_version=4)
    figures = [cell.metadata.get("mystnb", {}).get("figure", {}).get("name") for cell in chapter.cells]
    assert not claim.figure or claim.figure in figures
    if claim.experiment:
        source = "".join(cell.source for cell in chapter.cells)
        assert claim.experiment in source  # that chapter draws it


@pytest.mark.slow
def test_another_number_changes_the_page_and_the_verdict(tmp_path, entries):
    folder = tmp_path / "results"
    shutil.copytree(RESULTS, folder)
    path = folder / "over_reg_laptop.json"
    content = json.loads(path.read_text())
    for row in content["rows"]:
        if row["map"] == "T":
            row["ess_projections"] /= 100
            row["ess_norm"] /= 100
    path.write_text(json.dumps(content))
    changed = {e.claim.id: e.verdict for e in ledger(folder)}
    before = {e.claim.id: e.verdict for e in entries}
    assert before["H-F10"] == "reproduced" and changed["H-F10"] == "not reproduced"
    assert {name for name in before if before[name] != changed[name]} == {"H-F10"}
    assert page(ledger(folder)) != page(entries)


def test_results_of_another_configuration_or_damaged_are_refused(tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(RESULTS, folder)
    path = folder / "over_reg_laptop.json"
    whole = path.read_text()
    for changed, words in (
        (whole.replace('"config_hash": "', '"config_hash": "0'), "another configuration"),
        (whole[:-100], "damaged"),
    ):
        path.write_text(changed)
        with pytest.raises(ValueError, match=rf"over_reg_laptop\.json .*{words}"):
            ledger(folder)


def test_smoke_scale_gives_no_verdict(tmp_path, entries):
    stored = load(RESULTS / "over_reg_laptop.json", EXPERIMENTS["over_reg"].scales["laptop"])
    save(tmp_path / "over_reg_smoke.json", EXPERIMENTS["over_reg"].scales["smoke"], stored.rows, 1.0)
    assert {entry.verdict for entry in ledger(tmp_path)} == {"not yet run"}
    (one,) = experiments.summarise("H-F10", results=tmp_path)
    assert one.findings == next(entry.findings for entry in entries if entry.claim.id == "H-F10")


def test_text_has_every_claim_and_counts_verdicts(entries):
    lines = text(entries)
    for entry in entries:
        assert re.search(rf"^{re.escape(entry.claim.id)} +{entry.verdict}\b", lines, re.MULTILINE)
    total = sum(int(number) for number in re.findall(r"(\d+) (?:re|not|cor)", lines.splitlines()[-1]))
    assert total == len(entries)


def test_a_claim_that_errs_says_corrected(entries):
    for entry in entries:
        if entry.verdict == "corrected":
            assert entry.claim.errs and all(f.holds for f in entry.findings)
    one = next(entry for entry in entries if entry.claim.id == "X-4")
    right = dataclasses.replace(one.claim, errs=False)
    assert verdict(right, one.findings) == "reproduced"
