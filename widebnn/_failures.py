"""Warnings of runs that failed: chains that are stuck, and values that are not numbers."""

import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float, Shaped

MIN_PROPOSALS = 100
"""Fewer say too little of an acceptance rate."""
MIN_ACCEPTANCE = 1e-3


class ChainWarning(UserWarning):
    """Chains of a run failed, or it ended too early: what was estimated from it must not be trusted."""


def warn_of_failures(
    acceptance: Float[np.ndarray, " chain"],
    num_steps: int,
    values: Mapping[str, Shaped[np.ndarray, "chain ..."]],
) -> None:
    """Warn of NaN and of chains that accepted next to none of their proposals, and say how many there are."""
    is_stuck = acceptance < MIN_ACCEPTANCE
    num_proposals = num_steps * (len(acceptance) if is_stuck.all() else 1)
    if is_stuck.any() and num_proposals >= MIN_PROPOSALS:
        accepted = "fewer than one in 1,000" if acceptance[is_stuck].any() else "none"
        warn(
            f"{is_stuck.sum()} of {len(acceptance)} chains accepted {accepted} of their {num_steps:,} "
            "proposals: take a smaller step size, or start them elsewhere (`initial`)"
        )
    num_nan = {name: np.isnan(x).reshape(len(x), -1).any(axis=1).sum() for name, x in values.items()}
    if any(num_nan.values()):
        found = ", ".join(f"{name!r} in {number}" for name, number in num_nan.items() if number)
        warn(
            f"values of {found} of {len(acceptance)} chains are NaN: if they diverged, take a smaller step "
            "size; if not, the function is undefined there"
        )


def warn(message: str) -> None:
    """Warn where the package was called."""
    warnings.warn(message, ChainWarning, skip_file_prefixes=(str(Path(__file__).parent),))
