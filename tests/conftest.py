"""Promotion of ranks and of dtypes is forbidden; comparisons of results ask for float64."""

from collections.abc import Iterator

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
# Under JAX_ENABLE_X64 data sets in float32 meet networks in float64, as they do for users.
if not jax.config.jax_enable_x64:
    jax.config.update("jax_numpy_dtype_promotion", "strict")

# Where compiled programs are kept, keep the small ones too: tests compile more of those than anything else.
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@pytest.fixture
def x64() -> Iterator[None]:
    """The test computes in float64."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def float32() -> Iterator[None]:
    """The test computes in float32: it counts bytes, or has running means, of which Flax has no others."""
    with jax.enable_x64(False):
        yield


@pytest.fixture
def mixed_dtypes() -> Iterator[None]:
    """Data in float32 meet a network in float64, or steps are those of BlackJAX, Optax or neural-tangents."""
    with jax.numpy_dtype_promotion("standard"):
        yield
