"""The ledger as a page of the book: verdicts at a glance, then each row beside the paper's."""

from collections.abc import Sequence

from book.experiments.claims import Claim
from book.experiments.ledger import PAPERS, Entry, counts
from book.experiments.words import WORDS
from widebnn.tables._measure import measured

__all__ = ["page"]

MARKS = {"yes": "✓", "no": "✗", "open": "○", "not resolved": "⊘"}
"""By what a finding answers."""


def page(entries: Sequence[Entry]) -> str:
    """The ledger in MyST markdown, with classes that `book/_static/ledger.css` lays out."""
    own = {letter: [entry for entry in entries if entry.claim.id.startswith(letter)] for letter in PAPERS}
    parts = [_HEAD, _counts(f"All {len(entries)} rows", entries)]
    parts += [_index(letter, rows) for letter, rows in own.items()]
    parts.append(_READING.format(meanings="\n\n".join(_meaning(word) for word in WORDS)))
    for letter, rows in own.items():
        heading, key, _ = PAPERS[letter]
        parts.append(f"## {heading}\n")
        if key:
            parts.append(f"The rows of {{cite:t}}`{key}`.\n")
        parts += [_details(entry) for entry in rows]
    return "\n".join(parts)


_HEAD = """\
<!-- Written by `python -m book.experiments ledger --write book/ledger.md`; a test compares the two. -->

# The ledger

Every theorem, figure and algorithm of the three papers, what this book found, and the verdict. Nobody types a
verdict: each follows by a rule from the results that ship with the book.

## At a glance
"""

_READING = """\
## How to read it

The claim puts each measured number in an interval. The number holds if it lies inside by more than three
standard errors: by more where the scatter of a few chains or repeats gives the error (the quantile of
Student's t as rare as three standard errors), and by anything where a single run gives no error. It does not
hold if it lies outside by as much, and is open in between. A row says in words which intervals these are.
Where one number decides, the verdict follows it alone; the others are shown. A rule says where its errors
come from. Where it does not, that of a number of effective samples is how much such estimates scatter on
AR(1) chains, and that of a share is binomial; what is computed exactly has none. Of numbers per second P-C
counts the errors of times too, and the others that of effective samples alone. A number that rests on
effective samples is resolved if its chains have a hundred. Short chains seem to have more than they do, so we
ask for a larger estimate, `widebnn.diagnostics.LEAST_RESOLVED`, a guard tested on chains whose effective
samples are known. Chains are called converged where R̂, mean over what is counted, is below 1.01 and there
are 400 effective samples; R̂ is not known where a chain is alone or the run did not keep it. What no paper
claims cannot be reproduced: what they left open is answered or open, and what this book claims holds or
fails.

{meanings}

Numbers are those of the largest scale that has results, and [](07-cifar10-over-width.ipynb) shows how a scale
differs from the papers. Images of CIFAR-10 that a shipped run observes are the first of the official files;
those that it predicts were decoded from JPEG copies.

In a terminal `python -m book.experiments ledger` prints the same, and `show H-F7a` a single row.
"""


def _counts(heading: str, entries: Sequence[Entry]) -> str:
    badges = " ".join(_badge(word, count) for word, count in counts(entries).items())
    return f"**{heading}:** {badges}\n"


def _badge(word: str, count: int | None = None) -> str:
    sign, tone, _ = WORDS[word]
    number = "" if count is None else f"{count} "
    return f'<span class="verdict verdict-{tone}">{number}{sign} {word}</span>'


def _meaning(word: str) -> str:
    return f"{_badge(word)}\n: {WORDS[word].meaning}"


def _index(letter: str, entries: Sequence[Entry]) -> str:
    """One line for each row."""
    lines = ["| Row | Verdict | Claim | Scale | Device |", "|:--|:--|:--|:--|:--|"]
    for entry in entries:
        claim = entry.claim
        name = f"[{claim.id}](#{_anchor(claim)})"
        cells = (name, _badge(entry.word), claim.claim, entry.scale or "—", entry.made.get("device", "—"))
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return "\n".join(
        [_counts(PAPERS[letter][0], entries), ":::{div} ledger-index full-width", *lines, ":::", ""]
    )


def _details(entry: Entry) -> str:
    claim, results = entry.claim, entry.results
    lines = [
        f"({_anchor(claim)})=",
        f"### {claim.id}{f': {claim.where}' if claim.where else ''}",
        "",
        f"{_badge(entry.word)} {claim.claim}",
        "",
        "::::{div} ledger-sides",
    ]
    if claim.paper:
        lines += [":::{div} ledger-paper", f"**{PAPERS[claim.id[0]][2]}**", ""]
        lines += [f"**{claim.number}** {claim.paper}" if claim.number else claim.paper, ":::"]
    lines += [":::{div} ledger-ours", *_ours(entry), ":::", "::::", ""]
    lines += [f"- **Rule:** {claim.rule}"]
    lines += _chains(entry)
    if claim.mended:
        lines += [f"- **Rule changed after these results,** because {claim.mended}"]
    if claim.would_change:
        lines += [f"- **Would change it:** {claim.would_change}"]
    if claim.page:
        lines += [f"- **Shown in:** {_link(claim)}"]
    if results is not None:
        lines += [f"- **Run:** `{claim.experiment}` at {results.source}"]
    return "\n".join([*lines, f"- **Again:** `{entry.command}`", ""])


def _ours(entry: Entry) -> list[str]:
    if not entry.findings:
        return ["Nothing measured yet."]
    return [
        "| Measured | Ours | Wanted | Holds |",
        "|:--|--:|:--|:--|",
        *(
            f"| {'**Decides:** ' * f.decides}{_cell(f.what)} | {_number(str(measured(f.measure)))} "
            f"| {_number(f.wanted)} | {MARKS[f.answer]}\N{NO-BREAK SPACE}{f.answer} |"
            for f in entry.findings
        ),
    ]


def _chains(entry: Entry) -> list[str]:
    """How far the chains have converged that the deciding number, or where none does, each rests on."""
    deciding = [finding for finding in entry.findings if finding.decides] or entry.findings
    words: dict[str, list[str]] = {}
    for chains in dict.fromkeys(finding.chains for finding in deciding if finding.chains is not None):
        state = "converged" if chains.have_converged else "not shown to have converged"
        words.setdefault(state, []).append(str(chains))
    return [f"- **Chains {state}:** {'; '.join(found)}" for state, found in words.items()]


def _link(claim: Claim) -> str:
    chapter = f"[]({claim.chapter}.ipynb)"
    return f"{{numref}}`{claim.figure}` in {chapter}" if claim.figure else chapter


def _anchor(claim: Claim) -> str:
    return f"ledger-{claim.id}-{claim.experiment}".lower().replace("_", "-")


def _number(words: str) -> str:
    """With a minus sign for a hyphen, and on one line."""
    return words.replace("-", "−").replace(" ", "\N{NO-BREAK SPACE}")


def _cell(words: str) -> str:
    return words.replace("|", "\\|")
