"""The ledger: every claim with what was found and the verdict, as text and as a page of the book."""

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from widebnn.scale import SCALES
from widebnn.study.claim import VERDICTS, Claim, Finding, verdict
from widebnn.study.experiment import Experiment
from widebnn.study.results import Results
from widebnn.study.rows import Rows, Table

__all__ = ["Entry", "page", "text"]

PAPERS = {
    "H": ("Repriorisation", "hron2022", "Hron et al. (2022)"),
    "P": ("pCN and pCNL", "pezzetti2025", "Pezzetti et al. (2025)"),
    "V": ("Variational inference", "huix2022", "Huix et al. (2022)"),
    "X": ("Beyond the papers", "", ""),
}
"""By the first letter of an id: a heading, the reference and its name."""

COMMAND = "python -m widebnn.experiments run"


@dataclass(frozen=True, repr=False)
class Entry:
    """A claim and what results say of it; prints as text, and shows as HTML in a notebook.

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
        return [] if self.results is None else self.claim.summarise(self.results)

    @property
    def verdict(self) -> str:
        """One of ``widebnn.study.VERDICTS``, by the rule for all claims."""
        return verdict(self.claim, self.findings)

    @property
    def scale(self) -> str | None:
        """Of the run; None where there is none."""
        return None if self.results is None else self.results.scale or None

    @property
    def command(self) -> str:
        """What runs the experiment at its largest scale below paper scale."""
        scales = [scale for scale in SCALES if scale in self.experiment.scales]
        return f"{COMMAND} {self.experiment.name} --scale {scales[-1] if len(scales) == 1 else scales[1]}"

    @property
    def table(self) -> Table:
        """The findings as a table."""
        return Rows(
            {"Measured": f.what, "Ours": str(f), "Wanted": f.wanted, "Holds": f.holds} for f in self.findings
        ).table(["Measured", "Ours", "Wanted", "Holds"])

    def __str__(self) -> str:
        at = f", at {self.scale} scale" if self.scale else ""
        lines = [f"{self.claim.id}  {self.claim.claim}", f"  by the rule{at}: {self.verdict}"]
        for f in self.findings:
            lines.append(f"  {' ' if f.holds else '!'} {f.what}: {f} (wanted: {f.wanted})")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        source = "" if self.results is None or not self.results.provenance else self.results.source
        heading = f"<strong>{self.claim.id}: {self.verdict}.</strong> {html.escape(self.claim.claim)}"
        return f"<p>{heading}</p>\n{self.table._repr_html_()}\n<p>{html.escape(source)}</p>"


def text(entries: Sequence[Entry]) -> str:
    """The ledger for a terminal."""
    lines = []
    for entry in entries:
        claim = entry.claim
        made = entry.command if entry.results is None else entry.results.source
        lines.append(f"{claim.id:8}{entry.verdict:24}{made}".rstrip())
        lines += textwrap.wrap(claim.claim, 110, initial_indent=" " * 8, subsequent_indent=" " * 8)
        for f in entry.findings:
            mark = " " if f.holds else "!"
            lines.append(f"      {mark} {f.what}: {f} (wanted: {f.wanted})")
        lines.append("")
    return "\n".join([*lines, _counts(entries)])


def _counts(entries: Sequence[Entry]) -> str:
    counts = {name: sum(entry.verdict == name for entry in entries) for name in VERDICTS}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def page(entries: Sequence[Entry]) -> str:
    """The ledger as a page of the book, in MyST markdown."""
    parts = [_HEAD.format(counts=_counts(entries))]
    for letter, (heading, key, _) in PAPERS.items():
        own = [entry for entry in entries if entry.claim.id.startswith(letter)]
        parts.append(f"## {heading}\n")
        if key:
            parts.append(f"The rows of {{cite:t}}`{key}`.\n")
        parts.append(_table(own))
        parts += [_details(entry) for entry in own]
    return "\n".join(parts)


_HEAD = """\
<!-- Written by `python -m widebnn.experiments ledger --write book/ledger.md`; a test compares the two. -->

# The ledger

Every theorem, figure and algorithm of the three papers, what this book found, and the verdict. The page is
made from the results that ship with the book, and nobody types a verdict: {counts}.

Each measured number has an interval that the claim puts it in, and holds if it lies inside by more than three
standard errors (by itself, where a single run gives none). The verdict follows by one rule.

reproduced
: All numbers hold.

reproduced in part
: Some hold.

not reproduced
: None holds.

corrected
: The claim is that the paper or its code errs, and all numbers that show so hold.

not yet run
: No results beyond smoke scale are stored.

Numbers are those of the largest scale that has results, and [](05-cifar10-over-width.ipynb) shows how a scale
differs from the papers. Images of CIFAR-10 that a shipped run observes are the first of the official files;
those that it predicts were decoded from JPEG copies. The same in a terminal is
`python -m widebnn.experiments ledger`, and in a notebook

```python
from widebnn import experiments

results = experiments.run("over_width", scale="smoke")
experiments.summarise("over_width", scale="smoke")
```
"""


def _table(entries: Sequence[Entry]) -> str:
    lines = ["| Row | Claim | Paper | Verdict | Where |", "|:--|:--|:--|:--|:--|"]
    for entry in entries:
        claim = entry.claim
        name = f"[{claim.id}](#{_anchor(claim)})"
        scale = f", {entry.scale}" if entry.scale else ""
        paper = ": ".join(part for part in (claim.where, claim.paper) if part) or "—"
        cells = name, claim.claim, paper, f"{entry.verdict}{scale}", _link(claim)
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return "\n".join(lines) + "\n"


def _link(claim: Claim) -> str:
    if not claim.chapter:
        return "—"
    page = f"[]({claim.chapter}.ipynb)"
    return f"{{numref}}`{claim.figure}` in {page}" if claim.figure else page


def _anchor(claim: Claim) -> str:
    return f"ledger-{claim.id}-{claim.experiment}".lower().replace("_", "-")


def _details(entry: Entry) -> str:
    claim, results = entry.claim, entry.results
    source = PAPERS[claim.id[0]][2]
    where = ", ".join(part for part in (source, claim.where) if part)
    lines = [
        f"({_anchor(claim)})=",
        f"### {claim.id}: {entry.verdict}",
        "",
        f"{claim.claim} {f'({where})' if where else ''}".rstrip(),
        "",
    ]
    if claim.paper:
        lines += [f"- **Paper:** {claim.paper}."]
    lines += [f"- **Rule:** {claim.rule}"]
    if results is not None:
        lines += [f"- **Run:** `{claim.experiment}` at {results.source}; {_link(claim)}."]
    lines += [f"- **Command:** `{entry.command}`", ""]
    if entry.findings:
        lines += ["| Measured | Ours | Wanted | Holds |", "|:--|--:|:--|:--|"]
        lines += [
            f"| {_cell(f.what)} | {_number(str(f))} | {_number(f.wanted)} | {'yes' if f.holds else 'no'} |"
            for f in entry.findings
        ]
        lines.append("")
    return "\n".join(lines)


def _number(words: str) -> str:
    """With a minus sign for a hyphen, and on one line."""
    return words.replace("-", "−").replace(" ", "\N{NO-BREAK SPACE}")


def _cell(words: str) -> str:
    return words.replace("|", "\\|")
