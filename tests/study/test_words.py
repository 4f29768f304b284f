"""The words of the ledger: one for every verdict on every kind of row."""

import pytest

from widebnn.study import VERDICTS, Claim
from widebnn.study.words import CALLED, WORDS, called


def claim(id: str) -> Claim:
    return Claim(id, claim="a claim", experiment="grid", summarise=lambda results: [], rule="Above 0.")


def test_questions_are_answered_and_own_claims_hold():
    assert set(CALLED) == set(VERDICTS)
    assert {*VERDICTS, *(word for pair in CALLED.values() for word in pair)} == set(WORDS)
    for verdict, (question, own) in CALLED.items():
        assert called(claim("P-F1"), verdict) == verdict
        assert (called(claim("P-X"), verdict), called(claim("X-1"), verdict)) == (question, own)
    with pytest.raises(ValueError, match="verdict must be one of 'contradicted'.*got 'holds'"):
        called(claim("X-1"), "holds")
