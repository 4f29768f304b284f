"""The Jacobian reparametrisation against its formulas written out densely, and against exact answers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import widebnn as wb
from widebnn.targets._jacobian import hessian_log_det

from ..exact.change_of_variables import assert_density, log_density_of_map
from ..exact.importance import assert_exact, reference
from ..exact.networks import problem

KEY = jax.random.key(5)
PROBLEMS = {
    "one hidden layer": {"widths": (4,), "out_features": 1},
    "two hidden layers, two outputs": {"widths": (3, 2), "out_features": 2, "activation": "erf", "n": 3},
}


@pytest.fixture(params=PROBLEMS)
def tiny(request):
    return problem(**PROBLEMS[request.param])


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


@pytest.mark.slow
def test_map_is_one_damped_gauss_newton_step(tiny):
    phi = tiny.draw_parameters()
    dense = Dense(tiny, phi, 0.3)
    moved = ravel_pytree(jacobian(tiny, 0.3).to_parameters(phi))[0]
    assert jnp.allclose(moved, dense.flat + dense.j.T @ dense.r, atol=1e-11)
    target = jacobian(tiny)  # λ = σ²
    dense = Dense(tiny, phi, tiny.bnn.noise_std**2)
    assert jnp.allclose(
        ravel_pytree(target.to_parameters(phi))[0], dense.flat + dense.j.T @ dense.r, atol=1e-11
    )
    assert jnp.array_equal(
        target.inner(phi)["layers"][0]["bias"], target.to_parameters(phi).inner["layers"][0]["bias"]
    )
    assert jnp.array_equal(target.readout(phi), target.to_parameters(phi).readout)


@pytest.mark.slow
@pytest.mark.parametrize("reg", [None, 3.0])
def test_potential_is_the_change_of_variables(tiny, reg):
    assert_density(tiny, jacobian(tiny, reg), log_density_of_map)


@pytest.mark.slow
@pytest.mark.parametrize("reg", [0.1, 10.0])
def test_determinant_factorises_as_the_docstring_says(tiny, reg):
    """det(λΘ̂⁻¹) det(I + H − JᵀB/λ), in absolute value and in sign."""
    target = jacobian(tiny, reg)
    for seed in range(3):
        phi = tiny.draw_parameters(seed)
        dense = Dense(tiny, phi, reg)
        sign, log_det = jnp.linalg.slogdet(jnp.eye(len(dense.h)) + dense.h - dense.j.T @ dense.b / reg)
        assert target.orientation(phi) == sign
        assert jnp.allclose(target.log_jacobian(phi), dense.log_first_factor() + log_det, atol=1e-8)


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
@pytest.mark.parametrize("order", [1, 2, 5])
def test_estimate_and_its_gradient_are_those_of_the_naive_sum(order):
    """Through r̃(φ) as well, which is fixed only inside H."""
    tiny = problem(widths=(3,), out_features=2, n=2)
    target = jacobian(tiny, 0.8, num_probes=3, order=order, rng_key=KEY)
    phi = tiny.draw_parameters()
    value, gradient = jax.value_and_grad(target.log_jacobian)(phi)
    exact, exact_gradient = jax.jit(jax.value_and_grad(lambda phi: naive_estimate(tiny, phi, 0.8, 3, order)))(
        phi
    )
    assert jnp.allclose(value, exact, rtol=1e-10)
    assert jnp.allclose(ravel_pytree(gradient)[0], ravel_pytree(exact_gradient)[0], atol=1e-9)


@pytest.mark.slow
def test_gradient_of_the_estimated_potential_by_finite_differences(tiny):
    target = jacobian(tiny, 2.0, num_probes=2, rng_key=KEY)
    flat, unravel = ravel_pytree(tiny.draw_parameters())
    direction = ravel_pytree(tiny.draw_parameters(1))[0]

    @jax.jit
    def along(t):
        return target.potential(unravel(flat + t * direction))

    step = 1e-4
    slope = (8 * (along(step) - along(-step)) - (along(2 * step) - along(-2 * step))) / (12 * step)
    assert jnp.allclose(jax.grad(along)(0.0), slope, rtol=1e-7)


@pytest.mark.slow
def test_many_probes_of_high_order_find_the_determinant():
    """Within five standard errors, known for Rademacher probes: Var sᵀAs = 2 Σ_{i≠j} A_ij²."""
    tiny = problem(widths=(4,), n=3)
    phi, reg, num_probes, order = tiny.draw_parameters(), 10.0, 3_000, 20
    dense = Dense(tiny, phi, reg)
    norm = jnp.abs(jnp.linalg.eigvalsh(dense.h)).max()
    assert 0.05 < norm < 0.8
    eye = jnp.eye(len(dense.h))
    eigenvalues, q = jnp.linalg.eigh(eye + dense.h)
    log = q * jnp.log(eigenvalues)[None, :] @ q.T
    error = jnp.sqrt(2 * jnp.sum((log - jnp.diag(jnp.diag(log))) ** 2) / num_probes)
    remainder = len(eye) * norm ** (order + 1) / (1 - norm)
    found = hessian_log_det(dense.f, num_probes, order, KEY)(dense.flat, dense.r)
    assert abs(found - jnp.trace(log)) < 5 * error + remainder
    assert 5 * error + remainder < 0.2 * jnp.abs(log).max() + 0.05  # the bound itself says something


@pytest.mark.slow
def test_memory_does_not_grow_with_probes(tiny):
    def temporary(num_probes):
        target = jacobian(tiny, num_probes=num_probes, rng_key=KEY)
        program = jax.jit(jax.grad(target.potential)).lower(target.template).compile()
        return program.memory_analysis().temp_size_in_bytes

    assert temporary(4) == temporary(256) > 0


@pytest.mark.slow
def test_linear_model_has_its_known_law():
    """Without hidden layers R is affine: W = μ_λ + Σ_λφ, so that φ is Gaussian with precision Σ_λΣ⁻¹Σ_λ."""
    tiny, reg = problem(widths=(), out_features=2), 0.7
    psi, sigma2 = tiny.bnn.embedding({"layers": {}}, tiny.x), tiny.bnn.noise_std**2
    at_reg, exact = (wb.targets.readout_posterior(psi, tiny.y, v) for v in (reg, sigma2))
    eye = jnp.eye(psi.shape[1])
    root, precision = at_reg.covariance(eye), jnp.linalg.inv(exact.covariance(eye))
    phi = tiny.draw_parameters()
    for options in ({}, {"num_probes": 1, "rng_key": KEY}):
        target = jacobian(tiny, reg, **options)
        assert jnp.allclose(target.readout(phi), at_reg.mean() + root @ phi.readout, atol=1e-11)
        assert jnp.allclose(target.log_jacobian(phi), 2 * jnp.linalg.slogdet(root)[1], atol=1e-10)

        def energy(flat, target=target, phi=phi):
            return -target.logdensity(phi._replace(readout=flat.reshape(phi.readout.shape)))

        flat = phi.readout.ravel()
        hessian = jnp.kron(root @ precision @ root, jnp.eye(2))
        mode = jnp.linalg.solve(root, exact.mean() - at_reg.mean()).ravel()
        assert jnp.allclose(jax.hessian(energy)(flat), hessian, atol=1e-9)
        assert jnp.allclose(jax.grad(energy)(mode), 0, atol=1e-9)


@pytest.mark.slow
def test_chain_on_an_injective_map_has_the_exact_moments():
    tiny, reg = problem(widths=(3,), n=2), 2.0
    target = jacobian(tiny, reg)
    keys = jax.random.split(jax.random.key(0), 2_000)
    signs = jax.jit(jax.vmap(lambda key: target.orientation(target.draw_prior(key))))(keys)
    assert (signs == 1).all()
    exact = reference(tiny, (3,), "gelu", num_draws=100_000)
    assert exact.effective_draws > 5_000
    sampler = wb.samplers.pcn(target.potential, 0.6)
    draws, _ = assert_exact(target, sampler, tiny, exact.moments, num_samples=50, thin=5, burn_in=150)
    assert 0.1 < draws.acceptance_rate < 0.95


def test_no_inverse_is_offered(tiny):
    assert not hasattr(jacobian(tiny), "from_parameters")
    assert {field.name for field in dataclasses.fields(jacobian(tiny))}.isdisjoint({"space", "block_size"})


@pytest.mark.slow
def test_large_reg_gives_the_standard_parametrisation(tiny):
    phi = tiny.draw_parameters()
    reg = 1e9
    moved = ravel_pytree(jacobian(tiny, reg).to_parameters(phi))[0] - ravel_pytree(phi)[0]
    assert 0 < np.abs(moved).max() < 1e-6
    standard = wb.targets.standard(tiny.bnn, tiny.x, tiny.y)
    for options in ({}, {"num_probes": 2, "rng_key": KEY}):
        target = jacobian(tiny, reg, **options)
        assert jnp.allclose(target.potential(phi), standard.potential(phi), rtol=1e-6)
