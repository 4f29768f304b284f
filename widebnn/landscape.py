"""The shape of a posterior between points: training, spherical paths and slices, barriers, curvature.

The energy of a position $u$ is minus its log density, $½‖u‖² + U(u)$ up to a constant. Draws from $N(0, I)$
in many dimensions lie near a sphere: a straight line between two of them cuts through its inside, where the
prior has next to no mass, and a spherical path does not (Hron et al. 2022, Figure 5).
"""

import functools
import math
from collections.abc import Sequence
from itertools import combinations, product
from typing import NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key

from widebnn._check import Number, at_least, brief, finite, one_key
from widebnn.targets._base import Target
from widebnn.tree import Position, half_square_difference, inner_product, normal_like

__all__ = [
    "Barrier",
    "Curvature",
    "Slice",
    "Trained",
    "curvature",
    "simplex_grid",
    "slerp",
    "slice_through",
    "train",
]


Weights = Float[Array | np.ndarray, "point corner"]


class Trained(NamedTuple):
    """Where training ended, and $U$ before each of its steps."""

    position: Position
    potential: Float[Array, " step"]


def train(
    target: Target, position: Position, optimiser: optax.GradientTransformation, num_steps: int
) -> Trained:
    """Descend the energy $½‖u‖² + U(u)$ from `position`, on all observations at each step.

    Parameters
    ----------
    target
        Target whose energy is descended; for `widebnn.targets.standard` it is the squared error of the
        network over $2σ²$, with weight decay.
    position
        Where to start, for instance `target.draw_prior(rng_key)`.
    optimiser
        An Optax gradient transformation.
    num_steps
        Number of steps.

    Returns
    -------
    The last position, and $U$ before each step. The trace leaves out $½‖u‖²$, which grows with the number of
    parameters: in float32 the sum would lose $U$.
    """
    if not isinstance(optimiser, optax.GradientTransformation):
        raise TypeError(f"optimiser must be one of optax, such as optax.adam(1e-3); got {brief(optimiser)}")
    at_least(1, num_steps=num_steps)
    _fits(target, position=position)
    return _train(target, optimiser, num_steps, position)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _train(
    target: Target, optimiser: optax.GradientTransformation, num_steps: int, position: Position
) -> Trained:
    def step(carry, _):
        position, state = carry
        potential, gradient = jax.value_and_grad(target.potential)(position)
        of_energy = jax.tree.map(jnp.add, position, gradient)
        updates, state = optimiser.update(of_energy, state, position)
        return (optax.apply_updates(position, updates), state), potential

    (position, _), potential = jax.lax.scan(step, (position, optimiser.init(position)), length=num_steps)
    return Trained(position, potential)


def slerp(a: Position, b: Position, t: Number) -> Position:
    """The point at $t ∈ [0, 1]$ of the spherical path from $a$ to $b$.

    The direction moves along the great circle at constant speed; the norm is linear in $t$. All leaves
    together are one vector, not zero, and $a$ and $b$ are not opposite.
    """
    shapes_a, shapes_b = (jax.tree.map(jnp.shape, u) for u in (a, b))
    if shapes_a != shapes_b:
        raise ValueError(f"b must have the shapes of a, {shapes_a}; got {shapes_b}")
    point, norms, along = _slerp(a, b, t)
    if not isinstance(along, jax.core.Tracer):
        if not (np.asarray(norms) > 0).all():
            raise ValueError(f"a and b must not be zero: their norms are {norms[0]} and {norms[1]}")
        if float(along) < math.sqrt(jnp.finfo(along.dtype).eps):
            raise ValueError("a and b must not be opposite: no one great circle joins them")
    return point


