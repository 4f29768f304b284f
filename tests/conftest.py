"""Tests compute in float64, where comparisons are sharp; promotion of ranks and of dtypes is forbidden."""

from collections.abc import Iterator

import jax
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# Where compiled programs are kept, keep the small ones too: tests compile more of those than anything else.
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@pytest.fixture
def float32() -> Iterator[None]:
    """The test computes in float32, as users do by default: data sets and layers of Flax have no other."""
    with jax.enable_x64(False):
        yield


@pytest.fixture
def mixed_dtypes() -> Iterator[None]:
    """Data in float32 meet a network in float64, or steps are those of BlackJAX, Optax or neural-tangents."""
    with jax.numpy_dtype_promotion("standard"):
        yield
