"""Tests compute in float64, where comparisons are sharp; promotion of ranks and of dtypes is forbidden."""

import signal
from collections.abc import Iterator

import jax
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Keep compiled programs; the package is imported when jaxtyping is ready to check it."""
    import widebnn

    widebnn.keep_compiled()


@pytest.fixture
def float32() -> Iterator[None]:
    """The test computes in float32, as users do by default: data sets and layers of Flax have no other."""
    with jax.enable_x64(False):
        yield


@pytest.fixture
def sigint() -> Iterator[None]:
    """Python hears Ctrl-C itself, which what a shell runs in the background does not, before and after."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "it was not put back"
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def mixed_dtypes() -> Iterator[None]:
    """Data in float32 meet a network in float64, or steps are those of BlackJAX, Optax or neural-tangents."""
    with jax.numpy_dtype_promotion("standard"):
        yield
