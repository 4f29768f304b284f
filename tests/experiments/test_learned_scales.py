"""What is said of ranks of the truth, and of scores on tables that ship."""

import numpy as np
import pytest

from book.experiments.learned_scales import learned_scales, over_the_limit

from .judging import judged

UNIFORM = np.random.default_rng(0).multinomial(1_000, np.full(20, 1 / 20), size=4)


@pytest.mark.parametrize(("change", "verdict"), [(0, "reproduced"), (60, "contradicted")])
def test_ranks_must_be_uniform(change, verdict):
    ranks = UNIFORM.copy()
    ranks[2, [0, 10]] += change, -min(change, ranks[2, 10])
    rows = [{"quantity": name, "ranks": row.tolist()} for name, row in zip("abcd", ranks, strict=True)]
    assert judged(learned_scales, "X-8", rows) == verdict


def test_scores_are_those_of_the_tables_that_ship():
    found = over_the_limit()
    assert len(found) == 6 and all(gain.error > 0 for gain in found.values())
