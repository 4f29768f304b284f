"""What was found of a claim, and the verdict that follows."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

from scipy.stats import norm, t

from widebnn.tables import Measure
from widebnn.tables._measure import measured

__all__ = ["ANOTHER_SIZE", "FLAGS", "UNCONVERGED", "WORDS", "Chains", "Finding", "verdict"]

WORDS = {
    "holds": ("✓", "good", "The number that decides holds. Where none does, all hold."),
    "holds in part": (
        "◐",
        "part",
        "What decides has the sign and not the size. Where no number does, some hold.",
    ),
    "fails": (
        "✗",
        "bad",
        "What decides has the opposite sign or, at the paper's setting, no effect. Where no number does, "
        "none holds and one says no.",
    ),
    "open": ("○", "open", "No run that counts is stored, or it is too small to decide."),
}
"""By verdict, in the order in which they are counted: a sign, so that nobody needs to tell colours apart, the
colour and the meaning."""

ANOTHER_SIZE, UNCONVERGED = "at another size", "not converged"

FLAGS = {
    ANOTHER_SIZE: "Not with the paper's data, n, width, depth and steps: a sign is judged and a size is not.",
    UNCONVERGED: "Chains or fits behind what decides were not shown to converge.",
}


class Chains(NamedTuple):
    """What is known of the chains that a number rests on.

    Attributes
    ----------
    ess
        The least number of effective samples of what is counted; None where that is not known, as of chains
        that do not move.
    rhat
        The largest R̂ of what is counted, mean over its entries; None where that is not known, as of a chain
        alone.
    """

    ess: float | None
    rhat: float | None = None

    @property
    def have_converged(self) -> bool:
        """Whether they are known to have 400 effective samples and R̂ below 1.01 (Vehtari et al. 2021)."""
        return self.ess is not None and self.ess >= 400 and self.rhat is not None and self.rhat < 1.01

    def __str__(self) -> str:
        ess = "effective samples not known" if self.ess is None else f"{self.ess:,.0f} effective samples"
        return f"{ess}, {'R̂ not known' if self.rhat is None else f'R̂ {self.rhat:.4f}'}"


@dataclass(frozen=True)
class Finding:
    """A number that was measured, and the interval that the claim puts it in.

    Attributes
    ----------
    what
        The number, in words.
    measure
        The number with its standard error, if it has one; NaN where the run was too short to resolve it.
    above
        The lower end of the interval.
    below
        The upper end of the interval.
    decides
        Whether the verdict follows from this number alone; the other numbers of the claim are then only
        shown.
    null
        The value that a deciding number has where the effect that the paper claims is absent; by default the
        finite end of the interval. A value between the two has the paper's sign but not its size.
    resolved
        Whether the run can tell: mostly, whether it rests on enough effective samples
        (`widebnn.diagnostics.LEAST_RESOLVED`).
    degrees
        Degrees of freedom of the error: one less than the number of chains or repeats from whose scatter it
        comes.
    chains
        The chains that the number rests on; None where it rests on none.
    """

    what: str
    measure: Measure | float | int
    _: KW_ONLY
    above: float | int = -math.inf
    below: float | int = math.inf
    decides: bool = False
    null: float | int | None = None
    resolved: bool = True
    degrees: float | int = math.inf
    chains: Chains | None = None

    @property
    def value(self) -> float:
        """The number."""
        return measured(self.measure).value

    @property
    def error(self) -> float | None:
        """The standard error of the number; None where a single run gives none."""
        return measured(self.measure).error

    @property
    def is_known(self) -> bool:
        """Whether there is a number, and it is resolved."""
        return self.resolved and not math.isnan(self.value)

    @property
    def margin(self) -> float:
        """Three standard errors, or with finite `degrees` the quantile of Student's t that is as rare."""
        quantile = 3.0 if math.isinf(self.degrees) else float(t.isf(norm.sf(3.0), self.degrees))
        return quantile * (self.error or 0.0)

    @property
    def holds(self) -> bool:
        """Whether the value lies inside the interval by more than its margin, which is 0 without an error."""
        within = self.above < self.value - self.margin and self.value + self.margin < self.below
        return self.is_known and within

    @property
    def is_excluded(self) -> bool:
        """Whether the value lies outside the interval by more than its margin."""
        return self.value + self.margin < self.above or self.value - self.margin > self.below

    @property
    def answer(self) -> str:
        """In a word, "yes", "no", "open" where the margin leaves it undecided, or "not resolved"."""
        if not self.is_known:
            return "not resolved"
        if self.holds:
            return "yes"
        return "no" if self.is_excluded else "open"

    @property
    def sign(self) -> int:
        """1 where the value is beyond `null` towards the interval, −1 the other way, 0 within the margin."""
        is_above = math.isfinite(self.above)
        null = (self.above if is_above else self.below) if self.null is None else self.null
        off = (self.value - null) * (1 if is_above else -1)
        return 0 if not abs(off) > self.margin else int(math.copysign(1, off))

    @property
    def wanted(self) -> str:
        """The interval in words."""
        if math.isinf(self.above):
            return f"below {self.below:g}"
        return f"above {self.above:g}" if math.isinf(self.below) else f"{self.above:g} to {self.below:g}"

    def __str__(self) -> str:
        number = str(measured(self.measure))
        return number if self.resolved or math.isnan(self.value) else f"{number}, not resolved"


def verdict(findings: Sequence[Finding], *, is_papers: bool = True) -> str:
    """The verdict on a claim, by one rule for all claims: one of `WORDS`.

    Where one finding decides: "holds" if it does; "holds in part" if it has the sign but not the size;
    "fails" if it has the opposite sign, or excludes both the size and an effect; "open" if it is not resolved
    or excludes neither. Where none does, as where a theorem says several things: "holds" if all do, "holds in
    part" if some do, "fails" if none does and one excludes what is wanted, else "open".

    Parameters
    ----------
    findings
        What was found; at most one decides.
    is_papers
        Whether a run has the paper's own setting, or the claim is of none. Elsewhere a sign is judged and a
        size is not: a claim does not fail there for want of an effect.

    Examples
    --------
    >>> from book.experiments.findings import Finding, verdict
    >>> verdict([Finding("gain", 2.0, above=1, decides=True)])
    'holds'
    """
    deciding = [finding for finding in findings if finding.decides]
    if len(deciding) > 1:
        raise ValueError(f"findings must hold one that decides at most; got {len(deciding)}")
    if not any(finding.is_known for finding in deciding or findings):
        return "open"
    held = [finding.holds for finding in deciding or findings]
    if all(held):
        return "holds"
    sign = deciding[0].sign if deciding else int(any(held))
    if sign > 0:
        return "holds in part"
    is_excluded = sign < 0 or (is_papers and any(finding.is_excluded for finding in deciding or findings))
    return "fails" if is_excluded else "open"
