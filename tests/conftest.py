"""Tests compute in float64, where comparisons are sharp; promotion of ranks and of dtypes is forbidden.

They run at smoke scale, and programs are optimised little: most of a test's time goes into compiling.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from unittest import mock

import jax
import pytest

os.environ.setdefault("WIDEBNN_SCALE", "smoke")
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=1 --xla_llvm_disable_expensive_passes=true"
)
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

collect_ignore = ["browser", "colab"]  # which `make browser` and `make colab` run

START = pytest.StashKey[float]()
SPENT: Counter[str] = Counter()
"""Processor seconds of each test, which a busy machine raises less than those of a clock."""


def processor_seconds() -> float:
    """User and system, of this process and of those that it has waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Keep compiled programs; the package is imported when jaxtyping is ready to check it."""
    import widebnn

    widebnn.keep_compiled()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Set the clock of a test."""
    item.stash[START] = processor_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Note what each phase took, on the report, which goes from a worker to the process that prints."""
    report = yield
    now = processor_seconds()
    report.processor_seconds, item.stash[START] = now - item.stash[START], now
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the phases, of which the first makes what is shared."""
    SPENT[report.nodeid] += getattr(report, "processor_seconds", 0.0)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which tests and files took most, and what everything took, workers and imports included."""
    files: Counter[str] = Counter()
    for test, seconds in SPENT.items():
        files[test.split("::")[0]] += seconds
    terminalreporter.section("processor seconds")
    for name, seconds in SPENT.most_common(15) + files.most_common(15):
        if seconds > 5:
            terminalreporter.line(f"{seconds:6.0f}  {name}")
    terminalreporter.line(f"{processor_seconds():6.0f}  in all")


@pytest.fixture(scope="module", autouse=True)
def room() -> None:
    """Programs are forgotten between modules, where they are many, and not within a test that counts them."""
    from widebnn import _compile

    with mock.patch.object(_compile, "MAX_MAPS", _compile.MAX_MAPS // 2):
        _compile.make_room()


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
    """Data in float32 meet a network in float64, steps are those of BlackJAX, Optax or neural-tangents, or
    examples run as readers run them.
    """
    with jax.numpy_dtype_promotion("standard"):
        yield
