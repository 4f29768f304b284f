"""Experiments compute in float32, as they do for those who run them."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(scope="module", autouse=True)
def as_users_do() -> Iterator[None]:
    """Float32 for fixtures of whole modules too."""
    with jax.enable_x64(False):
        yield


@pytest.fixture
def float64() -> Iterator[None]:
    """The test compares with brute force."""
    with jax.enable_x64(True):
        yield
