"""Fully connected embeddings: every layer of a network but the readout."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float

from widebnn._arrays import Inputs
from widebnn._check import Number, at_least, brief, one_of
from widebnn.models.dense import Dense

__all__ = ["ACTIVATIONS", "FCN"]

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "erf": jax.scipy.special.erf,
    "gelu": lambda f: f * (1 + jax.lax.erf(f / math.sqrt(2))) / 2,  # jax.nn has erfc, 3 times as slow
    "relu": jax.nn.relu,
}
"""Nonlinearities $ψ$ by name; GELU is the exact one, $f Φ(f)$."""


class FCN(nnx.Module):
    """$h^ℓ = ψ(f^ℓ)$, $f^ℓ = (σ_W/√d_(ℓ−1)) h^(ℓ−1) W^ℓ + σ_b b^ℓ$ for $1 ≤ ℓ ≤ L$ (Hron et al. 2022, §1.1).

    It maps $x = h⁰$ of shape $(n, d_in)$ to $h^L$ of shape $(n, d_L)$.

    Parameters
    ----------
    in_features
        Number of inputs, $d_in$.
    width
        $d_ℓ$: one number for all hidden layers, or one for each.
    depth
        $L$, the number of hidden layers; unless given, 1, or one for each entry of `width`. 0 gives $h = x$.
    activation
        $ψ$: "gelu", "erf" or "relu".
    weight_std, bias_std
        $σ_W$ and $σ_b$: one number for all hidden layers, or a sequence with one for each; the papers' $√2$
        and 0.1 by default. $σ_W$ of a layer may be an array, one number per input, as in `Dense`.
    rngs
        Generator of the initial parameters.
    """

    def __init__(
        self,
        in_features: SupportsIndex,
        width: SupportsIndex | Sequence[SupportsIndex],
        depth: SupportsIndex | None = None,
        *,
        activation: str = "gelu",
        weight_std: Number | Array | np.ndarray | Sequence[Number | Array | np.ndarray] = 2**0.5,
        bias_std: Number | Sequence[Number] = 0.1,
        rngs: nnx.Rngs,
    ):
        self.in_features = at_least(1, in_features=in_features)
        if isinstance(width, str):
            raise TypeError(f"width must be an integer, or one for each layer; got {brief(width)}")
        if isinstance(width, Sequence):
            widths = [at_least(1, width=d) for d in width]
            if depth not in (None, len(widths)):
                raise ValueError(f"depth must be {len(widths)}, one for each entry of width; got {depth}")
        else:
            widths = [at_least(1, width=width)] * at_least(0, depth=1 if depth is None else depth)
        self.activation = one_of(ACTIVATIONS, activation=activation)
        self.width, self.depth = tuple(widths), len(widths)
        weight_stds = self._of_layers(weight_std=weight_std)
        bias_stds = self._of_layers(bias_std=bias_std)
        self.layers = nnx.List(
            Dense(d_in, d_out, weight_std=weight_stds[i], bias_std=bias_stds[i], rngs=rngs)
            for i, (d_in, d_out) in enumerate(pairwise([self.in_features, *widths]))
        )
        self.out_features = widths[-1] if widths else self.in_features

    def _of_layers(self, **named: Any) -> Sequence[Any]:
        """One for each layer."""
        ((name, given),) = named.items()
        if not isinstance(given, list | tuple):
            if np.ndim(given) and self.depth > 1:
                raise ValueError(
                    f"{name} must be a sequence with one entry per layer where one is an array, such as "
                    f"[{name}, 1.4]; got an array for {self.depth} layers"
                )
            return [given] * self.depth
        if len(given) != self.depth:
            raise ValueError(f"{name} must have one entry per hidden layer, {self.depth}; got {len(given)}")
        return given

    def __call__(self, x: Inputs) -> Float[Array, "n d_L"]:
        """h^L, the activations of the top hidden layer, not yet scaled by the readout's σ_W/√d_L."""
        h = jnp.asarray(x)
        for layer in self.layers:
            h = ACTIVATIONS[self.activation](layer(h))
        return h
