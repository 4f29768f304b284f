"""The claims that the ledger judges: their words are data, in `claims.yml`."""

from dataclasses import dataclass
from pathlib import Path

import yaml

__all__ = ["CLAIMS", "Claim"]


@dataclass(frozen=True)
class Claim:
    """A row of the ledger, as `claims.yml` explains it.

    Ids begin with H- for Hron et al. (2022), P- for Pezzetti et al. (2025), V- for Huix et al. (2022) and X-
    for what none of them has; those of questions that a paper left open end in -X.
    """

    id: str
    experiment: str
    claim: str
    rule: str
    where: str = ""
    paper: str = ""
    number: str = ""
    would_change: str = ""
    mended: str = ""
    page: str = ""
    errs: bool = False

    @property
    def chapter(self) -> str:
        """`page` without the figure or section."""
        return self.page.partition("#")[0]

    @property
    def figure(self) -> str:
        """Name of the figure or section in `page`; empty if it has none."""
        return self.page.partition("#")[2]


def read(path: Path) -> dict[str, Claim]:
    """Claims by id, in the order of the file.

    Raises
    ------
    ValueError
        If a claim lacks a word, or has one that no claim has.
    """
    claims = {}
    for id, words in yaml.safe_load(path.read_text()).items():
        try:
            claims[id] = Claim(id, **words)
        except TypeError as error:
            raise ValueError(f"{path.name}: the words of {id} are not those of a claim: {error}") from None
    return claims


CLAIMS = read(Path(__file__).with_name("claims.yml"))
"""By id, in the order of the ledger."""
