"""The Jacobian reparametrisation against its formulas written out densely, and against exact answers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from numpy.testing import assert_allclose

import widebnn as wb
from widebnn.targets._jacobian import hessian_log_det
from widebnn.tree import normal_like

from ..exact.change_of_variables import assert_same_density, log_density_of_map
from ..exact.importance import assert_exact, reference
from ..exact.networks import problem

KEY = jax.random.key(5)
DEEP = {"widths": (3, 2), "out_features": 2, "activation": "erf", "n": 3}


def jacobian(tiny, reg=None, **options):
    return wb.targets.jacobian(tiny.bnn, tiny.x, tiny.y, reg, **options)


class Dense:
    """J, r̃, Θ̂_λ, H and B at one φ, as matrices."""

    def __init__(self, tiny, phi, reg):
        self.flat, self.unravel = ravel_pytree(phi)
        self.tiny, self.reg = tiny, reg
        self.j = jax.jacfwd(self.f)(self.flat)
        self.theta = self.j @ self.j.T + reg * jnp.eye(len(self.j))
        self.r = jnp.linalg.solve(self.theta, tiny.y.ravel() - self.f(self.flat))
        self.hessians = jax.hessian(self.f)(self.flat)
        self.h = jnp.einsum("a,aij->ij", self.r, self.hessians)
        self.b = jnp.einsum("aij,j->ai", self.hessians, self.j.T @ self.r)

    def f(self, flat):
        """All outputs in one vector."""
        return self.tiny.bnn(self.unravel(flat), self.tiny.x).ravel()

    def log_first_factor(self):
        return len(self.j) * jnp.log(self.reg) - jnp.linalg.slogdet(self.theta)[1]


def at_parameters(tiny, key, reg):
    """What the target answers at one φ and λ, and what is right."""
    phi = normal_like(key, tiny.bnn.template(tiny.x))
    target, dense = jacobian(tiny, reg), Dense(tiny, phi, reg)
    theta = target.to_parameters(phi)
    sign, log_det = jnp.linalg.slogdet(jnp.eye(len(dense.h)) + dense.h - dense.j.T @ dense.b / reg)
    return {
        "density": (target.logdensity(phi), log_density_of_map(tiny, target, phi)),
        "moved": (ravel_pytree(theta)[0], dense.flat + dense.j.T @ dense.r),
        "inner": (ravel_pytree(target.inner(phi))[0], ravel_pytree(theta.inner)[0]),
        "readout": (target.readout(phi), theta.readout),
        "orientation": (target.orientation(phi), sign),
        "log_jacobian": (target.log_jacobian(phi), dense.log_first_factor() + log_det),
    }


@pytest.mark.slow
def test_one_damped_gauss_newton_step_and_its_density():
    """The determinant is det(λΘ̂⁻¹) det(I + H − JᵀB/λ), in absolute value and in sign."""
    tiny = problem(**DEEP)
    program = jax.jit(jax.vmap(functools.partial(at_parameters, tiny), in_axes=(0, None)))
    for reg in (0.1, tiny.bnn.noise_std**2, 3.0):
        found = jax.device_get(program(jax.random.split(jax.random.key(0), 4), reg))
        assert_same_density(*found.pop("density"))
        for name, (mine, exact) in found.items():
            assert_allclose(mine, exact, atol=1e-8 if name == "log_jacobian" else 1e-11, err_msg=name)


def test_the_default_regulariser_is_the_variance_of_the_noise():
    tiny = problem(widths=(4,))
    assert jacobian(tiny).reg == tiny.bnn.noise_std**2


def naive_estimate(tiny, phi, reg, num_probes, order):
    """Eq. (11) with H as a matrix, every power formed, and the same probes."""
    dense = Dense(tiny, phi, reg)
    total = 0.0
    for i in range(num_probes):
        s = jax.random.rademacher(jax.random.fold_in(KEY, i), dense.flat.shape, dense.flat.dtype)
        v = s
        for j in range(1, order + 1):
            v = dense.h @ v
            total += (-1) ** (j + 1) / j * s @ v
    return dense.log_first_factor() + total / num_probes


@pytest.mark.slow
def test_estimate_and_its_gradient_are_those_of_the_naive_sum():
    """Through r̃(φ) as well, which is fixed only inside H."""
    tiny = problem(widths=(3,), out_features=2, n=2)
    target = jacobian(tiny, 0.8, num_probes=3, order=3, rng_key=KEY)
    phi = tiny.draw_parameters()
    both = (target.log_jacobian, lambda phi: naive_estimate(tiny, phi, 0.8, 3, 3))
    found, exact = jax.jit(lambda phi: [ravel_pytree(jax.value_and_grad(f)(phi))[0] for f in both])(phi)
    assert_allclose(found, exact, rtol=1e-10, atol=1e-9)


@pytest.mark.slow
def test_gradient_of_the_estimated_potential_by_finite_differences():
    tiny = problem(**DEEP)
    target = jacobian(tiny, 2.0, num_probes=2, rng_key=KEY)
    flat, unravel = ravel_pytree(tiny.draw_parameters())
    direction = ravel_pytree(tiny.draw_parameters(1))[0]

    @jax.jit
    @jax.vmap
    def along(t):
        return jax.value_and_grad(lambda t: target.potential(unravel(flat + t * direction)))(t)

    step = 1e-4
    (_, up, down, up2, down2), slopes = along(step * np.array([0.0, 1, -1, 2, -2]))
    assert_allclose(slopes[0], (8 * (up - down) - (up2 - down2)) / (12 * step), rtol=1e-7)


@pytest.mark.slow
def test_many_probes_of_high_order_find_the_determinant():
    """Within five standard errors, known for Rademacher probes: Var sᵀAs = 2 Σ_{i≠j} A_ij²."""
    tiny = problem(widths=(4,), n=3)
    reg, num_probes, order = 10.0, 3_000, 20

    @jax.jit
    def both(phi):
        dense = Dense(tiny, phi, reg)
        return dense.h, hessian_log_det(dense.f, dense.flat, dense.r, num_probes, order, KEY)

    h, found = jax.device_get(both(tiny.draw_parameters()))
    norm = np.abs(np.linalg.eigvalsh(h)).max()
    assert 0.05 < norm < 0.8
    eigenvalues, q = np.linalg.eigh(np.eye(len(h)) + h)
    log = q * np.log(eigenvalues) @ q.T
    error = np.sqrt(2 * np.sum((log - np.diag(np.diag(log))) ** 2) / num_probes)
    remainder = len(h) * norm ** (order + 1) / (1 - norm)
    assert abs(found - np.trace(log)) < 5 * error + remainder
    assert 5 * error + remainder < 0.2 * np.abs(log).max() + 0.05  # the bound itself says something


@pytest.mark.slow
def test_memory_does_not_grow_with_probes():
    tiny = problem(widths=(4,))

    def temporary(num_probes):
        target = jacobian(tiny, num_probes=num_probes, rng_key=KEY)
        program = jax.jit(jax.grad(target.potential)).lower(target.template).compile()
        return program.memory_analysis().temp_size_in_bytes

    few, many = temporary(4), temporary(256)
    assert 0 < many - few <= 252 * 16  # a number and its place for each probe, and no vector


@pytest.mark.slow
def test_chain_on_an_injective_map_has_the_exact_moments():
    tiny, reg = problem(widths=(3,), n=2), 2.0
    target = jacobian(tiny, reg)
    keys = jax.random.split(jax.random.key(0), 2_000)
    signs = jax.jit(jax.vmap(lambda key: target.orientation(target.draw_prior(key))))(keys)
    assert (signs == 1).all()
    exact = reference(tiny, (3,), "gelu", num_draws=100_000)
    assert exact.effective_draws > 5_000
    sampler = wb.samplers.pcn(0.6)
    draws, _ = assert_exact(target, sampler, tiny, exact.moments, num_samples=50, thin=5, burn_in=150)
    assert 0.1 < draws.acceptance_rate < 0.95
