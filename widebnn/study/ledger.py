"""The ledger: every claim, what was found, and the verdict, made from stored results and nothing else."""

import os
import textwrap
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from widebnn.experiments.claims import CLAIMS
from widebnn.experiments.declared import DECLARED
from widebnn.scale import SCALES
from widebnn.study.experiment import VERDICTS, Claim, Finding, verdict
from widebnn.study.results import Results, load
from widebnn.study.run import check_folder, largest

__all__ = ["Entry", "ledger", "page", "text"]

PAPERS = {
    "H": ("Repriorisation", "hron2022", "Hron et al. (2022)"),
    "P": ("pCN and pCNL", "pezzetti2025", "Pezzetti et al. (2025)"),
    "V": ("Variational inference", "huix2022", "Huix et al. (2022)"),
    "X": ("Beyond the papers", "", ""),
}
"""By the first letter of an id: a heading, the reference and its name."""

COMMAND = "python -m widebnn.experiments run"


class Entry(NamedTuple):
    """A claim and what the largest run on record says of it.

    Attributes
    ----------
    claim
        The row of the ledger.
    scale, results
        Of the run; None where there is none.
    findings
        The numbers, each with the interval that the claim puts it in.
    verdict
        "reproduced", "reproduced in part", "not reproduced", "corrected" or "not yet run".
    """

    claim: Claim
    scale: str | None
    results: Results | None
    findings: list[Finding]
    verdict: str


def ledger(results: str | os.PathLike = "results") -> list[Entry]:
    """Every claim with the verdict that stored results give it.

    The largest scale that has results counts; smoke scale, which tests code and not claims, never does.

    Parameters
    ----------
    results
        The folder of results.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If there is no such folder.
    ValueError
        If the folder is not ours, or results in it are damaged or of another configuration.
    """
    folder = check_folder(results, must_exist=True)
    scales = {name: largest(experiment, folder) for name, experiment in DECLARED.items()}
    found = {
        name: load(folder / f"{name}_{scale}.json", DECLARED[name].config(scale))
        for name, scale in scales.items()
        if scale not in (None, "smoke")
    }
    return [_entry(claim, scales.get(claim.experiment), found.get(claim.experiment)) for claim in CLAIMS]


def _entry(claim: Claim, scale: str | None, results: Results | None) -> Entry:
    if claim.summarise is None or results is None:
        return Entry(claim, None, None, [], verdict(claim, []))
    findings = claim.summarise(results)
    return Entry(claim, scale, results, findings, verdict(claim, findings))


def seeds(results: Results) -> str:
    """How often the run was repeated, in words."""
    config = results.config
    parts = [f"seed {config['seed']}"] if "seed" in config else []
    for name in ("num_repeats", "num_chains", "num_posteriors"):
        if name in config:
            what = name.removeprefix("num_")
            parts.append(f"{config[name]} {what if config[name] != 1 else what.removesuffix('s')}")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, to two digits."""
    for size, unit in ((3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 100 * size else f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s"


def command(claim: Claim) -> str:
    """What runs the experiment of a claim at its largest scale below paper scale."""
    scales = [scale for scale in SCALES if scale in DECLARED[claim.experiment].configs]
    return f"{COMMAND} {claim.experiment} --scale {scales[-1] if len(scales) == 1 else scales[1]}"


def text(entries: Iterable[Entry], width: int = 110) -> str:
    """The ledger for a terminal.

    Parameters
    ----------
    entries
        From `ledger`.
    width
        Of a line.

    Raises
    ------
    ValueError
        If lines are too short for the indent.
    """
    if width < 40:
        raise ValueError(f"width must be at least 40; got {width}")
    entries = list(entries)
    lines = []
    for entry in entries:
        claim, made = entry.claim, ""
        if entry.results is not None:
            of = entry.results.provenance
            made = f"{entry.scale}, {seeds(entry.results)}; {duration(of['seconds'])} on {of['device']}"
        elif claim.experiment:
            made = command(claim)
        lines.append(f"{claim.id:8}{entry.verdict:24}{made}".rstrip())
        lines += textwrap.wrap(claim.claim, width, initial_indent=" " * 8, subsequent_indent=" " * 8)
        for f in entry.findings:
            mark = " " if f.holds else "!"
            lines.append(f"      {mark} {f.what}: {f} (wanted: {f.wanted})")
        lines.append("")
    return "\n".join([*lines, _counts(entries)])


def _counts(entries: Sequence[Entry]) -> str:
    counts = {name: sum(entry.verdict == name for entry in entries) for name in VERDICTS}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def page(entries: Iterable[Entry]) -> str:
    """The ledger as a page of the book, in MyST markdown.

    Parameters
    ----------
    entries
        From `ledger`.
    """
    entries = list(entries)
    parts = [_HEAD.format(counts=_counts(entries))]
    for letter, (heading, key, _) in PAPERS.items():
        own = [entry for entry in entries if entry.claim.id.startswith(letter)]
        parts.append(f"## {heading}\n")
        if key:
            parts.append(f"The rows of {{cite:t}}`{key}`.\n")
        parts.append(_table(own))
        parts += [_details(entry) for entry in own if entry.claim.experiment]
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
        name = f"[{claim.id}](#{_anchor(claim)})" if claim.experiment else claim.id
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
        of = results.provenance
        lines += [
            f"- **Run:** `{claim.experiment}` at {entry.scale} scale, {seeds(results)}; "
            f"{duration(of['seconds'])} on {of['device']}; {_link(claim)}."
        ]
    lines += [f"- **Command:** `{command(claim)}`", ""]
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
