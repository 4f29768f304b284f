"""The experiment on what gradients are worth: rows, and a claim on made-up rows."""

import numpy as np
import pytest

from book.experiments.findings import Chains
from book.experiments.gradient_gain import gradient_gain

from .judging import findings, judged

SUFFICES = gradient_gain, "P-C"
COUNTS = {"num_chains": 10, "num_rounds": 15, "width": 64}


def made(pcn, pcnl, tuned=(1.0, 2.0), ess=400.0, slower=2.0):
    rows = []
    for is_tuned, per_step in ((False, (pcn, pcnl)), (True, tuned)):
        for sampler, one, time in zip(("pCN", "pCNL"), per_step, (1.0, slower), strict=True):
            row = {"sampler": sampler, "is_tuned": is_tuned, "step_size": 0.2, "rhat": 1.01}
            row |= {kind: ess for kind in ("ess_bulk", "ess_tail")}
            row |= {"ess_per_step": one, "ess_per_step_error": one / 50}
            rows.append(row | {"relative_time": time, "relative_time_error": 0.04 * (time - 1)})
    return rows


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        (made(1.0, 1.4), "reproduced"),  # 0.7 by 3.5 % of itself, of which t asks for four
        (made(1.0, 1.8), "not testable at this scale"),
        (made(1.0, 2.8), "contradicted"),
        (made(1.0, 1.4, ess=149.0), "not testable at this scale"),
        (made(1.0, 1.4, tuned=(1.0, 9.0)), "reproduced"),  # which is shown
    ],
)
def test_pcn_suffices_where_pcnl_has_fewer_effective_samples_per_second(rows, wanted):
    assert judged(*SUFFICES, rows, **COUNTS) == wanted


def test_the_time_of_a_step_counts_with_its_error():
    common, tuned, slower = findings(*SUFFICES, made(1.0, 1.4), **COUNTS)
    assert common.value == pytest.approx(0.7) and tuned.value == pytest.approx(1.0)
    assert common.error == pytest.approx(0.7 * np.sqrt(2 / 50**2 + 0.02**2))
    assert (slower.value, slower.error, slower.degrees) == (2.0, 0.04, 9)
    assert common.chains == Chains(400, 1.01)


def test_a_chain_that_never_moves_has_no_number():
    rows = made(1.0, 1.4)
    rows[0] |= dict.fromkeys(("ess_per_step", "ess_per_step_error", "ess_bulk", "ess_tail", "rhat"))
    common, tuned, _ = findings(*SUFFICES, rows, **COUNTS)
    assert not common.is_known and tuned.value == pytest.approx(1.0)
