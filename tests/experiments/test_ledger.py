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
from widebnn.study.ledger import text
from widebnn.study.ledger_json import as_json
from widebnn.study.ledger_page import page
from widebnn.study.words import WORDS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "book" / "results"
PAGE = ROOT / "book" / "ledger.md"

# The list of what the ledger must hold, kept apart from the declarations.
REPRIORISATION = "H-F1 H-F2 H-F3 H-T2.1 H-P2.2 H-P2.3 H-P3.1 H-F4 H-F5 H-F6 H-F7a H-F7b H-F7c H-F7d"
REPRIORISATION += " H-F8a H-F8b H-F8c H-F9 H-F10 H-F11a H-F11b"
APPENDICES = "H-AB H-AC H-AD H-AE1 H-AE2 H-E5 H-ES H-EJ"
PCN = "P-T2.1 P-T2.2 P-T3.1 P-A1 P-A2 P-F1 P-F2 P-F3 P-F4 P-F5 P-F6 P-C P-X P-E9 P-ER P-ES P-EC"
VARIATIONAL = "V-P2 V-T1 V-T2 V-C V-F1 V-F2 V-F3 V-F4 V-F5 V-F6a V-F6b V-A1 V-EW"
BEYOND = "X-1 X-2 X-3 X-4 X-5 X-6 X-7"
ROWS = " ".join((REPRIORISATION, APPENDICES, PCN, VARIATIONAL, BEYOND)).split()


@pytest.fixture(scope="module")
def entries():
    return ledger(RESULTS)


def test_no_row_is_missing_and_none_is_new(entries):
    ids = [entry.claim.id for entry in entries]
    assert ids == ROWS
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
            row["ess_projections"] /= 2  # still resolved
            row["ess_norm"] /= 2
    path.write_text(json.dumps(content))
    changed = {e.claim.id: e.verdict for e in ledger(folder)}
    before = {e.claim.id: e.verdict for e in entries}
    assert before["H-F10"] == "reproduced" and changed["H-F10"] == "contradicted"
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
    found = next(entry.findings for entry in entries if entry.claim.id == "H-F10")
    assert [f.measure for f in one.findings] == [f.measure for f in found]


def test_text_has_every_claim_and_counts_verdicts(entries):
    lines = text(entries)
    for entry in entries:
        assert re.search(
            rf"^{re.escape(entry.claim.id)} +{entry.word} +{entry.results.scale} scale", lines, re.MULTILINE
        )
    found = dict(reversed(one.split(" ", 1)) for one in lines.splitlines()[-1].split(", "))
    assert found.keys() <= WORDS.keys() and sum(map(int, found.values())) == len(entries)


INDEX = re.compile(
    r"^\| \[(\S+)\]\(#(\S+)\) \| <span class=\"verdict verdict-(\w+)\">(\S) ([a-z ]+)</span> \| .*"
    r" \| (\w+|—) \| ([^|]+) \|$",
    re.MULTILINE,
)


def test_page_begins_with_a_line_for_each_row(entries):
    lines = INDEX.findall(page(entries))
    assert len(lines) == len(entries)
    for (name, anchor, tone, sign, word, scale, device), entry in zip(lines, entries, strict=True):
        assert (name, word, scale) == (entry.claim.id, entry.word, entry.scale)
        assert (sign, tone) == WORDS[word][:2]
        assert device == entry.results.provenance["device"]
        assert page(entries).count(f"({anchor})=") == 1


def test_page_counts_every_row_once(entries):
    whole, *papers = re.findall(r"^\*\*[\w ]+:\*\* (<span.*)$", page(entries), re.MULTILINE)
    assert len(papers) == 4
    for counted in (whole, "".join(papers)):
        assert sum(map(int, re.findall(r">(\d+) ", counted))) == len(entries)
    assert "2 ◐ holds in part" in papers[-1] and "reproduced" not in papers[-1]


def test_each_row_says_what_the_paper_says_beside_what_was_measured(entries):
    sections = page(entries).split("\n### ")[1:]
    for section, entry in zip(sections, entries, strict=True):
        claim = entry.claim
        assert section.startswith(claim.id) and claim.claim in section
        for words in (claim.paper, claim.number, claim.would_change, claim.rule, claim.chapter, claim.figure):
            assert words in section
        assert ("ledger-paper" in section) == (not claim.id.startswith("X-"))
        assert ("**Would change it:**" in section) == bool(claim.would_change)
        assert section.count("**Decides:**") == sum(f.decides for f in entry.findings)
        assert ("**Rule changed after these results,**" in section) == bool(claim.mended)
        assert section.count("✓\N{NO-BREAK SPACE}yes") == sum(f.holds for f in entry.findings)
        answers = [f.answer for f in entry.findings]
        assert section.count("| ✗\N{NO-BREAK SPACE}no |") == answers.count("no")
        assert section.count("| ○\N{NO-BREAK SPACE}open |") == answers.count("open")
        assert section.count("⊘\N{NO-BREAK SPACE}not resolved") == sum(not f.is_known for f in entry.findings)


