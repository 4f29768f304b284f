"""A process that was forked after JAX had run is refused, where it would hang."""

import os
import signal

import jax
import jaxtyping
import numpy as np
import pytest

import widebnn as wb
from widebnn._compile import refuse_fork

SECONDS = 600  # on however busy a machine
X = np.arange(4.0)[:, None]
CALLS = {
    "sample": lambda: wb.sample(None, None),
    "fit": lambda: wb.BNNRegressor().fit(X, X[:, 0]),
    "predict": lambda: wb.BNNRegressor().predict(X),
}


def in_a_fork(call):
    """The exit status: 0 where the error says what to do."""
    if (child := os.fork()) == 0:
        signal.alarm(SECONDS)  # ends it where it hangs
        status = 1
        try:
            call()
        except RuntimeError as error:
            status = int("spawn" not in str(error))
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:os.fork", "ignore:This process")
@pytest.mark.parametrize("of", CALLS)
def test_a_forked_process_is_told_to_spawn(of, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users meet our errors, and alone
    refuse_fork()  # here JAX runs
    jax.block_until_ready(jax.numpy.zeros(()))
    assert in_a_fork(CALLS[of]) == 0


@pytest.mark.filterwarnings("ignore:os.fork", "ignore:This process")
def test_a_process_that_is_forked_before_jax_ran_is_taken(monkeypatch):
    monkeypatch.setattr("widebnn._compile._process", None)
    assert in_a_fork(lambda: (refuse_fork(), os._exit(7))) == 7
