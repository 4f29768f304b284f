"""Slips planted in stored results, and what would mend others: each verdict follows the numbers."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from book.experiments.findings import verdict
from book.experiments.ledger import ledger
from widebnn.tables import Results, Row, Rows

Slip = Callable[[Results], Results]
RESULTS = Path(__file__).parents[2] / "book" / "results"


def each(change: Callable[[Row], Row]) -> Slip:
    return lambda run: replace(run, rows=Rows(row | change(row) for row in run.rows))


def exchanged(column: str, one: str, other: str) -> Slip:
    names = {one: other, other: one}
    return each(lambda row: {column: names.get(row[column], row[column])})


def turned(column: str) -> Slip:
    """The least becomes the greatest."""

    def turn(run: Results) -> Results:
        values = sorted(value for value in run.rows.values(column) if value is not None)
        new = dict(zip(values, reversed(values), strict=True)) | {None: None}
        return each(lambda row: {column: new[row[column]]})(run)

    return turn


def times(factor: float, *columns: str, **of: Any) -> Slip:
    """Some numbers of some rows."""

    def change(row: Row) -> Row:
        is_meant = all(row.get(name) == value for name, value in of.items())
        return {name: row[name] * factor for name in columns if is_meant and row.get(name) is not None}

    return each(change)


def put(**columns: Any) -> Slip:
    """Other numbers in every row that has any."""
    return each(lambda row: {name: value for name, value in columns.items() if name in row})


def under(**settings: Any) -> Slip:
    return lambda run: replace(run, settings=run.settings | settings)


def on(device: str) -> Slip:
    return lambda run: replace(run, provenance=run.provenance | {"device": device})


def both(*slips: Slip) -> Slip:
    def all_of(run: Results) -> Results:
        for slip in slips:
            run = slip(run)
        return run

    return all_of


PARAMETRISATIONS = exchanged("parametrisation", "θ", "φ")
GRADIENT = exchanged("sampler", "pCN", "pCNL")
LANGEVIN = exchanged("sampler", "pCN", "Langevin")
WIDTHS, TAUS = turned("width"), turned("tau")
LITTLE = {"slope_error": 1e-3, "difference_error": 1e-4}
OF_PROJECTIONS = ("pooled_projections", "pooled_error_projections")
ESS = tuple(f"ess{kind}_weights" for kind in ("", "_low", "_high", "_bulk", "_tail"))
THEOREMS = "H-F3 H-T2.1 H-P2.2 H-P3.1 P-T2.1 P-T2.2 P-T3.1"

SLIPS: list[tuple[str, Slip]] = [
    (f"H-F1 H-T2.1d {THEOREMS}", WIDTHS),
    (THEOREMS, put(value=0.5)),
    (THEOREMS, times(300, "error")),
    ("H-P2.3", each(lambda row: {"value": row["value"] + 0.1 * (row.get("limit") or 0)})),
    ("H-F5 H-F7a H-F7b H-F7c H-F7d", PARAMETRISATIONS),
    ("H-F7e", times(0.5, "ess_projections", reg=0.01)),
    ("H-F10 H-E2c", exchanged("map", "T", "R")),
    ("H-F11b", times(0.3, "ess_projections", "ess_predictions", map="Laplace")),
    ("H-AB2", exchanged("space", "data", "feature")),
    ("H-AD2", each(lambda row: {"step_size": 0.01})),
    ("P-F1 P-F2", LANGEVIN),
    ("P-F3 P-F4 P-F5", WIDTHS),
    ("P-F2", put(ess_bulk_weights=1e-6)),
    ("P-F5", exchanged("sampler", "pCN", "pCN, U = 0")),
    ("P-F6 P-N P-X", GRADIENT),
    ("P-C", times(0.1, "ess_per_step", *ESS, sampler="pCN")),
    ("P-C2", exchanged("sampler", "Langevin", "pCN")),
    ("V-P2 V-T1 V-F3 V-F4", WIDTHS),
    ("V-T2", times(100, "gap")),
    ("V-C", put(exceedance=0.9)),
    ("V-F1 V-F5 V-F6b", TAUS),
    ("P-C2 X-1 X-2 H-F10 H-F7e", under(num_chains=2)),
    ("X-1", exchanged("sampler", "function-space HMC", "pCN")),
    ("X-2", exchanged("target", "rotated", "repriorised")),
    ("X-3", exchanged("method", "φ ~ N(0, I)", "deep ensemble")),
    ("X-4", each(lambda row: {"misfit_chain": row["misfit_exact"]})),
    ("X-5", WIDTHS),
    ("X-6", times(0.5, "step_size", target="whitened")),
    ("X-8", each(lambda row: {"ranks": [sum(row["ranks"]), *[0] * (len(row["ranks"]) - 1)]})),
    ("X-9", times(0.2, "step_size", parametrisation="φ")),
    ("X-10", times(-1.0, "slope")),
    ("X-11", WIDTHS),
]
"""By which fewer findings hold, and what held does not."""
MENDS: list[tuple[str, Slip]] = [
    ("H-F6", both(on("H100"), times(0.3, "ratio", target="φ, feature space"))),
    ("H-F7a", times(4, *OF_PROJECTIONS, parametrisation="φ")),
    ("H-F8a", times(20, *OF_PROJECTIONS, parametrisation="φ")),
    ("H-F8b", times(12, *OF_PROJECTIONS, parametrisation="φ")),
    ("H-F8c", times(20, "ess_low_projections", parametrisation="φ")),
    ("H-F9", times(4, "rhat_squared_projections", parametrisation="θ")),
    ("H-F11a", times(2, "ess_projections", map="Gaussian, λ = k")),
    ("H-F11b", times(100, "ess_projections", "ess_predictions", map="Laplace")),
    ("H-AE2", times(2, "ess_projections", map="R", iterations=1)),
    ("H-E2a", each(lambda row: {"approximate": row["exact"]})),
    ("P-V1", times(2, *ESS, sampler="pCN", width=8_192)),
    ("X-7", times(20, "ess_per_second", contender="function-space HMC")),
    ("X-10", each(lambda row: {"difference": row["slope"] / row["width"]} | LITTLE)),
    ("X-12", each(lambda row: {"nll_network": row["nll_limit"] - 1e-3 * row["slope"]})),
    ("X-13", times(1.2, "nll", dataset="digits", beta=3)),
    ("V-F2", under(num_repeats=3, num_epochs=40)),
]
"""By which what does not hold would."""
LOST: list[tuple[str, Slip]] = [
    ("H-F6", on("cpu, 1 core")),
    ("H-F7a H-F7b H-F7d", put(ess_bulk_projections=149.0)),
    ("H-F7a H-F7b H-F7d", put(ess_tail_projections=149.0)),
    ("H-F7c", put(ess_bulk_predictions=149.0)),
    ("H-F7a H-F8a H-F8b", put(acceptance=0.979)),
    ("H-F9", put(rhat_squared_projections=1.3)),
    ("H-F10 H-F7e", put(ess_projections=1e-5)),
    ("P-C2 X-1", put(ess=149.0)),
    ("V-F2", under(num_repeats=3, num_epochs=39)),
    ("X-7", put(ess_per_second=None, ess_per_second_error=None)),
    ("X-13", put(nll=1.0)),
]
"""By which nothing is known."""


def cases(table: list[tuple[str, Slip]]) -> list:
    return [
        pytest.param(id, slip, id=f"{id}-{i}") for i, (ids, slip) in enumerate(table) for id in ids.split()
    ]


@pytest.fixture(scope="module")
def entries():
    return {entry.claim.id: entry for entry in ledger(RESULTS)}


def judged(entry, slip: Slip):
    results, *beside = (slip(run) for run in entry.runs)
    found = entry.experiment.findings[entry.claim.id](results, beside)
    return found, verdict(found, is_papers=entry.is_papers)


@pytest.mark.parametrize(("id", "slip"), cases(SLIPS))
def test_a_slip_in_the_rows_changes_the_verdict(entries, id, slip):
    found, word = judged(entries[id], slip)
    assert entries[id].verdict in ("holds", "holds in part") and word != "holds"
    assert sum(f.holds for f in found) < sum(f.holds for f in entries[id].findings)


@pytest.mark.parametrize(("id", "slip"), cases(MENDS))
def test_what_does_not_hold_would_by_other_numbers(entries, id, slip):
    assert entries[id].verdict != "holds" and judged(entries[id], slip)[1] == "holds"


@pytest.mark.parametrize(("id", "slip"), cases(LOST))
def test_what_a_run_does_not_resolve_is_open(entries, id, slip):
    assert judged(entries[id], slip)[1] == "open"


def test_earlier_checkpoints_do_not_count(entries):
    early = each(lambda row: {"pooled_projections": 7.0} if row["step"] < 30_000 else {})
    assert judged(entries["H-F7a"], early)[0] == entries["H-F7a"].findings


def test_a_bound_from_above_confirms_nothing(entries):
    bounds = {f.answer for f in entries["P-B"].findings if "at most" in f.what}
    assert bounds == {"no", "not resolved"}
