"""Rows of results: chosen, grouped, averaged and shown as tables; and the results that ship with the book."""

from widebnn.tables._measure import Measure
from widebnn.tables._results import Results, folder, read, results
from widebnn.tables._rows import Row, Rows, Table

__all__ = ["Measure", "Results", "Row", "Rows", "Table", "folder", "read", "results"]
