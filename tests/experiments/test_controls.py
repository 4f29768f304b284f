"""Slips planted in stored rows: each claim that holds must cease to hold."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from book.experiments.findings import verdict
from book.experiments.ledger import ledger
from widebnn.tables import Row, Rows

Slip = Callable[[Rows], Rows]
RESULTS = Path(__file__).parents[2] / "book" / "results"


def each(change: Callable[[Row], Row]) -> Slip:
    return lambda rows: Rows(row | change(row) for row in rows)


def exchanged(column: str, one: str, other: str) -> Slip:
    names = {one: other, other: one}
    return each(lambda row: {column: names.get(row[column], row[column])})


def turned(column: str) -> Slip:
    """The least becomes the greatest."""

    def turn(rows: Rows) -> Rows:
        values = sorted(value for value in rows.values(column) if value is not None)
        new = dict(zip(values, reversed(values), strict=True)) | {None: None}
        return Rows(row | {column: new[row[column]]} for row in rows)

    return turn


def times(factor: float, *columns: str, **of: str) -> Slip:
    """Some numbers of some rows."""

    def change(row: Row) -> Row:
        is_meant = all(row[name] == value for name, value in of.items())
        return {name: row[name] * factor for name in columns if is_meant and row[name] is not None}

    return each(change)


def of(ids: str, slip: Slip) -> dict[str, Slip]:
    return dict.fromkeys(ids.split(), slip)


PARAMETRISATIONS = exchanged("parametrisation", "θ", "φ")
GRADIENT = exchanged("sampler", "pCN", "pCNL")
WIDTHS, TAUS = turned("width"), turned("tau")
SLIPS: dict[str, Slip] = {
    **of("H-F1 H-F3 H-T2.1 H-P2.2 H-P3.1 P-T2.1 P-T2.2 P-T3.1", WIDTHS),
    "H-P2.3": each(lambda row: {"value": row["value"] + 0.1 * (row.get("limit") or 0)}),
    **of("H-F2 H-F4 H-AB H-AC H-AD V-A1", times(1e12, "error")),
    **of("H-E5 H-ES H-EJ H-ET P-E9 P-ER P-ES P-EC V-EB V-EW V-EN V-EC", times(1e-9, "printed")),
    **of("H-F5 H-F7a H-F7b H-F7c H-F7d", PARAMETRISATIONS),
    "H-F10": exchanged("map", "T", "R"),
    "H-E2c": exchanged("map", "T", "R"),
    "H-AE1": times(0.1, "sign"),
    "P-A1": exchanged("acceptance", "printed", "right"),
    "P-A2": exchanged("acceptance", "printed", "right"),
    "P-F1": exchanged("sampler", "pCN", "Langevin"),
    "P-F2": exchanged("sampler", "pCN", "Langevin"),
    "P-F3": WIDTHS,
    "P-F4": WIDTHS,
    "P-F5": WIDTHS,
    "P-F6": GRADIENT,
    "P-N": GRADIENT,
    "V-P2": WIDTHS,
    "V-T1": WIDTHS,
    "V-T2": times(100, "gap"),
    "V-F1": TAUS,
    "V-F3": WIDTHS,
    "V-F4": WIDTHS,
    "V-F5": TAUS,
    "V-F6b": TAUS,
    "X-1": exchanged("sampler", "function-space HMC", "pCN"),
    "X-2": exchanged("target", "rotated", "repriorised"),
    "X-3": exchanged("method", "φ ~ N(0, I)", "deep ensemble"),
    "X-4": each(lambda row: {"misfit_chain": row["misfit_exact"]}),
    "X-5": WIDTHS,
    "X-6": times(0.5, "step_size", target="whitened"),
    "X-8": each(lambda row: {"ranks": [sum(row["ranks"]), *[0] * (len(row["ranks"]) - 1)]}),
    "X-9": times(0.2, "step_size", parametrisation="φ"),
}


@pytest.fixture(scope="module")
def entries():
    return {entry.claim.id: entry for entry in ledger(RESULTS)}


@pytest.mark.parametrize("id", SLIPS)
def test_a_slip_in_the_rows_changes_the_verdict(entries, id):
    entry = entries[id]
    runs = [replace(run, rows=SLIPS[id](run.rows)) for run in entry.runs]
    found = entry.experiment.findings[id](runs[0], runs[1:])
    assert entry.verdict in ("holds", "holds in part")
    assert verdict(found, is_papers=entry.is_papers) != "holds"
    assert sum(f.holds for f in found) < sum(f.holds for f in entry.findings)
