"""Paths, slices and curvatures against geometry and linear algebra written out without the package."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree


def flat(u):
    return np.asarray(ravel_pytree(u)[0])


def great_circle(a, b, t):
    """cos(t·angle) e₁ + sin(t·angle) e₂ by Gram–Schmidt, at a norm linear in t."""
    norm_a, norm_b = np.linalg.norm(a), np.linalg.norm(b)
    e1 = a / norm_a
    across = b - (b @ e1) * e1
    e2 = across / np.linalg.norm(across)
    angle = np.arctan2(b @ e2, b @ e1)
    return ((1 - t) * norm_a + t * norm_b) * (np.cos(t * angle) * e1 + np.sin(t * angle) * e2)


def pairs():
    """Pairs of vectors in two leaves: at random, of unlike norms, at right, acute and obtuse angles."""
    rng = np.random.default_rng(0)
    for scale in (1.0, 3.0, 1e-3):
        yield (
            {"w": rng.normal(size=(2, 3)), "b": rng.normal(size=4)},
            {"w": scale * rng.normal(size=(2, 3)), "b": scale * rng.normal(size=4)},
        )
    e = np.eye(3)
    yield {"w": 2 * e[0]}, {"w": e[1]}
    yield {"w": e[0]}, {"w": e[0] + 1e-3 * e[1]}
    yield {"w": e[0]}, {"w": -e[0] + 1e-3 * e[1]}


def assert_spherical(slerp):
    slerp = jax.jit(slerp)
    for a, b in pairs():
        for t in (0.0, 0.2, 0.5, 0.9, 1.0):
            exact, found = great_circle(flat(a), flat(b), t), flat(slerp(a, b, t))
            assert np.allclose(found, exact, rtol=0, atol=1e-12 * np.abs(exact).max()), (
                f"{found} where {exact} is on the sphere"
            )


def assert_slice(slice_through, target, corners):
    """U and ½‖u‖² of every point of a triangle, one by one."""
    seen = slice_through(target, corners, 4)
    a, b, c = map(flat, corners)
    unravel = ravel_pytree(corners[0])[1]
    energies, logdensity = [], jax.jit(target.logdensity)
    for alpha, beta, gamma in np.asarray(seen.weights):
        edge = great_circle(a, b, beta / (alpha + beta)) if alpha + beta > 0 else a
        energies.append(-logdensity(unravel(jnp.asarray(great_circle(edge, c, gamma)))))
    exact, found = np.array(energies), np.asarray(seen.energy)
    found = found - found[0] + exact[0]
    assert np.ptp(exact) > 0.1, "the points do not differ"
    assert np.allclose(found, exact, atol=1e-10 * np.abs(exact).max()), f"{found} where {exact} is right"


def assert_curvature(curvature, target, position, num_steps):
    """The largest eigenvalue of the dense Hessian of −log density."""
    vector, unravel = ravel_pytree(position)
    hessian = jax.jit(jax.hessian(lambda z: -target.logdensity(unravel(z))))(vector)
    exact = np.linalg.eigvalsh(hessian)
    found = curvature(jax.random.key(0), target, position, num_steps)
    rounding = 1e-10 * np.abs(exact).max()
    assert abs(found.largest - exact[-1]) < found.residual + rounding, (
        f"{found.largest} where {exact[-1]} is right, at most {found.residual} away"
    )
    return found, exact
