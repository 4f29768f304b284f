"""What summaries of results as lists of rows share."""

from collections.abc import Iterable
from typing import Any

from widebnn.study import Measure, Rows


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
