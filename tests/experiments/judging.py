"""What claims say of rows that a test makes up."""

from typing import Any

from widebnn.study import Claim, Experiment, Finding, Results, Rows, verdict


def findings(claim: Claim, rows, **config: Any) -> list[Finding]:
    return claim.summarise(Results(Rows(rows), config, {}))


def judged(claim: Claim, rows, **config: Any) -> str:
    """The verdict by these rows, found under this configuration."""
    return verdict(claim, findings(claim, rows, **config))


def claim_of(experiment: Experiment, row: str) -> Claim:
    """The one that serves this row of the ledger."""
    (claim,) = (claim for claim in experiment.claims if claim.id == row)
    return claim
