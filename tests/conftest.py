"""The whole suite forbids rank promotion; a test that compares results asks for float64."""

from collections.abc import Iterator

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")

# Where compiled programs are kept, keep the small ones too: tests compile more of those than anything else.
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@pytest.fixture
def x64() -> Iterator[None]:
    """The test computes in float64."""
    with jax.enable_x64(True):
        yield
