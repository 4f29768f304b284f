"""What claims say of rows that a test makes up."""

from typing import Any

from book.experiments.claims import CLAIMS
from book.experiments.experiment import Experiment
from book.experiments.findings import Finding, verdict
from book.experiments.registry import EXPERIMENTS
from widebnn.tables import Results, Rows


def findings(experiment: Experiment, row: str, rows, **settings: Any) -> list[Finding]:
    return experiment.findings[row](Results(Rows(rows), settings, {}))


def judged(experiment: Experiment, row: str, rows, **settings: Any) -> str:
    """The verdict on a row of the ledger by these rows, found under these settings."""
    return verdict(findings(experiment, row, rows, **settings))


def said(row: str, results: Results) -> list[Finding]:
    """The findings of a row of the ledger in these results."""
    return EXPERIMENTS[CLAIMS[row].experiment].findings[row](results)


def verdict_on(row: str, results: Results) -> str:
    return verdict(said(row, results))
