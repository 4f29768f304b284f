"""The words of the ledger: one for every verdict on every kind of row, each told apart without colour."""

import pytest

from widebnn.study import VERDICTS, Claim
from widebnn.study.words import CALLED, WORDS, called


def claim(id: str) -> Claim:
    return Claim(id, claim="a claim", experiment="grid", summarise=lambda results: [], rule="Above 0.")


def test_every_verdict_has_a_word_on_every_kind_of_row():
    assert set(CALLED) == set(VERDICTS)
    assert {*VERDICTS, *(word for pair in CALLED.values() for word in pair)} == set(WORDS)


@pytest.mark.parametrize(
    ("verdict", "question", "own"),
    [
        ("reproduced", "answered", "holds"),
        ("corrected", "answered", "holds"),
        ("reproduced in part", "answered in part", "holds in part"),
        ("not reproduced", "open", "fails"),
        ("contradicted", "answered", "fails"),
        ("not testable at this scale", "open", "open"),
        ("not yet run", "open", "open"),
    ],
)
def test_questions_are_answered_and_own_claims_hold(verdict, question, own):
    assert called(claim("P-F1"), verdict) == verdict
    assert called(claim("P-X"), verdict) == question
    assert called(claim("X-1"), verdict) == own


def test_a_verdict_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="verdict must be one of 'contradicted'.*got 'holds'"):
        called(claim("X-1"), "holds")


def test_words_of_one_colour_and_sign_mean_the_same_of_different_rows():
    """Colour alone says nothing: of the rows of papers no two words share both."""
    shown = [WORDS[verdict][:2] for verdict in VERDICTS]
    assert len(set(shown)) == len(VERDICTS)
    assert all(word.sign and word.meaning.endswith(".") for word in WORDS.values())
