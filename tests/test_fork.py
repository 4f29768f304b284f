"""A process that was forked after JAX had run is refused, where it would hang."""

import os
import signal
import time

import jax
import jaxtyping
import numpy as np
import pytest

import widebnn as wb
from widebnn._compile import refuse_fork

SECONDS = 600.0  # on however busy a machine
X = np.arange(4.0)[:, None]
CALLS = {
    "sample": lambda: wb.sample(None, None),
    "vi.fit": lambda: wb.vi.fit(None, None, X, X, wb.vi.square, None, num_epochs=1),
    "fit": lambda: wb.BNNRegressor().fit(X, X[:, 0]),
    "predict": lambda: wb.BNNRegressor().predict(X),
}


def in_a_fork(call):
    """The exit status: 0 where the error says what to do, or 1; the child is ended where it hangs."""
    if (child := os.fork()) == 0:
        try:
            call()
        except RuntimeError as error:
            os._exit(0 if "spawn" in str(error) else 1)
        except BaseException:
            os._exit(1)
        os._exit(1)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if (found := os.waitpid(child, os.WNOHANG))[0]:
            return os.waitstatus_to_exitcode(found[1])
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise TimeoutError


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
