"""Bad inputs of the landscape."""

import jax.numpy as jnp
import optax

import widebnn as wb
from widebnn import landscape

from .rows import KEY, X_NAN, X, Y, flat, position, refused, target


def slice_through(**options):
    flat_target = wb.targets.from_potential(flat, jnp.zeros(2))
    defaults = {"target": flat_target, "corners": [jnp.ones(2), jnp.array([1.0, 0.0])], "resolution": 2}
    return landscape.slice_through(**(defaults | options))


ROWS = [
    *refused(
        "landscape.slerp",
        (X, Y, 0.5, "b…(4, 3)…(4, 2)"),
        (X, 0 * X, 0.5, "b…zero…0.0"),
        (X, -2 * X, 0.5, "b…opposite"),
    ),
    *refused(
        "landscape.slice_through",
        ({"corners": [jnp.ones(2)]}, "corners…two positions or three…1"),
        ({"corners": [jnp.ones(2), jnp.ones(3)]}, "corners…(2,)…(3,)"),
        ({"corners": [jnp.ones(2), X_NAN[0, :2]]}, "corners…finite"),
        ({"corners": [jnp.ones(2), -jnp.ones(2)]}, "opposite"),
        ({"target": flat}, TypeError, "target…function"),
        call=lambda o: slice_through(**o),
    ),
    *refused(
        "landscape.Slice",
        (lambda: slice_through().barrier(0, 2), "first and second…0 to 1…0, 2"),
        (lambda: slice_through().barrier(1, 1), "first and second…1, 1"),
    ),
    *refused(
        "landscape.curvature",
        (lambda: landscape.curvature(KEY, target(), position("standard")), "position…the target's shapes"),
    ),
    *refused(
        "landscape.train",
        (lambda: landscape.train(target(), X, optax.sgd(0.1), 1), "position…the target's shapes…(4, 3)"),
    ),
]
