"""What claims say of rows that a test makes up."""

from typing import Any

from book.experiments.experiment import Experiment
from book.experiments.findings import Finding, verdict
from widebnn.tables import Results, Rows


def findings(experiment: Experiment, row: str, rows, **settings: Any) -> list[Finding]:
    return experiment.findings[row](Results(Rows(rows), settings, {}))


def judged(experiment: Experiment, row: str, rows, **settings: Any) -> str:
    """The verdict on a row of the ledger by these rows, found under these settings."""
    return verdict(findings(experiment, row, rows, **settings))
