"""What a nonlinearity does to a Gaussian: E[ψ(u)ψ(v)] and E[ψ′(u)ψ′(v)] in closed form.

(u, v) ~ N(0, [[a, c], [c, b]]) throughout. The second expectation is the derivative of the first by c (Price
1958), written out because the derivative of the arc-cosine kernel cannot be taken where u = v.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["EXPECTATIONS"]

Entries = Float[Array, "#n #m"]  # of a covariance matrix; variances stand as a column and as a row


def relu(a: Entries, c: Entries, b: Entries) -> tuple[Entries, Entries]:
    """The arc-cosine kernels of orders one and zero (Cho & Saul 2009)."""
    sine = _root(_determinant(a, c, b))  # ‖u‖‖v‖ sin θ
    beyond = jnp.pi - jnp.arctan2(sine, c)
    return (sine + beyond * c) / (2 * jnp.pi), beyond / (2 * jnp.pi)


def erf(a: Entries, c: Entries, b: Entries) -> tuple[Entries, Entries]:
    """The arc-sine kernel (Williams 1997)."""
    root = jnp.sqrt(1 + 2 * a + 2 * b + 4 * _determinant(a, c, b))
    return 2 / jnp.pi * jnp.arctan(2 * c / root), 4 / (jnp.pi * root)


def gelu(a: Entries, c: Entries, b: Entries) -> tuple[Entries, Entries]:
    """ψ(u) = uΦ(u), by Stein's identity E[u g] = a E[∂_u g] + c E[∂_v g] applied to either factor.

    With s² = (1+a)(1+b) and D = s² − c²: E[Φ(u)Φ(v)] = ¼ + arcsin(c/s)/2π, and what is left are Gaussian
    integrals 1/(2π√D), with factors in which nothing cancels.
    """
    s2 = (1 + a) * (1 + b)
    d = 1 + a + b + _determinant(a, c, b)
    orthant = 1 / 4 + jnp.arctan(c / jnp.sqrt(d)) / (2 * jnp.pi)
    integral = 1 / (2 * jnp.pi * s2 * jnp.sqrt(d))
    return c * orthant + (a * b * d + c**2) * integral, orthant + c * (3 + a + b + c**2 / d) * integral


def _determinant(a: Entries, c: Entries, b: Entries) -> Entries:
    """ab − c², as a product: no rounding is left where u = ±v, and nothing below 0."""
    norm = _root(a * b)
    return jnp.maximum((norm - c) * (norm + c), 0)


def _root(x: Entries) -> Entries:
    """√x, with the derivative 0 at 0: where u = v the infinite one would meet a factor 0 and give NaN.

    A compiler may compute x twice and round it differently, once above 0 and once not: the values are close.
    """
    return jnp.where(x > 0, jnp.sqrt(jnp.maximum(x, jnp.finfo(x.dtype).tiny)), 0)


EXPECTATIONS: dict[str, Callable[[Entries, Entries, Entries], tuple[Entries, Entries]]] = {
    "erf": erf,
    "gelu": gelu,
    "relu": relu,
}
"""$(E[ψ(u)ψ(v)], E[ψ′(u)ψ′(v)])$ of the nonlinearities of `widebnn.models.ACTIVATIONS`, by name."""