@jax.jit
def _slerp(a: Position, b: Position, t: Number) -> tuple[Position, Float[Array, "2"], Float[Array, ""]]:
    """The point, the norms of a and b, and the length of the sum of their directions."""
    norm_a, norm_b = _norm(a), _norm(b)
    apart = _norm(jax.tree.map(lambda u, v: u / norm_a - v / norm_b, a, b))
    along = _norm(jax.tree.map(lambda u, v: u / norm_a + v / norm_b, a, b))
    angle = 2 * jnp.arctan2(apart, along)  # exact to rounding at every angle, which arccos is not
    # sin(s·angle)/sin(angle) by sinc, which has its limit s at angle 0
    of_a, of_b = (s * jnp.sinc(s * angle / jnp.pi) / jnp.sinc(angle / jnp.pi) for s in (1 - t, t))
    norm = (1 - t) * norm_a + t * norm_b
    point = jax.tree.map(lambda u, v: norm * (of_a / norm_a * u + of_b / norm_b * v), a, b)
    return point, jnp.stack([norm_a, norm_b]), along


def simplex_grid(num_corners: int, resolution: int) -> Weights:
    """Barycentric weights of a regular grid, (point, corner), beginning with the first corner.

    `resolution` is the number of steps along an edge.
    """
    at_least(1, num_corners=num_corners)
    steps = range(at_least(1, resolution=resolution), -1, -1)
    counts = [w for w in product(steps, repeat=num_corners) if sum(w) == resolution]
    return np.array(counts, jnp.result_type(float)) / resolution


class Barrier(NamedTuple):
    """How far a path rises above the higher of its ends, in nats: in $½‖u‖² + U$, and in $U$ alone."""

    energy: float
    potential: float


class Slice(NamedTuple):
    """A posterior on a spherical path or triangle.

    Attributes
    ----------
    weights
        Barycentric weights, those of `simplex_grid`.
    potential
        $U$, minus the log density relative to $N(0, I)$.
    half_square
        $½‖u‖²$ minus its value at the first corner.
    """

    weights: Weights
    potential: Float[Array | np.ndarray, " point"]
    half_square: Float[Array | np.ndarray, " point"]

    @property
    def energy(self) -> Float[Array | np.ndarray, " point"]:
        """$½‖u‖² + U$, minus the log density up to a constant."""
        return self.half_square + self.potential

    def barrier(self, first: int = 0, second: int = 1) -> Barrier:
        """The climb along the edge between two corners, in nats; 0 where it never rises above its ends.

        It is an upper bound on the least climb over all paths, up to what the grid misses.

        $½‖u‖²$ of two draws from $N(0, I)$ in $d$ dimensions differs by about $√d$, and this slope of the
        prior can hide a bump of $U$ in the energy. Samplers that leave the prior invariant see $U$ alone.
        """
        num = self.weights.shape[1]
        if first == second or not {first, second} <= set(range(num)):
            raise ValueError(
                f"first and second must be two of the corners 0 to {num - 1}; got {first}, {second}"
            )
        weights, potential, half_square = map(np.asarray, self)
        edge = np.isclose(weights[:, first] + weights[:, second], 1)
        ends = np.isclose(weights[:, [first, second]].max(axis=1), 1)

        def climb(values):
            return float(values[edge].max() - values[edge & ends].max())

        return Barrier(climb(half_square + potential), climb(potential))


def slice_through(target: Target, corners: Sequence[Position], resolution: int) -> Slice:
    """Look at a posterior on the spherical path between two points, or the triangle between three.

    The point of weights $(α, β, γ)$ is $slerp(slerp(a, b, β/(α + β)), c, γ)$. One point is in memory at
    a time. Its norm is $α‖a‖ + β‖b‖ + γ‖c‖$, which gives $½‖u‖²$ without the rounding of a sum over all
    parameters.

    Parameters
    ----------
    target
        Target whose potential is computed.
    corners
        Two or three positions, none zero, no two opposite.
    resolution
        Steps along an edge, at least 2.
    """
    at_least(2, resolution=resolution)
    if len(corners) not in (2, 3):
        raise ValueError(f"corners must be two positions or three; got {len(corners)}")
    for corner in corners:
        _fits(target, corners=corner)
    for a, b in combinations(corners, 2):
        slerp(a, b, 0.5)  # its errors, before anything long begins
    weights = simplex_grid(len(corners), resolution)
    return Slice(weights, *_seen(target, tuple(corners), weights))


