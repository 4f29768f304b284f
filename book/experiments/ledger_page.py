"""The ledger as pages of the book: verdicts at a glance, and a page for each paper with its rows."""

from collections.abc import Sequence

from book.experiments.claims import MEASURES, Claim
from book.experiments.findings import FLAGS, WORDS
from book.experiments.ledger import PAPERS, Entry, counts
from book.experiments.papers import NAMES, Setting, said
from book.experiments.registry import on_gpu
from widebnn.tables._measure import measured

__all__ = ["pages"]

MARKS = {"yes": "✓", "no": "✗", "open": "○", "not resolved": "⊘"}
"""By what a finding answers."""


def pages(entries: Sequence[Entry]) -> dict[str, str]:
    """The pages in MyST markdown, with classes that `book/_static/ledger.css` lays out.

    Returns
    -------
    By what is added to the name of the first page: "" for it, with all verdicts, and "-hron2022" and others
    for the rows of a paper, or "-ours" for those of none.
    """
    own = {letter: [entry for entry in entries if entry.claim.id.startswith(letter)] for letter in PAPERS}
    own = {letter: sorted(rows, key=lambda entry: not entry.is_papers) for letter, rows in own.items()}
    meanings = "\n\n".join(f"{_badge(word)}\n: {meaning}" for word, (*_, meaning) in WORDS.items())
    meanings += "".join(f"\n\n{flag}\n: {meaning}" for flag, meaning in FLAGS.items())
    measures = "\n\n".join(f"{word}\n: {meaning}" for word, meaning in MEASURES.items())
    parts = [_HEAD, _counts(f"All {len(entries)} rows", entries)]
    parts += [_index(letter, rows) for letter, rows in own.items()]
    parts.append(_READING.format(meanings=meanings, measures=measures))
    found = {"": "\n".join(parts)}
    for letter, rows in own.items():
        heading, key, _ = PAPERS[letter]
        which = f"The rows of {{cite:t}}`{key}`" if key else "The rows of what this book claims"
        head = [
            _WRITTEN,
            f"# The ledger: {heading}",
            "",
            f"{which}; [](ledger.md) says how to read them.",
            "",
        ]
        found[f"-{key or 'ours'}"] = "\n".join([*head, *map(_details, rows)])
    return found


_WRITTEN = """\
<!-- Written by `python -m book.experiments ledger --write book/ledger.md`; a test compares the two. -->
"""

_HEAD = f"""\
{_WRITTEN}
# The ledger

Every theorem, figure and algorithm of the three papers, with the finding of this book and the verdict. Each
verdict follows by a rule from the results that ship with the book. The name of a row leads to its details.

## At a glance
"""

_READING = """\
## How to read it

Each number has an interval. It holds if it lies inside by more than a margin of three standard errors (with
few chains or repeats, by the same level of Student's t; without an error, by any amount). Outside by more
than the margin: no. Within the margin: open. Where one number decides, the verdict depends on it alone.

Below each claim stands the paper's setting above ours. A setting that a paper does not state counts as not
met. Rows without a setting, such as theorems, and rows at the paper's own setting come first.

Where a test of the suite or an assertion in a chapter holds a row, which every change has to pass, the row
has its name in place of numbers. Rules of these rows were rewritten when tests took the place of stored
results.

Chains have converged where R̂ is below 1.01 and there are 400 effective samples. R̂ is not known where a chain
is alone or the run did not keep it. A row that names no chains rests on none.

{meanings}

Terms that rules share:

{measures}

Numbers come from the largest run that ships, and from the other runs that a row names. The observed images of
CIFAR-10 are the first of the official files, and the predicted images were decoded from JPEG copies. In a
terminal `python -m book.experiments ledger` prints the same, and `show H-F7a` a row.
"""


def _counts(heading: str, entries: Sequence[Entry]) -> str:
    badges = " ".join(_badge(word, count) for word, count in counts(entries).items())
    flagged = [f"{sum(flag in entry.flags for entry in entries)} {flag}" for flag in FLAGS]
    return f"**{heading}:** {badges}, {', '.join(flagged)}\n"


def _badge(word: str, count: int | None = None) -> str:
    sign, tone, _ = WORDS[word]
    number = "" if count is None else f"{count} "
    return f'<span class="verdict verdict-{tone}">{number}{sign} {word}</span>'


def _verdict(entry: Entry) -> str:
    return ", ".join([_badge(entry.verdict), *entry.flags])


