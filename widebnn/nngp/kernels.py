"""Kernels of infinitely wide dense networks, layer by layer, and of others through neural-tangents."""

import functools
import warnings
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float

from widebnn._arrays import Inputs, NewInputs, floating
from widebnn._check import Number, brief, one_of
from widebnn._pytree import Static
from widebnn.models import BNN, FCN
from widebnn.models._affine import stretched
from widebnn.nngp.activations import EXPECTATIONS

__all__ = ["Kernel", "nngp_kernel", "ntk_kernel", "stax_kernel"]

Kernel = Callable[..., Float[Array, "n m"]]
"""A function ``(x1, x2=None)``, $(n, ...)$ and $(m, ...) ↦ (n, m)$; x2 is x1 unless given."""


class Layer(NamedTuple):
    """Pre-activations of one layer in the limit: covariances, and the tangent kernel up to here."""

    variance1: Float[Array, " n"]
    covariance: Float[Array, "n m"]
    variance2: Float[Array, " m"]
    tangent: Float[Array, "n m"]


def nngp_kernel(bnn: BNN) -> Kernel:
    """$K$, the limit of $K̂ = ΨΨᵀ$ as all widths go to infinity (Lee et al. 2018; Matthews et al. 2018).

    $K^1 = (σ_W x)(σ_W x)ᵀ/d_in + σ_b²$, where $σ_W$ may be one number per input, and
    $K^ℓ = σ_W² E[ψ(f) ψ(f)ᵀ] + σ_b²$ with $f ~ N(0, K^(ℓ−1))$ for each further layer, of which the readout is
    the last, with scales of its own. $K$ is the covariance of each of the network's outputs, which are
    independent of one another.

    Parameters
    ----------
    bnn
        A network whose features are a `widebnn.models.FCN`, of any depth, width and activation; for others
        see `stax_kernel`. The network of a rotated target has the same kernel, of its own, rotated inputs.

    Returns
    -------
    A `Kernel`: a function ``(x1, x2=None)``, $(n, ...)$ and $(m, ...) ↦ (n, m)$.
    """
    return _recursion(bnn, "covariance")


def ntk_kernel(bnn: BNN) -> Kernel:
    """$Θ$, the limit of $JJᵀ$ with $J$ the Jacobian of an output in all parameters (Jacot et al. 2018).

    $Θ^1 = K^1$ and $Θ^ℓ = K^ℓ + σ_W² Θ^(ℓ−1) ⊙ E[ψ′(f) ψ′(f)ᵀ]$, as in `nngp_kernel`. With ReLU, $Θ$ has a
    cusp where inputs are equal: between nearly equal inputs, and equal ones of x1 and x2, it is known to
    about $√ε$, on the diagonal of one $x$ to $ε$, with $ε$ the rounding error.

    Parameters, returns and errors are those of `nngp_kernel`.
    """
    return _recursion(bnn, "tangent")


def stax_kernel(kernel_fn: Callable, kind: str = "nngp") -> Kernel:
    """A kernel of neural-tangents in the form that `gaussian_process` takes (Novak et al. 2020).

    It is meant for networks of your own, which have no closed form here; see `neural_tangents`. Where
    branches are summed, all but one must end in a layer with weights of its own: this is not checked.

    The kernel is compiled once per shape. With ReLU its $Θ$ is then known to about $√ε$ where inputs are
    equal, and elsewhere to $ε$, with $ε$ the rounding error.

    Parameters
    ----------
    kernel_fn
        The kernel function, third of the three functions that a layer of ``neural_tangents().stax`` consists
        of.
    kind
        "nngp" for $K$, "ntk" for $Θ$.

    Returns
    -------
    A `Kernel`.
    """
    if not callable(kernel_fn):
        raise TypeError(f"kernel_fn must be a function, the third of a stax layer's; got {brief(kernel_fn)}")
    one_of(("nngp", "ntk"), kind=kind)
    compiled = jax.jit(lambda x1, x2: kernel_fn(x1, x2, kind))

    def kernel(x1: Inputs, x2: NewInputs | None = None) -> Float[Array, "n m"]:
        x1 = floating(x1=x1)
        x2 = None if x2 is None else floating(x2=x2)
        if x2 is not None and x1.shape[1:] != x2.shape[1:]:
            raise ValueError(f"x2 must have inputs like those of x1, {x1.shape[1:]}; got {x2.shape[1:]}")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`FanIn` layers assume")  # at every sum; said above, once
            return compiled(x1, x2)

    return kernel


