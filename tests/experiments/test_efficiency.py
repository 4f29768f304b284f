"""Effective samples per second: rows, and claims that follow them."""

from book.experiments.findings import verdict
from widebnn.tables import Results, Rows

from .judging import said

FASTER, COMPARED, TUNED = "X-1", "X-2", "P-C2"


def row(sampler, per_second, target="rotated", potential=0.0):
    return {
        "width": 64,
        "target": target,
        "sampler": sampler,
        "ess": 500.0,
        "ess_per_step": per_second / 10,
        "ess_per_step_error": per_second / 100,
        "ess_per_second": per_second,
        "potential": potential,
        "potential_error": 0.01,
        "potential_std": 1.0,
    }


def test_verdicts_follow_the_rows():
    def found(claim, num_chains, *rows):
        return said(claim, Results(Rows(rows), {"num_chains": num_chains}, {}))

    def judged(claim, *rows):
        return verdict(found(claim, 10, *rows))

    papers = [row("pCN", 1.0), row("pCNL", 2.0), row("Langevin", 0.5)]
    assert judged(FASTER, *papers, row("function-space HMC", 5.0), row("unit-wise", 9.0)) == "reproduced"
    assert (
        judged(FASTER, *papers, row("function-space HMC", 5.0), row("unit-wise", 1.0)) == "reproduced in part"
    )
    assert judged(FASTER, *papers, row("function-space HMC", 2.1), row("unit-wise", 1.0)) == "not reproduced"
    of_four = found(FASTER, 4, *papers, row("function-space HMC", 5.0), row("unit-wise", 5.0))
    assert [f.answer for f in of_four] == ["open"] * 2  # 6.5 errors, where t asks for 9

    whole = row("HMC", 1.0, "repriorised")
    assert judged(COMPARED, whole, row("HMC", 1.0, "marginal"), row("HMC", 9.0)) == "reproduced"
    assert judged(COMPARED, whole, row("HMC", 1.0, "marginal"), row("HMC", 0.1)) == "contradicted"
    few = row("HMC", 9.0) | {"ess": 149.0}
    assert judged(COMPARED, whole, row("HMC", 1.0, "marginal"), few) == "not testable at this scale"

    assert judged(TUNED, row("pCN", 1.0), row("pCNL", 2.0), row("Langevin", 5.0)) == "reproduced"
    assert judged(TUNED, row("pCN", 9.0), row("pCNL", 2.0), row("Langevin", 5.0)) == "not reproduced"
    wider = [row(name, 9.0) | {"width": 128} for name in ("pCN", "pCNL")] + [
        row("Langevin", 1.0) | {"width": 128}
    ]
    narrow = [row("pCN", 1.0), row("pCNL", 2.0), row("Langevin", 5.0)]
    assert judged(TUNED, *wider, *narrow) == "reproduced"
