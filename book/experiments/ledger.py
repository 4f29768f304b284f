"""The ledger: every claim with what was found and the verdict, and all of them as text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from book.experiments.claims import Claim
from book.experiments.experiment import Experiment
from book.experiments.findings import Finding, verdict
from book.experiments.words import WORDS, called
from widebnn.scale import SCALES
from widebnn.tables import Results

__all__ = ["PAPERS", "Entry", "counts", "text"]

PAPERS = {
    "H": ("Repriorisation", "hron2022", "Hron et al. (2022)"),
    "P": ("pCN and pCNL", "pezzetti2025", "Pezzetti et al. (2025)"),
    "V": ("Variational inference", "huix2022", "Huix et al. (2022)"),
    "X": ("Beyond the papers", "", ""),
}
"""By the first letter of an id: a heading, the reference and its name."""

COMMAND = "python -m book.experiments run"


@dataclass(frozen=True, repr=False)
class Entry:
    """A claim and what results say of it; prints as text.

    Attributes
    ----------
    claim
        The row of the ledger.
    experiment
        What the row rests on.
    results
        Of one run; None where there is none.
    """

    claim: Claim
    experiment: Experiment
    results: Results | None

    @cached_property
    def findings(self) -> list[Finding]:
        """The numbers, each with the interval that the claim puts it in; none without results."""
        return [] if self.results is None else self.experiment.findings[self.claim.id](self.results)

    @property
    def verdict(self) -> str:
        """One of `book.experiments.findings.VERDICTS`, by the rule for all claims."""
        return verdict(self.findings, errs=self.claim.errs)

    @property
    def word(self) -> str:
        """What the verdict is called on this claim, one of `book.experiments.words.WORDS`."""
        return called(self.claim, self.verdict)

    @property
    def scale(self) -> str | None:
        """Of the run; None where there is none."""
        return None if self.results is None else self.results.scale or None

    @property
    def made(self) -> dict[str, Any]:
        """The provenance of the results; nothing where there are none, or where they were not stored."""
        return {} if self.results is None else self.results.provenance

    @property
    def command(self) -> str:
        """What runs the experiment again, at laptop scale."""
        scales = [scale for scale in SCALES if scale in self.experiment.scales]
        return f"{COMMAND} {self.experiment.name} --scale {scales[-1] if len(scales) == 1 else scales[1]}"

    def __str__(self) -> str:
        at = f", at {self.scale} scale" if self.scale else ""
        lines = [f"{self.claim.id}  {self.claim.claim}", f"  by the rule{at}: {self.word}"]
        for f in self.findings:
            lines.append(f"  {' ' if f.holds else '!'} {f.what}: {f} (wanted: {f.wanted})")
        return "\n".join(lines)

    __repr__ = __str__


def text(entries: Sequence[Entry]) -> str:
    """The ledger for a terminal."""
    counted = ", ".join(f"{count} {word}" for word, count in counts(entries).items())
    return "\n\n".join([*map(str, entries), counted])


def counts(entries: Iterable[Entry]) -> dict[str, int]:
    """How many entries each word has, without those that none has."""
    words = [entry.word for entry in entries]
    return {word: words.count(word) for word in WORDS if word in words}
