"""Algorithms as printed: their laws, where they are known, and that of the right ones."""

from book.experiments.algorithms import algorithms

from .judging import judged


def test_verdict_is_that_of_the_chains():
    def rows(printed, right):
        for algorithm, target, law in (
            ("pCN", "network", 0.5),
            ("pCNL", "network", None),
            ("pCNL", "U = 0", 0.5),
        ):
            for acceptance, mean in (("printed", printed), ("right", right)):
                named = {
                    "algorithm": algorithm,
                    "target": target,
                    "acceptance": acceptance,
                    "quantity": "square",
                }
                yield (
                    named
                    | {"chain": mean, "chain_error": 0.005, "posterior": 1.0, "posterior_error": 0.0}
                    | {
                        "law": law if acceptance == "printed" else None,
                        "law_error": None if law is None else 0.0,
                    }
                )

    for claim in algorithms.findings:
        for printed, right, wanted in ((0.5, 1.0, "corrected"), (1.0, 1.0, "not reproduced")):
            assert judged(algorithms, claim, rows(printed, right)) == wanted
        assert judged(algorithms, claim, rows(0.5, 0.5)) == "reproduced in part"
    assert len(algorithms.findings) == 2