@jax.jit
def _seen(
    target: Target, corners: tuple[Position, ...], weights: Float[Array, "point corner"]
) -> tuple[Float[Array, " point"], Float[Array, " point"]]:
    """U, and ½‖u‖² minus its value at the first corner, at every point."""
    norms = [_norm(corner) for corner in corners]
    weights = weights.astype(norms[0].dtype)
    potential = jax.lax.map(lambda w: target.potential(_blend(corners, w)), weights)
    longer = [
        2 * half_square_difference(corner, corners[0]) / (norm + norms[0])
        for corner, norm in zip(corners, norms, strict=True)
    ]
    excess = weights @ jnp.stack(longer)
    return potential, excess * (norms[0] + excess / 2)


def _blend(corners: Sequence[Position], weights: Float[Array, " corner"]) -> Position:
    def join(so_far, following):
        (point, total), (corner, weight) = so_far, following
        both = total + weight
        return _slerp(point, corner, weight / jnp.where(both > 0, both, 1))[0], both

    return functools.reduce(join, zip(corners, weights, strict=True))[0]


class Curvature(NamedTuple):
    """The largest eigenvalue of $I + ∇²U$, and an upper bound on its distance from an exact eigenvalue."""

    largest: Float[Array, ""]
    residual: Float[Array, ""]


def curvature(rng_key: Key[Array, ""], target: Target, position: Position, num_steps: int = 30) -> Curvature:
    """The largest eigenvalue $Λ$ of the Hessian of the energy, $I + ∇²U$, by Lanczos iteration.

    It bounds step sizes: gradient descent is stable for steps below $2/Λ$, and leapfrog for steps below
    $2/√Λ$. Where $U$ is flat, $Λ$ is 1.

    Parameters
    ----------
    rng_key
        Key of the first vector.
    target
        Target whose energy is meant.
    position
        Where the Hessian is taken.
    num_steps
        Number of Hessian–vector products. Three vectors are kept and none is orthogonalised again: an
        eigenvalue may then appear twice, which does not move the end of the spectrum.

    Returns
    -------
    The largest Ritz value, and the norm of its residual: an exact eigenvalue lies within that distance.
    """
    one_key(rng_key=rng_key)
    at_least(1, num_steps=num_steps)
    _fits(target, position=position)
    return _curvature(target, num_steps, rng_key, position)


@functools.partial(jax.jit, static_argnums=1)
def _curvature(target: Target, num_steps: int, rng_key: Key[Array, ""], position: Position) -> Curvature:
    def step(carry, _):
        before, beta, v = carry
        _, w = jax.jvp(jax.grad(target.potential), (position,), (v,))  # ∇²U v
        alpha = inner_product(v, w)
        w = jax.tree.map(lambda w, v, u: w - alpha * v - beta * u, w, v, before)
        beta, w = _normalised(w)
        return (v, beta, w), (alpha, beta)

    norm, start = _normalised(normal_like(rng_key, position))
    nothing = jax.tree.map(jnp.zeros_like, start)
    _, (alpha, beta) = jax.lax.scan(step, (nothing, jnp.zeros_like(norm), start), length=num_steps)
    values, vectors = jnp.linalg.eigh(jnp.diag(alpha) + jnp.diag(beta[:-1], 1) + jnp.diag(beta[:-1], -1))
    return Curvature(1 + values[-1], jnp.abs(beta[-1] * vectors[-1, -1]))


def _norm(u: Position) -> Float[Array, ""]:
    return jnp.sqrt(inner_product(u, u))


def _normalised(u: Position) -> tuple[Float[Array, ""], Position]:
    """‖u‖ and u/‖u‖; zero stays zero, as where a Hessian is."""
    norm = _norm(u)
    return norm, jax.tree.map(lambda leaf: leaf / jnp.where(norm > 0, norm, 1), u)


def _fits(target: Target, **named: Position) -> None:
    """A position of the target, with finite entries."""
    ((name, position),) = named.items()
    if not isinstance(target, Target):
        raise TypeError(f"target must be a widebnn target; got {type(target).__name__}")
    wanted, given = (jax.tree.map(lambda leaf: leaf.shape, u) for u in (target.template, position))
    if wanted != given:
        raise ValueError(f"{name} must have the target's shapes {wanted}; got {given}")
    for leaf in jax.tree.leaves(position):
        finite(**{name: leaf})
