"""The scale at which experiments and chapters run: one variable, read here and nowhere else."""

import os

import jax

__all__ = ["SCALES", "at_scale", "current_scale"]

SCALES = ("smoke", "laptop", "colab", "paper")
"""From seconds on two cores, over minutes on a laptop and one small GPU, to the papers' own settings."""


def current_scale() -> str:
    """The value of the environment variable `WIDEBNN_SCALE`; if it is unset, what suits JAX's default device.

    On a CPU that is "smoke", on any other device "colab". Asking for the device starts JAX's backend, so a
    process that calls `jax.distributed.initialize` must do so first.

    Examples
    --------
    >>> import os
    >>> from unittest.mock import patch
    >>> import widebnn as wb
    >>> with patch.dict(os.environ, WIDEBNN_SCALE="laptop"):
    ...     wb.current_scale()
    'laptop'
    """
    scale = os.environ.get("WIDEBNN_SCALE")
    if scale is None:
        return "smoke" if jax.default_backend() == "cpu" else "colab"
    if scale not in SCALES:
        raise ValueError(f"WIDEBNN_SCALE must be one of {', '.join(SCALES)}; got {scale!r}")
    return scale


def at_scale[T](**choices: T) -> T:
    """The choice made for the current scale, or for the next smaller one that has a choice.

    Parameters
    ----------
    **choices
        One value per scale, by name: "smoke", which is required, "laptop", "colab" and "paper".

    Examples
    --------
    >>> import widebnn as wb
    >>> num_samples = wb.at_scale(smoke=100, laptop=10_000)
    """
    unknown = sorted(set(choices) - set(SCALES))
    if unknown or "smoke" not in choices:
        raise ValueError(f"choices must name 'smoke' and may name {SCALES[1:]}; got {sorted(choices)}")
    smaller = SCALES[: SCALES.index(current_scale()) + 1]
    return next(choices[scale] for scale in reversed(smaller) if scale in choices)
