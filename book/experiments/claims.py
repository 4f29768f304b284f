"""The claims that the ledger judges: their words are data, in `claims.yml`."""

from dataclasses import dataclass
from pathlib import Path

import yaml

__all__ = ["CLAIMS", "MEASURES", "Claim"]


@dataclass(frozen=True)
class Claim:
    """A row of the ledger, as `claims.yml` explains it: it rests on an experiment, or tests hold it.

    `unsure` where fits have not converged. Ids begin with H- for Hron et al. (2022), P- for
    Pezzetti et al. (2025), V- for Huix et al. (2022) and X- for what none of them has.
    """

    id: str
    claim: str
    rule: str
    experiment: str = ""
    tests: tuple[str, ...] = ()
    where: str = ""
    paper: str = ""
    number: str = ""
    would_change: str = ""
    mended: str = ""
    page: str = ""
    unsure: bool = False
    beside: tuple[str, ...] = ()

    @property
    def chapter(self) -> str:
        """`page` without the figure or section."""
        return self.page.partition("#")[0]

    @property
    def figure(self) -> str:
        """Name of the figure or section in `page`; empty if it has none."""
        return self.page.partition("#")[2]


_WORDS = yaml.safe_load(Path(__file__).with_name("claims.yml").read_text())
MEASURES: dict[str, str] = _WORDS.pop("measures")
"""What rules mean by a word, by the word."""
CLAIMS = {id: Claim(id, **words) for id, words in _WORDS.items()}
"""By id, in the order of the ledger."""