def test_what_only_holds_in_part_says_what_would_change_it(entries):
    for entry in entries:
        assert entry.claim.would_change or entry.verdict in ("reproduced", "corrected")


def refuse(constant):
    raise AssertionError(f"{constant} is no JSON")


def test_json_has_every_row_and_the_verdicts_of_the_page(entries):
    content = json.loads(as_json(entries), parse_constant=refuse)
    assert content["format"] == "widebnn ledger 3"
    rows = content["rows"]
    shown = [
        (name, word, scale, device) for name, _, _, _, word, scale, device in INDEX.findall(page(entries))
    ]
    assert [(row["id"], row["verdict"], row["scale"], row["device"]) for row in rows] == shown
    assert len({(row["id"], row["experiment"]) for row in rows}) == len(rows)
    for row, entry in zip(rows, entries, strict=True):
        made = entry.results.provenance
        assert (row["seconds"], row["commit"]) == (made["seconds"], made["commit"])
        assert (row["claim"], row["rule"], row["page"]) == (
            entry.claim.claim,
            entry.claim.rule,
            entry.claim.page or None,
        )
        assert [one["what"] for one in row["ours"]] == [f.what for f in entry.findings]


def test_json_keeps_to_its_format(entries):
    """Who reads it relies on these names: others need another `FORMAT`."""
    words = "id experiment claim rule mended would_change verdict paper ours scale device seconds commit page"
    for row in json.loads(as_json(entries))["rows"]:
        assert list(row) == words.split()
        assert row["paper"] is None or list(row["paper"]) == ["where", "trend", "number"]
        for one in row["ours"]:
            names = "what value error above below resolved holds decides ess rhat"
            assert list(one) == names.split()
            assert one["above"] is not None or one["below"] is not None


def test_json_has_null_for_what_there_is_not(tmp_path, entries):
    rows = {row["id"]: row for row in json.loads(as_json(entries))["rows"]}
    lost = next(one for one in rows["P-F2"]["ours"] if one["value"] is None)
    assert not (lost["holds"] or lost["resolved"]) and lost["above"] is None
    assert rows["H-F7a"]["paper"]["number"] == "50 times" and rows["X-1"]["paper"] is None
    assert rows["H-F2"]["ours"][0]["error"] is None and rows["H-F7a"]["ours"][0]["error"] > 0
    for row in json.loads(as_json(ledger(tmp_path)))["rows"]:
        assert row["verdict"] in ("not yet run", "open") and row["ours"] == []
        assert [row[name] for name in ("scale", "device", "seconds", "commit")] == [None] * 4


def test_every_row_says_how_far_the_chains_behind_its_number_have_converged(entries):
    written = page(entries).split("\n### ")[1:]
    sections = {entry.claim.id: section for entry, section in zip(entries, written, strict=True)}
    for entry in entries:
        deciding = [f for f in entry.findings if f.decides] or entry.findings
        chains = [f.chains for f in deciding if f.chains is not None]
        section = sections[entry.claim.id]
        assert ("**Chains converged:**" in section) == any(one.have_converged for one in chains)
        assert ("**Chains not shown" in section) == any(not one.have_converged for one in chains)
        assert all(str(one) in section for one in chains)
        assert all(f.chains for f in deciding if "ESS" in f.what and f.is_known)
    shown = json.loads(as_json(entries))["rows"]
    (one,) = [one for row in shown if row["id"] == "H-F10" for one in row["ours"] if one["decides"]]
    assert one["rhat"] > 1.01 and one["ess"] < 400 and "**Chains not shown" in sections["H-F10"]


def test_page_of_no_results_says_so(tmp_path):
    empty = page(ledger(tmp_path))
    assert len(INDEX.findall(empty)) == empty.count("Nothing measured yet.") == len(CLAIMS)


def luminance(colour: str) -> float:
    """Of #rrggbb, by WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["html ", 'html[data-theme="dark"] '])
def test_badges_have_contrast_in_both_themes(theme):
    style = (ROOT / "book" / "_static" / "ledger.css").read_text()
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", style.partition(f"\n{theme}{{")[2].partition("}")[0]))
    assert colours.keys() == {name for word in WORDS.values() for name in (word.tone, f"on-{word.tone}")}
    for tone in {word.tone for word in WORDS.values()}:
        darker, lighter = sorted(luminance(colours[name]) for name in (tone, f"on-{tone}"))
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5
        assert f".verdict-{tone} {{ color: var(--{tone}); background: var(--on-{tone}); }}" in style


def test_a_claim_that_errs_says_corrected(entries):
    for entry in entries:
        if entry.verdict == "corrected":
            assert entry.claim.errs and all(f.holds for f in entry.findings)
    one = next(entry for entry in entries if entry.claim.id == "X-4")
    right = dataclasses.replace(one.claim, errs=False)
    assert verdict(right, one.findings) == "reproduced"
