"""What a verdict is called on a claim, and the sign, the colour and the meaning of each word."""

from typing import NamedTuple

from book.experiments.claims import Claim
from widebnn._check import one_of

__all__ = ["CALLED", "WORDS", "Word", "called"]


class Word(NamedTuple):
    """How a word is shown, and what it means.

    Attributes
    ----------
    sign
        Before the word, so that nobody needs to tell colours apart.
    tone
        The name of its colour in the style sheet of the book.
    meaning
        In a sentence.
    """

    sign: str
    tone: str
    meaning: str


UNSURE = ", chains not converged"

WORDS = {
    "reproduced": Word("✓", "good", "The number that decides holds; where none does, all hold."),
    "reproduced" + UNSURE: Word("✓", "unsure", "The same, by chains that were not shown to converge."),
    "reproduced in part": Word(
        "◐",
        "part",
        "At the paper's setting the number that decides has the sign and not the size; where none decides, "
        "some hold.",
    ),
    "direction reproduced, size not testable at this scale": Word(
        "◐", "part", "The number that decides has the sign; off the paper's setting its size is not judged."
    ),
    "not reproduced": Word(
        "✗",
        "bad",
        "At the paper's setting the number that decides shows no effect; where none does, none holds.",
    ),
    "contradicted": Word("≠", "bad", "At the paper's setting the number that decides has the opposite sign."),
    "opposite direction at this scale": Word(
        "≠", "part", "The number that decides has the opposite sign, off the paper's setting."
    ),
    "corrected": Word("✎", "mended", "The claim is that the paper or its code errs, and what decides holds."),
    "not testable at this scale": Word(
        "⊘", "open", "The run is too small to decide; the row names a run that would."
    ),
    "not yet run": Word(
        "○", "open", "No results beyond smoke scale are stored, or none on the subject of the claim."
    ),
    "answered": Word("✓", "good", "A question that a paper left open, and all numbers go one way."),
    "answered" + UNSURE: Word("✓", "unsure", "The same, by chains that were not shown to converge."),
    "answered in part": Word(
        "◐", "part", "Some numbers go the expected way, others do not or are not resolved."
    ),
    "holds": Word(
        "✓", "good", "A claim of this book: the number that decides holds; where none does, all hold."
    ),
    "holds" + UNSURE: Word("✓", "unsure", "The same, by chains that were not shown to converge."),
    "holds in part": Word(
        "◐",
        "part",
        "A claim of this book: what decides has the sign and not the size; where none does, some hold.",
    ),
    "fails": Word(
        "✗",
        "bad",
        "A claim of this book: what decides fails or shows the opposite; where none does, none holds.",
    ),
    "open": Word("○", "open", "A question or a claim of this book that no run has decided."),
}
"""In the order in which they are counted."""

CALLED = {
    "reproduced": ("answered", "holds"),
    "reproduced in part": ("answered in part", "holds in part"),
    "direction reproduced, size not testable at this scale": ("answered in part", "holds in part"),
    "not reproduced": ("open", "fails"),
    "contradicted": ("answered", "fails"),
    "opposite direction at this scale": ("answered", "fails"),
    "corrected": ("answered", "holds"),
    "not testable at this scale": ("open", "open"),
    "not yet run": ("open", "open"),
}
"""What a verdict is called on a question that a paper left open, and on a claim of this book."""


def called(claim: Claim, verdict: str, have_converged: bool = True) -> str:
    """The word for a verdict on this claim: there is nothing to reproduce where no paper claims anything.

    Ids of claims of this book begin with X-. A word of success says where chains have not converged.

    Raises
    ------
    ValueError
        If the verdict is not one of `book.experiments.findings.VERDICTS`.
    """
    of_question, of_own = CALLED[one_of(CALLED, verdict=verdict)]
    word = of_question if claim.asks else of_own if claim.id.startswith("X-") else verdict
    return word if have_converged or word + UNSURE not in WORDS else word + UNSURE
