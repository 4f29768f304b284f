"""What a row of the ledger claims, what was found, and the verdict that follows."""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass

from widebnn._check import one_of
from widebnn.study.measure import Measure, measured
from widebnn.study.results import Results

__all__ = ["VERDICTS", "Claim", "Finding", "Measure", "verdict"]

VERDICTS = (
    "reproduced",
    "reproduced in part",
    "not reproduced",
    "contradicted",
    "corrected",
    "not testable at this scale",
    "not yet run",
)


@dataclass(frozen=True)
class Finding:
    """A number that was measured, and the interval that the claim puts it in.

    Attributes
    ----------
    what
        The number, in words.
    measure
        The number with its standard error, if it has one; NaN where the run was too short to resolve it.
    above, below
        The ends of the interval.
    """

    what: str
    measure: Measure | float | int
    _: KW_ONLY
    above: float | int = -math.inf
    below: float | int = math.inf

    @property
    def value(self) -> float:
        """The number."""
        return measured(self.measure).value

    @property
    def error(self) -> float | None:
        """Its standard error; None where a single run gives none."""
        return measured(self.measure).error

    @property
    def holds(self) -> bool:
        """Whether the value lies inside by more than three standard errors (inside, where there is none)."""
        margin = 3 * (self.error or 0.0)
        return self.above < self.value - margin and self.value + margin < self.below

    @property
    def wanted(self) -> str:
        """The interval in words."""
        if math.isinf(self.above):
            return f"below {self.below:g}"
        return f"above {self.above:g}" if math.isinf(self.below) else f"{self.above:g} to {self.below:g}"

    def __str__(self) -> str:
        return str(measured(self.measure))


@dataclass(frozen=True)
class Claim:
    """A row of the ledger.

    Attributes
    ----------
    id
        Of the row: H- stands for Hron et al. (2022), P- for Pezzetti et al. (2025), V- for Huix et al. (2022)
        and X- for what none of them has. Where two experiments serve a row, two claims have its id.
    where
        In the paper: a figure or a theorem.
    claim
        In one sentence.
    paper
        The paper's trend, in words, or what `number` is a number of and where; empty for X-.
    number
        The number that the paper states, in words, such as "50 times"; empty where it states none.
    experiment
        The name of the experiment.
    summarise
        What results say of the claim.
    rule
        What is asked of the results, in words.
    would_change
        What would change the verdict, or put it to a harder test, in words; empty where nobody knows.
    errs
        Whether it is the paper or its code that errs: a claim that holds then corrects it.
    decide
        A rule of the claim's own, such as one by which findings contradict it, or by which a run is too small
        to test it: one of `VERDICTS`, or None where the rule for all claims counts, as it does without one.
    page
        Of the book, without its ending, and, after a #, the name of the figure or section there.
    """

    id: str
    _: KW_ONLY
    where: str = ""
    claim: str
    paper: str = ""
    number: str = ""
    experiment: str
    summarise: Callable[[Results], list[Finding]]
    rule: str
    would_change: str = ""
    errs: bool = False
    decide: Callable[[Sequence[Finding]], str | None] | None = None
    page: str = ""

    @property
    def chapter(self) -> str:
        """The page alone."""
        return self.page.partition("#")[0]

    @property
    def figure(self) -> str:
        """The name of the figure or section."""
        return self.page.partition("#")[2]


def verdict(claim: Claim, findings: Sequence[Finding]) -> str:
    """A verdict, by one rule for all claims that have none of their own.

    All findings hold: *reproduced*, or *corrected* where the claim is that the paper or its code errs. Some
    do: *reproduced in part*. None does: *not reproduced*. There are none: *not yet run*, under every rule.

    Raises
    ------
    TypeError
        If one of `findings` is none.
    ValueError
        If the claim's own rule returns something else than one of `VERDICTS`.
    """
    for finding in findings:
        if not isinstance(finding, Finding):
            raise TypeError(f"findings must hold instances of Finding; got {finding!r}")
    held = [finding.holds for finding in findings]
    if not held:
        return "not yet run"
    decided = None if claim.decide is None else claim.decide(findings)
    if decided is not None:
        return one_of(VERDICTS, decide=decided)
    if all(held):
        return "corrected" if claim.errs else "reproduced"
    return "reproduced in part" if any(held) else "not reproduced"
