"""The shape of a posterior: training, spherical paths, slices, barriers and curvature."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import widebnn as wb
from widebnn import landscape

from .exact.landscape import assert_curvature, assert_slice, assert_spherical, flat
from .exact.networks import problem

KEY = jax.random.key(0)


def network(kind, **options):
    tiny = problem(**({"widths": (4,), "out_features": 2} | options))
    return getattr(wb.targets, kind)(tiny.bnn, tiny.x, tiny.y)


def draws(target, num):
    stacked = jax.jit(jax.vmap(target.draw_prior))(jax.random.split(KEY, num))
    return [jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[i]), stacked) for i in range(num)]  # noqa: B023


def quadratic(matrix):
    """U(u) = ½uᵀAu."""
    return wb.targets.from_potential(lambda u: u @ matrix @ u / 2, jnp.zeros(len(matrix)))


def round_the_circle(height, slope=0.0):
    """A bump of this height half way from direction 0 to direction π/2, and a slope in nats along the way."""

    def potential(u):
        angle = jnp.arctan2(u[1], u[0])
        return height * jnp.sin(2 * angle) ** 2 + slope * angle / (jnp.pi / 2)

    return wb.targets.from_potential(potential, jnp.zeros(2))


# Paths.


@pytest.mark.slow
def test_slerp_follows_the_great_circle():
    assert_spherical(landscape.slerp)


@pytest.mark.parametrize("apart", [0.0, 1e-8])
def test_slerp_of_nearly_parallel_directions_is_their_straight_line(apart):
    """The two differ by the square of the angle."""
    a = jnp.array([3.0, 4.0])
    b = 2 * a + apart * jnp.array([4.0, -3.0])
    norm_a, norm_b = jnp.linalg.norm(a), jnp.linalg.norm(b)
    straight = (0.7 * norm_a + 0.3 * norm_b) * (0.7 * a / norm_a + 0.3 * b / norm_b)
    assert jnp.allclose(landscape.slerp(a, b, 0.3), straight, rtol=0, atol=1e-14 + apart**2)


# Slices.


@pytest.mark.slow
def test_slice_holds_the_energy_of_its_points():
    target = network("repriorised")
    assert_slice(landscape.slice_through, target, draws(target, 3))


def test_slice_covers_the_triangle_and_begins_at_the_first_corner():
    nothing = wb.targets.from_potential(lambda u: 0.0 * u[0], jnp.zeros(3))
    seen = landscape.slice_through(nothing, draws(nothing, 3), 5)
    assert (
        seen.weights.shape == (21, 3) and seen.weights[0].tolist() == [1, 0, 0] and seen.half_square[0] == 0
    )
    assert len({tuple(w) for w in np.asarray(seen.weights).round(6).tolist()}) == 21
    np.testing.assert_allclose(seen.weights.sum(axis=1), 1)
    assert landscape.simplex_grid(2, 2).tolist() == [[1, 0], [0.5, 0.5], [0, 1]]


def test_a_path_runs_from_the_first_to_the_second():
    target = round_the_circle(0.0, slope=1.0)
    path = landscape.slice_through(target, (jnp.array([1.0, 0.0]), jnp.array([0.0, 3.0])), 4)
    np.testing.assert_allclose(path.potential, [0, 0.25, 0.5, 0.75, 1], atol=1e-12)
    np.testing.assert_allclose(path.half_square, (np.array([1, 1.5, 2, 2.5, 3]) ** 2 - 1) / 2, atol=1e-12)


@pytest.mark.slow
def test_half_square_holds_in_float32(float32):
    """Of a million numbers, ½‖u‖² is 500,000, which float32 knows to 0.03; the slice knows it to 0.001."""
    nothing = wb.targets.from_potential(lambda u: 0.0 * u[0], jnp.zeros(1_000_000))
    corners = draws(nothing, 3)
    seen = landscape.slice_through(nothing, corners, 2)
    assert seen.half_square.dtype == jnp.float32
    norms = np.array([np.linalg.norm(np.asarray(u, np.float64)) for u in corners])
    exact = ((np.asarray(seen.weights, np.float64) @ norms) ** 2 - norms[0] ** 2) / 2
    assert np.abs(exact).max() > 10
    np.testing.assert_allclose(seen.half_square, exact, rtol=1e-5, atol=1e-3)


# Barriers.


@pytest.mark.slow
def test_barrier_is_measured_from_the_higher_end_and_never_negative():
    corners = jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0])
    t = np.linspace(0, 1, 201)
    climb = (3 * np.sin(np.pi * t) ** 2 + 2 * t).max() - 2
    for ends in (corners, corners[::-1]):
        path = landscape.slice_through(round_the_circle(3.0, slope=2.0), ends, 200)
        np.testing.assert_allclose(path.barrier().potential, climb, rtol=1e-10)
    assert landscape.slice_through(round_the_circle(-1.0, 0.5), corners, 20).barrier().potential == 0


# Curvature.


@pytest.mark.slow
def test_curvature_is_the_largest_eigenvalue_of_the_hessian():
    target = network("marginal")
    found, _ = assert_curvature(landscape.curvature, target, draws(target, 1)[0], 30)
    assert found.residual < 1e-3 * found.largest


@pytest.mark.parametrize("num_steps", [1, 8])
def test_an_eigenvalue_lies_within_the_residual(num_steps):
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(30, 30))
    exact = 1 + np.linalg.eigvalsh(matrix + matrix.T)
    found = landscape.curvature(KEY, quadratic(jnp.asarray(matrix + matrix.T)), jnp.zeros(30), num_steps)
    assert np.abs(exact - float(found.largest)).min() <= float(found.residual) + 1e-12
    assert found.largest <= exact[-1] + 1e-12  # a Ritz value lies within the spectrum


# Training.


def test_a_step_of_training_descends_the_energy():
    target = network("standard")
    start = draws(target, 1)[0]
    trained = landscape.train(target, start, optax.sgd(1e-3), 1)
    gradient = jax.grad(target.logdensity)(start)
    by_hand = jax.tree.map(lambda u, g: u + 1e-3 * g, start, gradient)
    np.testing.assert_allclose(flat(trained.position), flat(by_hand), rtol=1e-12)
    assert trained.potential.shape == (1,)
    assert jnp.allclose(trained.potential[0], target.potential(start))


def test_training_of_linear_regression_finds_the_posterior_mean():
    rng = np.random.default_rng(3)
    x, y = jnp.asarray(rng.normal(size=(20, 5))), jnp.asarray(rng.normal(size=(20, 2)))
    target = wb.targets.linear(x, y, 0.3)
    start = target.draw_prior(KEY)
    step_size = 1 / landscape.curvature(KEY, target, start, 5).largest
    trained = landscape.train(target, start, optax.sgd(step_size, momentum=0.9), 1_000)
    assert jnp.allclose(trained.position, target.posterior.mean(), atol=1e-8)
    assert trained.potential[-1] < trained.potential[0] / 2
