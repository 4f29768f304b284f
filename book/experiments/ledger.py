"""The ledger: every claim with what was found and the verdict, and all of them as text."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from book.experiments.chain_summaries import behind
from book.experiments.claims import CLAIMS, Claim
from book.experiments.experiment import Experiment
from book.experiments.findings import ANOTHER_SIZE, UNCONVERGED, WORDS, Chains, Finding, verdict
from book.experiments.papers import Setting, meets, of_paper, of_run
from book.experiments.registry import EXPERIMENTS, stored
from widebnn.tables import Results

__all__ = ["PAPERS", "Entry", "counts", "ledger", "text"]

PAPERS = {
    "H": ("Repriorisation", "hron2022", "Hron et al. (2022)"),
    "P": ("pCN and pCNL", "pezzetti2025", "Pezzetti et al. (2025)"),
    "V": ("Variational inference", "huix2022", "Huix et al. (2022)"),
    "X": ("Beyond the papers", "", ""),
}
"""By the first letter of an id: a heading, the reference and its name."""


@dataclass(frozen=True, repr=False)
class Entry:
    """A claim and what results say of it; prints as text.

    Attributes
    ----------
    claim
        The row of the ledger.
    experiment
        What the row rests on; None where tests hold it.
    results
        Of one run; None where there is none.
    beside
        Results of other runs that the claim names.
    """

    claim: Claim
    experiment: Experiment | None = None
    results: Results | None = None
    beside: Sequence[Results] = ()

    @cached_property
    def findings(self) -> list[Finding]:
        """The numbers, each with the interval that the claim puts it in; none without results."""
        if self.experiment is None or self.results is None:
            return []
        return self.experiment.findings[self.claim.id](self.results, self.beside)

    @property
    def deciding(self) -> list[Finding]:
        """The finding that decides; where none does, all."""
        return [finding for finding in self.findings if finding.decides] or self.findings

    @property
    def chains(self) -> Chains | None:
        """The worst of the chains that what decides rests on; None where it rests on none."""
        found = [finding.chains for finding in self.deciding if finding.chains is not None]
        return behind((one.ess for one in found), (one.rhat for one in found)) if found else None

    @property
    def runs(self) -> list[Results]:
        """All results that the row rests on."""
        return [] if self.results is None else [self.results, *self.beside]

    @property
    def paper(self) -> Setting:
        """The paper's setting, as far as it states one; of claims of this book there is none."""
        return {} if self.claim.id.startswith("X") else of_paper(self.claim.experiment, self.claim.id)

    @property
    def settings(self) -> list[Setting]:
        """Of each run, as far as this row rests on it."""
        return [of_run(run, self.claim.id) for run in self.runs]

    @property
    def is_papers(self) -> bool:
        """Whether a run has the paper's own setting, or the claim is of none."""
        return not self.paper or any(meets(one, self.paper) for one in self.settings)

    @property
    def verdict(self) -> str:
        """One of `book.experiments.findings.WORDS`, by the rule for all claims; what tests hold holds."""
        return "holds" if self.claim.tests else verdict(self.findings, is_papers=self.is_papers)

    @property
    def flags(self) -> list[str]:
        """Those of `book.experiments.findings.FLAGS` that the verdict has."""
        if self.verdict == "open":
            return []
        is_sure = not self.claim.unsure and (self.chains is None or self.chains.have_converged)
        return [ANOTHER_SIZE] * (not self.is_papers) + [UNCONVERGED] * (not is_sure)

    def __str__(self) -> str:
        at = f", at {self.results.scale} scale" if self.results else ""
        words = ", ".join([self.verdict, *self.flags])
        lines = [f"{self.claim.id}  {self.claim.claim}", f"  by the rule{at}: {words}"]
        lines += [f"    held by {test}" for test in self.claim.tests]
        for f in self.findings:
            lines.append(f"  {' ' if f.holds else '!'} {f.what}: {f} (wanted: {f.wanted})")
        return "\n".join(lines)

    __repr__ = __str__


def ledger(folder: str | os.PathLike) -> list[Entry]:
    """Every row of the ledger by the results in a folder.

    The largest scale that has results counts; beside it stands what else the claim names. Smoke scale, which
    tests code and not claims, never counts.
    """
    if not Path(folder).exists():
        raise FileNotFoundError(f"results must be a folder of results; there is no {str(folder)!r}")
    found = {
        name: [one.load(at, one.settings(s)) for s, at in stored(one, folder).items() if s != "smoke"]
        for name, one in EXPERIMENTS.items()
    }

    def entry(claim: Claim) -> Entry:
        if claim.tests:
            return Entry(claim)
        others = [run for name in claim.beside for run in found[name]]
        results = found[claim.experiment][-1] if found[claim.experiment] else None
        return Entry(
            claim, EXPERIMENTS[claim.experiment], results, [run for run in others if run is not results]
        )

    return [entry(claim) for claim in CLAIMS.values()]


def text(entries: Sequence[Entry]) -> str:
    """The ledger for a terminal."""
    return "\n\n".join([*map(str, entries), ", ".join(f"{n} {word}" for word, n in counts(entries).items())])


def counts(entries: Iterable[Entry]) -> dict[str, int]:
    """How many entries each verdict has, without those that none has."""
    words = [entry.verdict for entry in entries]
    return {word: words.count(word) for word in WORDS if word in words}
