"""What an experiment declares, and what a row of the ledger claims of its results."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from widebnn._check import one_of
from widebnn.study.results import Results

__all__ = ["VERDICTS", "Claim", "Experiment", "Finding", "verdict"]

Rows = list[dict[str, Any]]

VERDICTS = ("reproduced", "reproduced in part", "not reproduced", "corrected", "not yet run")


@dataclass(frozen=True)
class Experiment:
    """A function of a configuration, and its configurations.

    Attributes
    ----------
    name
        Results are stored as `<name>_<scale>.json`.
    title
        What it looks at, in a phrase.
    configs
        A frozen dataclass of numbers, names and tuples of them for each scale.
    function
        Takes a configuration and `on_row`, which it calls with each row; returns the rows.
    over
        Fields whose entries are independent of one another, outermost loop first: the experiment falls into
        one part for each combination. Fields that go together stand in one tuple. Without any it stays whole.
    order
        Columns by whose first appearance the rows of all parts are sorted, where the loop over them is
        outside of `over`.
    effort
        A number proportional to the operations that a configuration takes, as a guess.
    steps
        How many steps a configuration takes one after another, as a guess; None where the host computes, and
        no other device makes it faster.
    floats
        How many numbers a configuration holds on the device at once, as a guess; None where nobody counted.
    observes
        Loaders of `widebnn.data` by name, each with the number of records to observe, where parts differ in
        them: a run looks for the data of all before it begins the first.
    """

    name: str
    title: str
    configs: Mapping[str, Any]
    function: Callable[..., Rows]
    effort: Callable[[Any], float]
    steps: Callable[[Any], float] | None = None
    floats: Callable[[Any], float] | None = None
    over: tuple[tuple[str, ...], ...] = ()
    order: tuple[str, ...] = ()
    observes: Callable[[Any], Iterable[tuple[str, int]]] = lambda config: ()

    def config(self, scale: str) -> Any:
        """The configuration at a scale.

        Raises
        ------
        ValueError
            If there is none; the message says at which there is one.
        """
        return self.configs[one_of(self.configs, scale=scale)]

    def parts(self, config: Any) -> list[Any]:
        """Configurations whose rows together are those of `config`."""
        axes = [
            [dict(zip(fields, ((entry,) for entry in entries))) for entries in zip(*_entries(config, fields))]
            for fields in self.over
        ]
        combinations = itertools.product(*axes)
        return [dataclasses.replace(config, **_merged(changes)) for changes in combinations]

    def joined(self, parts: Sequence[Rows]) -> Rows:
        """The rows of `parts` as the whole experiment would have returned them."""
        rows = list(itertools.chain.from_iterable(parts))
        ranks = {name: list(dict.fromkeys(row[name] for row in rows)) for name in self.order}
        return sorted(rows, key=lambda row: [ranks[name].index(row[name]) for name in self.order])


def _entries(config: Any, fields: tuple[str, ...]) -> list[tuple]:
    return [getattr(config, field) for field in fields]


def _merged(changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for change in changes for name, value in change.items()}


class Finding(NamedTuple):
    """A number that was measured, and the interval that the claim puts it in.

    Attributes
    ----------
    what
        The number, in words.
    value
        NaN where the run was too short to resolve it.
    error
        Its standard error; None where a single run gives none.
    above, below
        The ends of the interval.
    """

    what: str
    value: float
    error: float | None = None
    above: float = -math.inf
    below: float = math.inf

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
        if math.isnan(self.value):
            return "not resolved"
        if not self.error:
            return f"{self.value:.3g}"
        decimals = max(0, 1 - math.floor(math.log10(self.error)))
        if decimals > 6:
            return f"{self.value:.3g} ± {self.error:.1g}"
        return f"{self.value:.{decimals}f} ± {self.error:.{decimals}f}"


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
        The paper's value or trend, in words; empty for X-.
    experiment
        The name of the experiment; empty where there is none yet.
    summarise
        What results say of the claim; None where there is no experiment.
    rule
        What is asked of the results, in words.
    errs
        Whether it is the paper or its code that errs: a claim that holds then corrects it.
    chapter, figure
        The page of the book, without its ending, and the name of the figure or section there.
    """

    id: str
    where: str
    claim: str
    paper: str = ""
    experiment: str = ""
    summarise: Callable[[Results], list[Finding]] | None = None
    rule: str = ""
    errs: bool = False
    chapter: str = ""
    figure: str = ""


def verdict(claim: Claim, findings: Sequence[Finding]) -> str:
    """A verdict, by one rule for all claims.

    All findings hold: *reproduced*, or *corrected* where the claim is that the paper or its code errs. Some
    do: *reproduced in part*. None does: *not reproduced*. There are none: *not yet run*.
    """
    held = [finding.holds for finding in findings]
    if not held:
        return "not yet run"
    if all(held):
        return "corrected" if claim.errs else "reproduced"
    return "reproduced in part" if any(held) else "not reproduced"
