"""What a nonlinearity does to a Gaussian: E[ψ(u)ψ(v)] and E[ψ′(u)ψ′(v)] in closed form.

(u, v) ~ N(0, [[a, c], [c, b]]) throughout. The second expectation is the derivative of the first by c (Price
1958), written out because the derivative of the arc-cosine kernel cannot be taken where u = v.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["EXPECTATIONS"]

Matrix = Float[Array, "n m"]
Column = Float[Array, "n 1"]
Row = Float[Array, "1 m"]


def relu(a: Column, c: Matrix, b: Row) -> tuple[Matrix, Matrix]:
    """The arc-cosine kernels of orders one and zero (Cho & Saul 2009)."""
    norm = jnp.sqrt(a * b)
    # ‖u‖‖v‖ sin θ; as a product, so that no rounding is left where u = v
    sine = jnp.sqrt(jnp.maximum(norm - c, 0) * (norm + c))
    angle = jnp.arctan2(sine, c)
    return (sine + (jnp.pi - angle) * c) / (2 * jnp.pi), (jnp.pi - angle) / (2 * jnp.pi)


def erf(a: Column, c: Matrix, b: Row) -> tuple[Matrix, Matrix]:
    """The arc-sine kernel (Williams 1997)."""
    root = jnp.sqrt((1 + 2 * a) * (1 + 2 * b) - 4 * c**2)
    return 2 / jnp.pi * jnp.arctan2(2 * c, root), 4 / (jnp.pi * root)


def gelu(a: Column, c: Matrix, b: Row) -> tuple[Matrix, Matrix]:
    """ψ(u) = uΦ(u), by Stein's identity E[u g] = a E[∂_u g] + c E[∂_v g] applied to either factor.

    With s² = (1+a)(1+b) and D = s² − c²: E[Φ(u)Φ(v)] = ¼ + arcsin(c/s)/2π, and what is left are Gaussian
    integrals 1/(2π√D).
    """
    s2 = (1 + a) * (1 + b)
    d = s2 - c**2
    root = jnp.sqrt(d)
    orthant = 1 / 4 + jnp.arctan2(c, root) / (2 * jnp.pi)
    rest = a * b + c**2 * (1 - a * b) / s2
    slope = c + 2 * c * (1 - a * b) / s2 + c * rest / d
    return c * orthant + rest / (2 * jnp.pi * root), orthant + slope / (2 * jnp.pi * root)


EXPECTATIONS: dict[str, Callable[[Column, Matrix, Row], tuple[Matrix, Matrix]]] = {
    "erf": erf,
    "gelu": gelu,
    "relu": relu,
}
"""(E[ψ(u)ψ(v)], E[ψ′(u)ψ′(v)]) of the nonlinearities of `widebnn.models.ACTIVATIONS`, by name."""
