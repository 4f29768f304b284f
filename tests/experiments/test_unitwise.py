"""Sweeps over width: rows, and a claim that follows them."""

from book.experiments.findings import verdict
from widebnn.tables import Results, Rows

from .judging import said


def test_claim_wants_rejection_to_vanish_and_sweeps_to_be_independent():
    def judged(power, ess):
        rows = Rows(
            {
                "width": width,
                "rejection": 0.4 * (width / 64) ** power,
                "rejection_error": 1e-3,
                "ess_potential": ess(width),
                "ess_potential_error": 0.02,
                "ess_weights": ess(width),
                "ess_weights_error": 0.02,
                "rhat_potential": 1.02,
                "rhat_weights": 1.0 + 1 / width,
            }
            for width in (512, 64, 128, 256)  # in any order
        )
        findings = said("X-5", Results(rows, {"num_chains": 8, "num_sweeps": 300}, {}))
        assert [f.chains and f.chains.rhat for f in findings[-4:]] == [1.02] * 2 + [1 + 1 / 64] * 2
        return verdict(findings)

    assert judged(-1, lambda width: 1 - 10 / width) == "reproduced"
    assert judged(0, lambda width: 0.5) == "not reproduced"
    assert judged(-1, lambda width: 0.5) == "reproduced in part"
