"""Fits of `widebnn.BNNRegressor`, converged and at infinite width, against scikit-learn's Gaussian process.

At 442 rows these are the diabetes data; at 5,000 they are drawn from Friedman's function of five uniform
inputs (Friedman 1991), 10 sin(πx₁x₂) + 20(x₃ − ½)² + 10x₄ + 5x₅, with noise of deviation 1. The process has a
length scale for each input and maximises the evidence from a single start, the least that it can do.
Compilation is part of our seconds.
"""

import math
import os
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.datasets import make_friedman1
from threadpoolctl import threadpool_limits

import widebnn as wb
from benchmarks.tabular.data_sets import Table, diabetes
from benchmarks.tabular.methods import process
from benchmarks.tabular.units import Units
from benchmarks.timing import Comparison, compare

__all__ = ["ROUNDS", "NotConvergedError", "process_fit_vs_gpr", "regressor_fit_vs_gpr", "regressor_fits"]

ROUNDS = {442: 3, 5_000: 1}
"""Pairs of timings, by the number of rows."""
MAX_DRAWS = 20_000
"""Of each chain: convergence ends the run."""
UNTIL = wb.Until(ess=400, rhat=1.01, seconds=3_600)


class NotConvergedError(RuntimeError):
    """A fit of ours ended before it had converged: its seconds would say nothing."""


def regressor_fits() -> Iterator[Comparison]:
    """Two rows for each number of rows; one, and why, where a fit of ours does not converge in an hour."""
    for num_rows, rounds in ROUNDS.items():
        yield process_fit_vs_gpr(num_rows, rounds)
        try:
            yield regressor_fit_vs_gpr(num_rows, rounds)
        except NotConvergedError as error:
            print(f"skipped regressor_fit_vs_gpr_{num_rows}: {error}", flush=True)


def process_fit_vs_gpr(num_rows: int, rounds: int) -> Comparison:
    """Seconds of both, ours at infinite width: two processes at their most probable scales."""
    table = _table(num_rows)
    return _compared(
        f"process_fit_vs_gpr_{num_rows}", lambda: wb.BNNRegressor(math.inf).fit(*table), table, rounds
    )


def regressor_fit_vs_gpr(num_rows: int, rounds: int) -> Comparison:
    """Seconds of both, ours until 400 effective samples and an R̂ of at most 1.01 of everything it watches.

    Raises
    ------
    NotConvergedError
        If a fit of ours does not get there in an hour.
    """
    table = _table(num_rows)
    seeds = iter(range(rounds))

    def ours() -> None:
        options: Any = {"num_samples": MAX_DRAWS, "until": UNTIL, "random_state": next(seeds)}
        model = wb.BNNRegressor(width=128, **options).fit(*table)
        if model.stopped_ != "converged":
            raise NotConvergedError(f"ours ended by {model.stopped_} before it had converged")

    return _compared(f"regressor_fit_vs_gpr_{num_rows}", ours, table, rounds)


def _compared(id: str, ours: Callable[[], None], table: Table, rounds: int) -> Comparison:
    # more threads than cores would wait for one another
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()

    def peer() -> None:
        with threadpool_limits(cores, user_api="blas"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # length scales at their bounds
            process(np.ones(table.x.shape[1]), 0, seed=0).fit(Units.of(table).inputs(table.x), table.y)

    row = compare(id, _seconds(ours), _seconds(peer), rounds)
    row["unit"] = "s/fit"
    return row


def _table(num_rows: int) -> Table:
    return diabetes() if num_rows == 442 else friedman(num_rows)


def friedman(num_rows: int) -> Table:
    return Table(*make_friedman1(num_rows, n_features=5, noise=1.0, random_state=0))


def _seconds(fit: Callable[[], None]) -> Callable[[], float]:
    def timed() -> float:
        start = time.perf_counter()
        fit()
        return time.perf_counter() - start

    return timed
