"""The ledger: nothing left out, the page as the stored results have it, verdicts that follow the numbers."""

import ast
import json
import re
from pathlib import Path

import nbformat
import pytest

from book.experiments.claims import CLAIMS
from book.experiments.ledger import ledger
from book.experiments.ledger_page import pages
from book.experiments.registry import EXPERIMENTS
from widebnn.scale import SCALES
from widebnn.tables._results import digest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "book" / "results"
PAGE = ROOT / "book" / "ledger.md"

# The list of what the ledger must hold, kept apart from the declarations.
REPRIORISATION = (
    "H-F1 H-F2 H-F3 H-T2.1 H-T2.1d H-P2.2 H-P2.3 H-P3.1 H-F4 H-32 H-F5 H-F6 H-F7a H-F7b H-F7c H-F7d H-F7e"
)
REPRIORISATION += " H-F8a H-F8b H-F8c H-F9 H-F10 H-F11a H-F11b"
APPENDICES = "H-AB H-AB2 H-AC H-AD H-AD2 H-AE1 H-AE2 H-E2a H-E2b H-E2c H-E5 H-ES H-EJ H-ET"
PCN = "P-T2.1 P-T2.2 P-T3.1 P-A1 P-A2 P-F1 P-F2 P-F3 P-F4 P-F5 P-F6 P-C P-C2 P-N P-B P-F4b P-V1 P-V2 P-V3"
PCN += " P-X P-E9 P-ER P-ES P-EC"
VARIATIONAL = "V-P2 V-T1 V-T2 V-C V-Q V-ERM V-F1 V-F2 V-F3 V-F4 V-F5 V-F6a V-F6b V-A1 V-EB V-EW V-EN V-EC"
BEYOND = "X-1 X-2 X-3 X-4 X-5 X-6 X-7 X-8 X-9 X-10 X-11 X-12 X-13"
ROWS = " ".join((REPRIORISATION, APPENDICES, PCN, VARIATIONAL, BEYOND)).split()


@pytest.fixture(scope="module")
def entries():
    return ledger(RESULTS)


@pytest.fixture(scope="module")
def written(entries):
    return pages(entries)


def test_no_row_is_missing_and_none_is_new(entries):
    assert [entry.claim.id for entry in entries] == ROWS
    worded = {(claim.id, claim.experiment) for claim in CLAIMS.values() if claim.experiment}
    assert worded == {(id, name) for name, one in EXPERIMENTS.items() for id in one.findings}
    beside = {name for claim in CLAIMS.values() for name in claim.beside}
    assert {name for _, name in worded} | beside == set(EXPERIMENTS)
    assert all(set(one.scales) == set(SCALES) for one in EXPERIMENTS.values())
    for claim in CLAIMS.values():
        assert bool(claim.experiment) != bool(claim.tests)
        assert claim.claim.endswith(".") and (claim.id.startswith("X") or (claim.where and claim.paper))
        assert claim.chapter and claim.rule.endswith(".")


def test_pages_are_those_of_the_stored_results(entries, written):
    stored = {path.stem.removeprefix("ledger"): path.read_text() for path in PAGE.parent.glob("ledger*.md")}
    assert written == stored, "write them: python -m book.experiments ledger --write book/ledger.md"
    sections = [section for name, page in written.items() if name for section in page.split("\n## ")[1:]]
    by_id = {entry.claim.id: entry for entry in entries}
    assert len(sections) == len(entries)
    for section in sections:
        entry = by_id[section.split()[0].rstrip(":")]
        claim = entry.claim
        assert entry.verdict in section and all(flag in section for flag in entry.flags)
        for words in (claim.claim, claim.paper, claim.number, claim.would_change, claim.rule, claim.mended):
            assert words in section
        assert all(run.source in section for run in entry.runs)
        assert claim.would_change or entry.verdict == "holds" or not entry.runs
        assert all(f"- `{test}`" in section for test in claim.tests)


def test_links_lead_to_figures_that_there_are():
    for chapter in {claim.chapter for claim in CLAIMS.values()}:
        cells = nbformat.read(ROOT / "book" / f"{chapter}.ipynb", as_version=4).cells
        figures = {cell.metadata.get("mystnb", {}).get("figure", {}).get("name", "") for cell in cells}
        assert {claim.figure for claim in CLAIMS.values() if claim.chapter == chapter} <= figures | {""}


@pytest.mark.parametrize("test", sorted({test for claim in CLAIMS.values() for test in claim.tests}))
def test_what_holds_a_row_is_there_and_runs_with_every_change(test):
    path, name = test.split("::")
    source = (ROOT / path).read_text()
    if path.endswith(".ipynb"):
        (cell,) = (cell for cell in nbformat.reads(source, as_version=4).cells if cell.id == name)
        assert cell.cell_type == "code" and re.search(r"^\s*assert ", cell.source, re.MULTILINE)
        return
    functions = {one.name: one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.FunctionDef)}
    marks = [ast.unparse(mark) for mark in functions[name].decorator_list]
    assert not any(word in mark for mark in marks for word in ("skip", "nightly", "xfail"))


def stored(folder, scale, rows):
    """Results of `over_reg` with these rows, in a folder of results."""
    content = json.loads((RESULTS / "over_reg_laptop.json").read_text())
    settings = json.loads(json.dumps(EXPERIMENTS["over_reg"].settings(scale)))
    content |= {"rows": rows, "settings": settings, "scale": scale, "sha256": digest(settings, rows)}
    (folder / f"over_reg_{scale}.json").write_text(json.dumps(content))
    return ledger(folder)


def test_another_number_changes_the_page_and_the_verdict(tmp_path, entries):
    before = {e.claim.id: e.verdict for e in entries if e.claim.experiment == "over_reg"}
    rows = json.loads((RESULTS / "over_reg_laptop.json").read_text())["rows"]
    for row in rows:
        if row["map"] == "T":
            row["ess_projections"] /= 2  # still resolved
            row["ess_norm"] /= 2
    found = stored(tmp_path, "laptop", rows)
    changed = {e.claim.id: e.verdict for e in found}
    assert before == {"H-E2c": "holds", "H-F10": "holds"}
    assert changed["H-F10"] == "fails" and changed["H-E2c"] == "holds"
    held = {name for name, claim in CLAIMS.items() if claim.tests}
    assert all(word == "open" for name, word in changed.items() if name not in before.keys() | held)
    nothing = "".join(pages(found).values()).count("Nothing measured yet.")
    assert nothing == len(CLAIMS) - len(before) - len(held)