def _index(letter: str, entries: Sequence[Entry]) -> str:
    """One line for each row."""
    lines = ["| Row | Verdict | Claim | Paper's setting | Ours |", "|:--|:--|:--|:--|:--|"]
    for entry in entries:
        claim = entry.claim
        name = f"[{claim.id}](#{_anchor(claim)})"
        ours = "; ".join(dict.fromkeys(map(_in_words, entry.settings)))
        cells = (name, _verdict(entry), claim.claim, _in_words(entry.paper), ours or "—")
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return "\n".join(
        [_counts(PAPERS[letter][0], entries), ":::{div} ledger-index full-width", *lines, ":::", ""]
    )


def _in_words(setting: Setting) -> str:
    """Sizes and steps in a few words; the rest stands in the row itself."""
    words = {
        "n": "n = {}",
        "width": "width {}",
        "depth": "depth {}",
        "draws": "{} prior draws",
        "steps": "{} steps",
        "epochs": "{} epochs",
    }
    found = [word.format(said(name, setting[name])) for name, word in words.items() if name in setting]
    return ", ".join(found) or "—"


def _settings(entry: Entry) -> list[str]:
    """The paper's setting, where it states one, above that of each run of ours."""
    settings = [("Paper", entry.paper)] * bool(entry.paper)
    settings += [("Ours", setting) for setting in entry.settings]
    names = [name for name in NAMES if any(name in setting for _, setting in settings)]
    if not names:
        return []
    lines = [f"| Setting | {' | '.join(names)} |", "|:--" * (len(names) + 1) + "|"]
    for whose, setting in settings:
        cells = [said(name, setting[name]) if name in setting else "—" for name in names]
        lines.append(f"| {whose} | {' | '.join(cells)} |")
    return [":::{div} ledger-setting", *lines, ":::", ""]


def _details(entry: Entry) -> str:
    claim = entry.claim
    lines = [
        f"({_anchor(claim)})=",
        f"## {claim.id}{f': {claim.where}' if claim.where else ''}",
        "",
        f"{_verdict(entry)}. {claim.claim}",
        "",
        *_settings(entry),
        "::::{div} ledger-sides",
    ]
    if claim.paper:
        lines += [":::{div} ledger-paper", f"**{PAPERS[claim.id[0]][2]}**", ""]
        lines += [f"**{claim.number}** {claim.paper}" if claim.number else claim.paper, ":::"]
    lines += [":::{div} ledger-ours", *_ours(entry), ":::", "::::", ""]
    lines += _chains(entry)
    if claim.mended:
        lines += [f"- **Rule written or changed after its results:** {claim.mended}"]
    if claim.would_change:
        lines += [f"- **Would change it:** {claim.would_change}"]
    if (command := on_gpu(claim.experiment)) and not any(
        run.scale in ("colab", "paper") for run in entry.runs
    ):
        lines += [f"- **Waits for a GPU:** `{command}`"]
    if claim.page:
        lines += [f"- **Shown in:** {_link(claim)}"]
    lines += ["", ":::{admonition} Rule and run", ":class: dropdown", claim.rule, ""]
    lines += [f"- `{run.name}` at {run.source}" for run in entry.runs]
    command = f"python -m book.experiments run {claim.experiment} --scale laptop"
    again = [f"- Again: `{command}`"] if claim.experiment else []
    return "\n".join([*lines, *again, ":::", ""])


def _ours(entry: Entry) -> list[str]:
    if entry.claim.tests:
        return ["Held by:", "", *(f"- `{test}`" for test in entry.claim.tests)]
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
    """Whether the chains have converged that the row rests on, and how far the worst of them."""
    if entry.chains is None:
        return []
    state = "converged" if entry.chains.have_converged else "not shown to have converged"
    return [f"- **Chains {state}:** {entry.chains} at worst"]


def _link(claim: Claim) -> str:
    chapter = f"[]({claim.chapter}.ipynb)"
    return f"{{numref}}`{claim.figure}` in {chapter}" if claim.figure else chapter


def _anchor(claim: Claim) -> str:
    return f"ledger-{claim.id}-{claim.experiment}".lower().replace("_", "-").rstrip("-")


def _number(words: str) -> str:
    """With a minus sign for a hyphen, and on one line."""
    return words.replace("-", "−").replace(" ", "\N{NO-BREAK SPACE}")


def _cell(words: str) -> str:
    return words.replace("|", "\\|")
