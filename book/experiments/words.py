"""The four verdicts and the two flags that the ledger has, and what they mean."""

from typing import NamedTuple

__all__ = ["ANOTHER_SIZE", "FLAGS", "UNCONVERGED", "WORDS", "Word"]


class Word(NamedTuple):
    """How a verdict is shown: a sign, so that nobody needs to tell colours apart, its colour, its meaning."""

    sign: str
    tone: str
    meaning: str


WORDS = {
    "holds": Word("✓", "good", "The number that decides holds. Where none does, all hold."),
    "holds in part": Word(
        "◐", "part", "What decides has the sign and not the size. Where no number does, some hold."
    ),
    "fails": Word(
        "✗",
        "bad",
        "What decides has the opposite sign or, at the paper's setting, no effect. Where no number does, "
        "none holds and one says no.",
    ),
    "open": Word("○", "open", "No run that counts is stored, or it is too small to decide."),
}
"""In the order in which they are counted."""

ANOTHER_SIZE, UNCONVERGED = "at another size", "not converged"

FLAGS = {
    ANOTHER_SIZE: "Not with the paper's data, n, width, depth and steps: a sign is judged and a size is not.",
    UNCONVERGED: "Chains or fits behind what decides were not shown to converge.",
}
