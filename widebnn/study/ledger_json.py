"""The ledger for programs, as JSON."""

import json
import math
from collections.abc import Iterable
from typing import Any

from widebnn.study.claim import Finding
from widebnn.study.ledger import Entry

__all__ = ["FORMAT", "as_json"]

FORMAT = "widebnn ledger 3"


def as_json(entries: Iterable[Entry]) -> str:
    """The ledger as JSON, in a stable format; a changed format will have another name.

    To be imported with ``from widebnn.study.ledger_json import as_json``.

    The JSON is an object of "format", which is "widebnn ledger 3", and "rows", a list in the order of the
    page. Each row has all of these keys, with null where there is nothing to say:

    - "id", which no two rows share, and "experiment"; "claim", "rule", "mended" (why the rule was
      changed after the results) and "would_change", in words;
    - "verdict", the word on the ledger's page, which says what each word means;
    - "paper", null for claims of this book, or else "where" in the paper, its "trend" and its "number", in
      words;
    - "ours", a list of what was measured, empty without results: "what", the "value" and its standard
      "error", "above" and "below", the ends of the interval that the claim puts it in, whether it is
      "resolved", whether it "holds", and whether it "decides" the verdict; of the chains behind it, the least
      "ess" and the largest "rhat";
    - "scale", "device", "seconds" and "commit" of the run; where parts ran on several devices or commits,
      these are joined by semicolons;
    - "page", the page of the book, and after a # the figure or section there.

    Numbers are finite: a value that there is none of, an error that is not known and an end that the interval
    does not have are null. A value that is not "resolved" may be given all the same.
    """
    content = {"format": FORMAT, "rows": [_row(entry) for entry in entries]}
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)


def _row(entry: Entry) -> dict[str, Any]:
    claim, made = entry.claim, entry.made
    of_paper = {"where": claim.where or None, "trend": claim.paper or None, "number": claim.number or None}
    return {
        "id": claim.id,
        "experiment": claim.experiment,
        "claim": claim.claim,
        "rule": claim.rule,
        "mended": claim.mended or None,
        "would_change": claim.would_change or None,
        "verdict": entry.word,
        "paper": of_paper if any(of_paper.values()) else None,
        "ours": [_measured(finding) for finding in entry.findings],
        "scale": entry.scale,
        "device": made.get("device"),
        "seconds": made.get("seconds"),
        "commit": made.get("commit"),
        "page": claim.page or None,
    }


def _measured(finding: Finding) -> dict[str, Any]:
    numbers = {
        "value": finding.value,
        "error": finding.error,
        "above": finding.above,
        "below": finding.below,
    }
    finite = {name: n if n is not None and math.isfinite(n) else None for name, n in numbers.items()}
    return {
        "what": finding.what,
        **finite,
        "resolved": finding.is_known,
        "holds": finding.holds,
        "decides": finding.decides,
        "ess": finding.chains and finding.chains.ess,
        "rhat": finding.chains and finding.chains.rhat,
    }
