"""Rows of results: choosing, grouping, means over repeats, and tables for people."""

import html
import math
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from widebnn.tables._measure import Measure

__all__ = ["Row", "Rows", "Table"]

Row = dict[str, Any]
"""One measurement: a dict of numbers and names by column."""

ABSENT = "—"


class Rows(list[Row]):
    """A list of rows, each a dict from columns to entries; rows may differ in their columns.

    Examples
    --------
    >>> from widebnn.tables import Rows
    >>> rows = Rows(
    ...     {"width": w, "seed": s, "acceptance": 0.3 + s / 10}
    ...     for w in (8, 16) for s in (0, 1)
    ... )
    >>> rows.where(width=16).column("acceptance")
    array([0.3, 0.4])
    >>> print(*rows.over("width", "acceptance"), sep=", ")
    0.350 ± 0.050, 0.350 ± 0.050
    """

    def where(self, **wanted: Any) -> "Rows":
        """The rows that have these entries, given as ``column=entry``."""
        for column in wanted:
            self._check(column)
        return Rows(row for row in self if all(n in row and row[n] == value for n, value in wanted.items()))

    def one(self, **wanted: Any) -> Row:
        """The only row that has these entries."""
        found = self.where(**wanted)
        if len(found) != 1:
            raise ValueError(f"rows must hold one row with {wanted}; there are {len(found)}")
        return found[0]

    def by(self, *columns: str) -> Iterator[tuple[Any, "Rows"]]:
        """Each distinct entry of a column, in the order of the rows, and the rows that have it.

        With several columns the entries come as a tuple. Rows without these columns are left out.
        """
        groups: dict[Any, Rows] = {}
        for column in columns:
            self._check(column)
        for row in self:
            if all(column in row for column in columns):
                groups.setdefault(tuple(row[column] for column in columns), Rows()).append(row)
        return ((key[0] if len(columns) == 1 else key, rows) for key, rows in groups.items())

    def values(self, column: str) -> list[Any]:
        """The distinct entries of a column, in the order of the rows."""
        return [value for value, _ in self.by(column)]

    def column(self, name: str) -> np.ndarray:
        """The entries of a column as an array (row,); NaN for None among numbers."""
        self._check(name)
        found = [row[name] for row in self]
        is_number = all(value is None or isinstance(value, int | float) for value in found)
        return np.array(found, float if is_number and None in found else None)

    def measure(self, quantity: str, error: str | None = None) -> Measure:
        """The mean of a column over these rows, which are repeats, and its standard error.

        Parameters
        ----------
        quantity
            The column; None counts as NaN.
        error
            The column with the standard error, which is used where there is only one row.
        """
        if not self:
            raise ValueError(f"rows must hold at least one row to measure {quantity!r}; got none")
        found = np.asarray(self.column(quantity), float)
        if len(found) > 1:
            return Measure.mean(found)
        return Measure(float(found[0]), None if error is None else self[0][error])

    def over(self, column: str, quantity: str, error: str | None = None) -> list[Measure]:
        """A quantity for each distinct entry of a column, in increasing order of the entries.

        Parameters
        ----------
        column
            The column over which the quantity is looked at, such as the width.
        quantity, error
            As for `measure`, over the rows that share an entry.
        """
        groups = dict(self.by(column))
        return [groups[value].measure(quantity, error) for value in sorted(groups)]

    def table(self, columns: Mapping[str, "str | Callable[[Row], Any]"] | Iterable[str]) -> "Table":
        """A table for a notebook or a terminal.

        Parameters
        ----------
        columns
            By header, the name of a column; a format string of several columns, such as
            ``"{ess_bulk:.0f} ({ess_tail:.0f})"``; or a function of a row. An iterable of columns has their
            names as headers. Numbers have three digits, measures as many as their error leaves; None and NaN
            are a dash.
        """
        if not isinstance(columns, Mapping):
            columns = {name: name for name in columns}
        for source in columns.values():
            for column in _columns(source):
                self._check(column)
        found = [[_entry(row, source) for source in columns.values()] for row in self]
        is_name = [any(type(value) is str for value in column) for column in zip(*found)]
        return Table(
            tuple(columns),
            tuple(tuple(map(shown, entries)) for entries in found),
            tuple(is_name) or (True,) * len(columns),
        )

    def _check(self, column: str) -> None:
        if self and not any(column in row for row in self):
            known = ", ".join(map(repr, dict.fromkeys(name for row in self for name in row)))
            raise ValueError(f"column must be one of {known}; got {column!r}")


@dataclass(frozen=True)
class Table:
    """Words in rows and columns; it prints as aligned text, and a notebook shows it as HTML.

    Attributes
    ----------
    headers
        Headers of the columns.
    cells
        Cells of each row.
    is_name
        For each column, whether it holds names, which are aligned left; numbers are aligned right.
    """

    headers: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    is_name: tuple[bool, ...]

    def __str__(self) -> str:
        lines = [self.headers, *self.cells]
        widths = [max(map(_width, column)) for column in zip(*lines)]
        return "\n".join("  ".join(map(_padded, line, widths, self.is_name)).rstrip() for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        sides = ["left" if name else "right" for name in self.is_name]
        labels = [html.escape(header) for header in self.headers]  # a phone shows a row as a card, with these

        def line(tag: str, words: Iterable[str]) -> str:
            cells = (
                f'<{tag} style="text-align: {side}" data-label="{label}">{_unbroken(word)}</{tag}>'
                for side, label, word in zip(sides, labels, words)
            )
            return f"<tr>{''.join(cells)}</tr>"

        body = "\n".join(line("td", cells) for cells in self.cells)
        head = line("th", self.headers)
        return f"<table>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _unbroken(word: str) -> str:
    """HTML of a cell, whose error stays with its sign where a column is narrow."""
    return html.escape(word).replace("± ", "±&nbsp;")


def shown(value: Any) -> str:
    """A value as a table has it."""
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return ABSENT
    if isinstance(value, Measure):
        return ABSENT if math.isnan(value.value) else str(value)
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        return f"{value:,.0f}" if 1_000 <= abs(value) < 1e9 else f"{value:#.3g}".removesuffix(".")
    return str(value)


class _Format(string.Formatter):
    """`str.format` in which None and NaN have no digits."""

    def get_value(self, key: Any, args: Any, kwargs: Any) -> Any:
        return kwargs.get(key)

    def format_field(self, value: Any, format_spec: str) -> str:
        absent = value is None or value != value
        return ABSENT if absent else super().format_field(value, format_spec)


def _columns(source: "str | Callable[[Row], Any]") -> list[str]:
    """The columns that an entry of a table is made of, as far as it says so."""
    if callable(source):
        return []
    return [name for _, name, *_ in _Format().parse(source) if name] if "{" in source else [source]


def _entry(row: Row, source: "str | Callable[[Row], Any]") -> Any:
    if callable(source):
        return source(row)
    return _Digits(_Format().vformat(source, (), row)) if "{" in source else row.get(source)


class _Digits(str):
    """Formatted numbers, which are not a name."""


def _width(words: str) -> int:
    return sum(not unicodedata.combining(letter) for letter in words)


def _padded(words: str, width: int, is_name: bool) -> str:
    space = " " * (width - _width(words))
    return words + space if is_name else space + words
