"""What summaries of results as lists of rows share."""

from collections.abc import Callable, Iterable
from typing import Any

from widebnn.study import Finding, Measure, Results, Rows, vanishing

TOLERANCE = 1e-9  # of an identity in float64


def chosen(rows: Iterable[dict[str, Any]], **wanted: Any) -> Rows:
    return Rows(rows).where(**wanted)


def values(rows: Iterable[dict[str, Any]], column: str) -> list[Any]:
    return Rows(rows).values(column)


def mean(rows: Iterable[dict[str, Any]], column: str) -> Measure:
    return Rows(rows).measure(column)


def difference(a: Measure, b: Measure) -> Measure:
    return a - b


def ratio(a: Measure, b: Measure) -> Measure:
    return a / b


def vanishes(*quantities: str) -> Callable[[Results], list[Finding]]:
    """A summary of `theorems`: that each of these quantities tends to 0."""

    def summarise(results: Results) -> list[Finding]:
        findings = []
        for name in quantities:
            rows = sorted(chosen(results.rows, quantity=name), key=lambda row: row["width"])
            found = [Measure(row["value"], row["error"]) for row in rows]
            findings += vanishing(name, [row["width"] for row in rows], found)
        return findings

    return summarise


def identity(name: str, what: str) -> Callable[[Results], list[Finding]]:
    """A summary of `identities`: the largest error of one of them, over all problems."""

    def summarise(results: Results) -> list[Finding]:
        errors = [row["error"] for row in chosen(results.rows, identity=name)]
        return [Finding(f"{what}, largest of {len(errors)} problems", max(errors), below=TOLERANCE)]

    return summarise
