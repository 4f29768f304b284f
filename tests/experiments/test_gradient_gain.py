"""The experiment on what gradients are worth: rows, and a claim on made-up rows."""

import numpy as np
import pytest

from book.experiments.findings import Chains
from book.experiments.gradient_gain import gradient_gain
from widebnn.tables import Results, Rows

from .judging import findings, judged

SUFFICES = gradient_gain, "P-C"
COUNTS = {"num_chains": 10, "num_rounds": 15, "width": 64, "num_train": 8, "step_size": 0.2}


def made(pcn, pcnl, tuned=(1.0, 1.4), ess=400.0, slower=2.0):
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
        (made(1.0, 1.4), "holds"),  # 0.7 by 3.5 % of itself, of which t asks for four
        (made(1.0, 1.4, tuned=(1.0, 9.0)), "holds in part"),
        (made(1.0, 2.8, tuned=(1.0, 9.0)), "fails"),
        (made(1.0, 1.4, ess=149.0), "open"),
    ],
)
def test_pcn_suffices_where_pcnl_has_fewer_effective_samples_per_second(rows, wanted):
    assert judged(*SUFFICES, rows, **COUNTS) == wanted


def test_the_time_of_a_step_counts_with_its_error():
    common, tuned = findings(*SUFFICES, made(1.0, 1.4, tuned=(1.0, 2.0)), **COUNTS)
    assert common.value == pytest.approx(0.7) and tuned.value == pytest.approx(1.0)
    assert common.error == pytest.approx(0.7 * np.sqrt(2 / 50**2 + 0.02**2))
    assert common.chains == Chains(400, 1.01)


def test_a_chain_that_never_moves_has_no_number():
    rows = made(1.0, 1.4)
    rows[0] |= dict.fromkeys(("ess_per_step", "ess_per_step_error", "ess_bulk", "ess_tail", "rhat"))
    common, tuned = findings(*SUFFICES, rows, **COUNTS)
    assert not common.is_known and tuned.value == pytest.approx(0.7)


def test_other_runs_are_shown_at_every_width():
    results = Results(Rows(made(1.0, 1.4)), COUNTS | {"num_train": 128, "step_size": 0.2}, {})
    kinds = ("ess", "ess_low", "ess_high", "ess_bulk", "ess_tail")
    rows = [
        {"width": width, "sampler": sampler, "step_size": 0.2, "ms_per_step": ms, "acceptance": 0.5}
        | {f"{kind}_{of}": ess for kind in kinds for of in ("weights", "potential")}
        | {"acceptance_error": 0.01}
        for width, ess_of_pcn in ((8, 0.01), (16, 0.1), (32, 0.4))
        for sampler, ess, ms in (("pCN", ess_of_pcn, 1.0), ("pCNL", 0.4, 2.0))
    ]
    settings = {"samplers": ["pCN", "pCNL"], "num_steps": [2_000] * 2, "num_projections": 9, "num_train": 256}
    mixing = Results(Rows(rows), settings, {}, "mixing_over_width")
    tuned = [
        {
            "width": width,
            "sampler": sampler,
            "ess_per_step": ess,
            "ess_per_step_error": ess / 50,
            "ess": 400.0,
        }
        | {"ms_per_step": ms}
        for width in (8, 16)
        for sampler, ess, ms in (("pCN", 0.1, 1.0), ("pCNL", 0.1 * width, 2.0))
    ]
    efficiency = Results(Rows(tuned), {"num_train": 32, "num_chains": 10}, {}, "efficiency")
    found = gradient_gain.findings["P-C"](results, [efficiency, mixing])
    assert [round(f.value, 6) for f in found if f.is_known] == [2, 0.5, 0.5, 8, 0.7, 0.7]
    assert [f.is_known for f in found] == [False] + [True] * 6  # 20 effective samples are too few
    assert [f.what for f in found if "width 16" in f.what][-1] == (
        "least ESS per second, pCNL ÷ pCN, n = 32, width 16, each β tuned"
    )
