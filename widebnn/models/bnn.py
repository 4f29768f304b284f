"""A Bayesian neural network: embedding, Gaussian linear readout, observation noise."""

import copy
import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, PyTree

from widebnn._arrays import num_rows, shapes
from widebnn._check import Number, at_least, brief, is_known_to_be, non_negative, positive, positive_each
from widebnn._pytree import STATIC, pytree
from widebnn.models.embedding import Embedding, FeaturesError, Inner, from_nnx

__all__ = ["BNN", "Parameters", "scale_of"]


class Parameters(NamedTuple):
    """$θ$: inner parameters $θ^≤L$ and readout $W$, $(p, d_out)$; the prior of every entry is $N(0, 1)$.

    $p = d_L + 1$, where the last row of $W$ is the bias; $p = d_L$ where the network has no bias.
    """

    inner: Inner
    readout: Float[Array, "p d_out"]


@pytree
@dataclass(frozen=True, eq=False, init=False, repr=False)
class BNN:
    """$y = Ψ W + σ ε$ with $Ψ = [σ_W h^L(x)/√d_L, σ_b]$, theory as in Hron et al. 2022, §1.1 and §2.

    It describes the network and holds no parameters: these are passed in.

    $σ$, $σ_W$ and $σ_b$ may be traced: build the network inside the function that is to be differentiated.

    Parameters
    ----------
    features
        The layers below the readout: an NNX module that maps $(n, ...)$ to $h^L$ of shape $(n, d_L)$, or an
        `Embedding` (see `from_linen` and `from_function`).
    out_features
        Number of outputs, $d_out$.
    noise_std
        $σ > 0$, the standard deviation of the observation noise. Where it differs, an array: one number per
        output, $(d_out,)$, or, known and to go with the data of a target, one per observation, $(n, 1)$ or
        $(n,)$. Where $n = d_out > 1$, the shape $(d_out,)$ is one per output.
    weight_std, bias_std
        $σ_W$ and $σ_b$ of the readout; the papers' 1 and 0.1 by default. With $σ_b = 0$ there is no bias,
        unless the 0 is traced.

    Raises
    ------
    ValueError
        If `features` holds BatchNorm or Dropout.
    """

    features: Embedding
    out_features: int = field(metadata=STATIC)
    noise_std: Any  # a number, (n, 1) or (1, d_out)
    weight_std: Number
    bias_std: Number
    has_bias: bool = field(metadata=STATIC, init=False)
    """Whether $Ψ$ has a bias column, as it does where $σ_b ≠ 0$."""

    def __init__(
        self,
        features: nnx.Module | Embedding,
        out_features: int,
        noise_std: Number | Array | np.ndarray,
        *,
        weight_std: Number = 1.0,
        bias_std: Number = 0.1,
    ):
        checked = {
            "out_features": at_least(1, out_features=out_features),
            "noise_std": _noise(noise_std, out_features),
            "weight_std": positive(weight_std=weight_std),
            "bias_std": non_negative(bias_std=bias_std),
            "has_bias": not is_known_to_be(0, bias_std),
            "features": features if isinstance(features, Embedding) else from_nnx(features),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)  # frozen from here on

    def at_scales(self, **scales: Number | Float[Array, "..."]) -> "BNN":
        """The same network at other scales, which may be traced.

        Parameters
        ----------
        **scales
            Their values. "noise_std" is $σ$. "readout_std" multiplies $Ψ$: $σ_W$ and $σ_b$ of the
            readout as they are. Any other name is the end of the path of numbers in `features`: "weight_std"
            and "bias_std" are those of all layers, "layers.0.weight_std" that of the first layer of a `FCN`.
            Where several names end the same path, the longest counts.

        Examples
        --------
        >>> from flax import nnx
        >>> import widebnn as wb
        >>> bnn = wb.BNN(wb.models.FCN(2, 16, rngs=nnx.Rngs(0)), 1, noise_std=0.1)
        >>> other = bnn.at_scales(noise_std=0.2, weight_std=1.0)
        """

        def replaced(path, leaf):
            name = scale_of(path, scales)
            return leaf if name is None else scales[name]

        ratio: Any = scales.get("readout_std", 1.0)
        made = copy.copy(self)
        changed = {
            "noise_std": _placed(scales.get("noise_std", self.noise_std), self.out_features),
            "weight_std": ratio * self.weight_std,
            "bias_std": ratio * self.bias_std,
            "features": jax.tree_util.tree_map_with_path(replaced, self.features),
        }
        for name, value in changed.items():
            object.__setattr__(made, name, value)  # without the checks of numbers that may be traced
        return made

    def __repr__(self) -> str:
        below = self.features if self.features.module is None else self.features.module
        scales = ", ".join(
            f"{name}={brief(getattr(self, name))}" for name in ("noise_std", "weight_std", "bias_std")
        )
        return f"BNN({type(below).__name__}, out_features={self.out_features}, {scales})"

    def embedding(self, inner: Inner, x: Any) -> Float[Array, "n p"]:
        """$Ψ$, the scaled embedding with a bias column; $p = d_L + 1$, or $d_L$ where $σ_b = 0$."""
        h = self.features.apply(inner, x)
        if not isinstance(h, jax.Array | np.ndarray):
            raise FeaturesError(f"features must return one array (n, d_L); got a {type(h).__name__}")
        n = num_rows(x)
        if h.ndim != 2 or h.shape[0] != n:
            raise ValueError(
                f"features must map inputs of shape {shapes(x)} to (n, d_L) = ({n}, d_L); "
                f"got {h.shape}: pool or flatten inside the module"
            )
        psi = self.weight_std / math.sqrt(h.shape[1]) * h
        if not self.has_bias:
            return psi
        return jnp.concatenate([psi, jnp.full((len(psi), 1), self.bias_std, psi.dtype)], axis=1)

    def __call__(self, parameters: Parameters, x: Any) -> Float[Array, "n d_out"]:
        """F = Ψ W, the noise-free outputs."""
        return self.embedding(parameters.inner, x) @ parameters.readout

    def template(self, x: Any) -> PyTree:
        """Shapes and dtypes of $θ$ as `Parameters`, for inputs like `x`."""
        psi = jax.eval_shape(self.embedding, self.features.template, x)
        readout: Any = jax.ShapeDtypeStruct((psi.shape[1], self.out_features), psi.dtype)
        return Parameters(self.features.template, readout)


def scale_of(path: tuple, names: Collection[str]) -> str | None:
    """The longest of these names that ends the path of a leaf."""
    keys = (getattr(key, "key", getattr(key, "idx", getattr(key, "name", key))) for key in path)
    whole = "." + ".".join(map(str, keys))
    return max((name for name in names if whole.endswith(f".{name}")), key=len, default=None)


def _noise(noise_std: Any, out_features: int) -> Any:
    """A number, or arrays as `_placed` places them."""
    if np.ndim(noise_std) == 0 or not isinstance(noise_std, jax.Array | np.ndarray):
        number: Any = noise_std
        return positive(noise_std=number)
    if noise_std.ndim == 2 and (noise_std.shape[1] == 1 or noise_std.shape == (1, out_features)):
        noise_std = noise_std.ravel()
    return _placed(positive_each(None, noise_std=noise_std), out_features)


def _placed(noise_std: Any, out_features: int) -> Any:
    """One number per output as a row, and one per observation as a column, to meet (n, d_out)."""
    if np.ndim(noise_std) != 1:
        return noise_std
    return noise_std[None, :] if noise_std.shape == (out_features,) != (1,) else noise_std[:, None]
