"""Algorithms as printed: what is said of their laws, where they are known, and of that of the right ones."""

import pytest

from book.experiments.algorithms import algorithms
from widebnn.tables import Measure

from .judging import judged


@pytest.mark.parametrize("claim", ["P-A1", "P-A2"])
@pytest.mark.parametrize(
    ("printed", "right", "word"),
    [(0.5, 1.0, "corrected"), (1.0, 1.0, "not reproduced"), (0.5, 0.5, "reproduced in part")],
)
def test_verdict_is_that_of_the_chains(claim, printed, right, word):
    none = {"law": None, "law_error": None}
    rows = [
        {"algorithm": algorithm, "target": target, "acceptance": acceptance, "quantity": "square"}
        | Measure(mean, 0.005).columns("chain")
        | Measure(1.0, 0.0).columns("posterior")
        | (Measure(0.5, 0.0).columns("law") if acceptance == "printed" and has_law else none)
        for algorithm, target, has_law in (
            ("pCN", "network", True),
            ("pCNL", "network", False),
            ("pCNL", "U = 0", True),
        )
        for acceptance, mean in (("printed", printed), ("right", right))
    ]
    assert judged(algorithms, claim, rows) == word