def _recursion(bnn: BNN, kind: str) -> Kernel:
    """A pytree, whose leaves are the scales."""
    if not isinstance(bnn, BNN):
        raise TypeError(f"bnn must be a widebnn.BNN; got {type(bnn).__name__}")
    features = bnn.features.module
    if type(features) is not FCN:  # a subclass may compute something else
        got = "a function alone, as of flax.linen" if features is None else type(features).__name__
        raise ValueError(
            "bnn must have features with a known limit, FCN of widebnn.models; "
            f"got {got}. For other networks see widebnn.nngp.stax_kernel"
        )
    one_of(EXPECTATIONS, activation=features.activation)
    scales = [(layer.weight_std, layer.bias_std) for layer in [*features.layers, bnn]]
    if any(jnp.ndim(weight_std) for weight_std, _ in scales[1:]):
        raise ValueError("bnn must have one weight_std for all units of a hidden layer, or no limit is known")
    known = _num_columns(bnn, features), features.in_features, features.activation
    return Partial(_of_inputs, Static((kind, *known)), scales)


def _of_inputs(
    known: Static,
    scales: list[tuple[Number | Float[Array | np.ndarray, " d_in"], Number]],
    x1: Inputs,
    x2: NewInputs | None = None,
) -> Float[Array, "n m"]:
    kind, columns, *network = known.value
    x2 = None if x2 is None or x2 is x1 else _checked(columns, x2=x2)
    return getattr(_limit(_checked(columns, x1=x1), x2, scales, *network), kind)


@functools.partial(jax.jit, static_argnames=("in_features", "activation"))
def _limit(
    x1: Float[Array, "n d"],
    x2: Float[Array, "m d"] | None,
    scales: list[tuple[Number | Float[Array | np.ndarray, " d_in"], Number]],
    in_features: int,
    activation: str,
) -> Layer:
    """The readout's layer; with x2 = None, that of x1 and itself."""

    def step(layer: Layer, scales: tuple[Array, Array]) -> tuple[Layer, None]:
        return _dense(_activate(layer, activation, is_square=x2 is None), *scales), None

    of_inputs, *above = [tuple(jnp.asarray(s, x1.dtype) for s in each) for each in scales]
    weight_std, bias_std = of_inputs  # σ_W may be one number per input, which multiplies its column
    left, right = (stretched(weight_std, x) for x in (x1, x1 if x2 is None else x2))
    first = _dense(_inputs(left, right, in_features), 1.0, bias_std)
    if not above:
        return first
    weight_stds, bias_stds = (jnp.stack(each) for each in zip(*above, strict=True))
    return jax.lax.scan(step, first, (weight_stds, bias_stds))[0]


def _num_columns(bnn: BNN, features: FCN) -> int:
    """Columns of an input: d_in, or fewer after a rotation, which leaves d_in in the scaling."""
    if not features.layers:
        return features.in_features
    first_kernel = bnn.features.template["layers"][0]["kernel"]
    return first_kernel.shape[0]


def _checked(columns: int, **named: Inputs) -> Array:
    ((name, _),) = named.items()
    x = floating(**named)
    if x.ndim != 2 or x.shape[1] != columns or x.size == 0:
        raise ValueError(f"{name} must have shape (n, d_in) = (n, {columns}) with n ≥ 1; got {x.shape}")
    return x


def _inputs(x1: Float[Array, "n d"], x2: Float[Array, "m d"], in_features: int) -> Layer:
    variance1, variance2 = (jnp.sum(x**2, axis=1) / in_features for x in (x1, x2))
    # In full precision on GPUs and TPUs too: near-equal inputs are told apart by the last digits.
    covariance = jnp.matmul(x1, x2.T, precision="highest") / in_features
    return Layer(variance1, covariance, variance2, jnp.zeros_like(covariance))


def _dense(layer: Layer, weight_std, bias_std) -> Layer:
    """f = σ_W/√d h W + σ_b b; the tangent kernel gains the layer's own parameters."""
    variance1, covariance, variance2 = (weight_std**2 * part + bias_std**2 for part in layer[:3])
    return Layer(variance1, covariance, variance2, covariance + weight_std**2 * layer.tangent)


def _activate(layer: Layer, activation: str, is_square: bool) -> Layer:
    """h = ψ(f)."""
    expectations = EXPECTATIONS[activation]
    a, b = layer.variance1, layer.variance2
    covariance, slope = expectations(a[:, None], layer.covariance, b[None, :])
    (variance1, slope1), (variance2, _) = (expectations(q[:, None], q[:, None], q[:, None]) for q in (a, b))
    if is_square:  # a variance and its covariance may differ in the last bit, from which ReLU's angles suffer
        covariance = jnp.fill_diagonal(covariance, variance1[:, 0], inplace=False)
        slope = jnp.fill_diagonal(slope, slope1[:, 0], inplace=False)
    return Layer(variance1[:, 0], covariance, variance2[:, 0], layer.tangent * slope)
