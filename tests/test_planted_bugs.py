"""Bugs planted on purpose, one row each: the checks that pass on the package must fail on every one of them.

A row is a bug in the field's own words, and a function that runs one of the shared checks on the broken
object. The same checks on the right objects are those of the other test files.
"""

import contextlib
import functools
import math
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import widebnn as wb
from widebnn import checkpoint, estimates, landscape, samplers, streaming
from widebnn.nngp import kernels
from widebnn.nngp.activations import EXPECTATIONS
from widebnn.samplers._base import Sampler, accept
from widebnn.targets import _blocks as blocks
from widebnn.targets._categorical import Categorical, Laplace
from widebnn.targets._jacobian import Jacobian
from widebnn.targets._marginal import Marginal
from widebnn.targets._repriorised import Repriorised
from widebnn.tree import half_square_difference, normal_like
from widebnn.vi.models import TwoLayer

from .exact import laws
from .exact.change_of_variables import assert_density, log_density_of_inner, log_density_of_map
from .exact.complement import assert_new_inputs_see_the_prior
from .exact.conservation import assert_conserved
from .exact.densities import logistic, regression
from .exact.estimates import (
    assert_distance_of_mixture,
    assert_kl_of_linear_potential,
    assert_kl_of_quadratic_potential,
)
from .exact.importance import assert_exact, reference
from .exact.kernels import assert_kernel, assert_tangent_kernel
from .exact.landscape import assert_curvature, assert_slice, assert_spherical
from .exact.networks import labels, log_joint_categorical, problem
from .exact.published import assert_integrates
from .exact.resume import assert_resumes
from .exact.reversibility import assert_detailed_balance
from .exact.streams import (
    assert_effective_sample_size,
    assert_moments_of_long_float32_stream,
    assert_quantiles,
    assert_split_rhat,
)
from .exact.units import assert_changes_of_potential
from .exact.variational import assert_optimum, assert_scaling

pytestmark = pytest.mark.usefixtures("x64")

# Samplers that are wrong. Each proposes N(mean, std²) and accepts with a ratio of its own.


class State(NamedTuple):
    position: jax.Array
    potential: jax.Array
    gradient: jax.Array


def metropolis(propose, log_ratio, step_size):
    """`propose(u, ∇U, ξ)` and `log_ratio(old, new, ξ)` as a sampler, right or wrong."""

    def make(potential):
        def init(position, rng_key=None):
            return State(position, *jax.value_and_grad(potential)(position))

        def step(rng_key, old):
            noise_key, accept_key = jax.random.split(rng_key)
            xi = normal_like(noise_key, old.position)
            new = init(jax.tree.map(lambda *leaves: propose(*leaves, step_size), *old[::2], xi))
            return accept(accept_key, log_ratio(old, new), old, new)

        return Sampler(init, step)

    return make


def potential_difference(old, new):
    return old.potential - new.potential


def density_ratio(old, new):
    """log p(v | D)/p(u | D), the proposal densities left out."""
    return potential_difference(old, new) - half_square_difference(new.position, old.position)


def walk(u, g, xi, beta):
    return u + beta * xi


def langevin_drift(u, g, xi, eps):
    return u - eps**2 / 2 * (u + g) + eps * xi


def crank_nicolson(u, g, xi, beta):
    return jnp.sqrt(1 - beta**2) * u + beta * xi


def crank_nicolson_langevin(u, g, xi, beta):
    shrink = jnp.sqrt(1 - beta**2)
    return shrink * u - (1 - shrink) * g + beta * xi


def wrong_shrink(u, g, xi, beta):
    return (1 - beta) * u + beta * xi


@contextlib.contextmanager
def accepting(module, rule):
    """A sampler's module whose `accept` is `rule(rng_key, log_ratio, state, proposal)`."""
    with mock.patch.object(sys.modules[module], "accept", rule):
        yield


def always(rng_key, log_ratio, state, proposal):
    return accept(rng_key, jnp.zeros_like(log_ratio), state, proposal)


def half_ratio(rng_key, log_ratio, state, proposal):
    return accept(rng_key, log_ratio / 2, state, proposal)


def without_flip(rng_key, log_ratio, state, proposal):
    same = state._replace(momentum=jax.tree.map(jnp.negative, state.momentum))
    return accept(rng_key, log_ratio, same, proposal)


def conserved(make, density=logistic):
    density = density()
    assert_conserved(make(density.target.potential), density, acceptance=(0, 1.1))


def conserved_by(module, rule, make, density=logistic):
    with accepting(module, rule):
        conserved(make, density)


def half_square(v):
    return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(v)) / 2


def conserved_without_work(make):
    module = sys.modules["widebnn.samplers._function_space_hmc"]
    with mock.patch.object(module, "inner_product", lambda u, v: jnp.zeros(())):
        conserved(make)


def conserved_at_level(scale):
    """Elliptical slice sampling with `scale` · Exp(1) in place of Exp(1)."""
    exponential = jax.random.exponential
    with mock.patch.object(jax.random, "exponential", lambda *args, **kw: scale * exponential(*args, **kw)):
        conserved(samplers.elliptical_slice)


SAMPLERS = {
    "random walk without the prior term": lambda: conserved(metropolis(walk, potential_difference, 0.6)),
    "MALA without proposal densities": lambda: conserved(metropolis(langevin_drift, density_ratio, 0.8)),
    "MALA accepted with U alone": lambda: conserved(metropolis(langevin_drift, potential_difference, 0.8)),
    "pCN with 1 − β for √(1 − β²)": lambda: conserved(metropolis(wrong_shrink, potential_difference, 0.7)),
    "pCN with the prior counted twice": lambda: conserved(metropolis(crank_nicolson, density_ratio, 0.7)),
    "pCNL accepted with p(v|D)/p(u|D), the published rule": lambda: conserved(
        metropolis(crank_nicolson_langevin, density_ratio, 0.7)
    ),
    "pCNL accepted with U alone": lambda: conserved(
        metropolis(crank_nicolson_langevin, potential_difference, 0.7)
    ),
    "momentum kept on rejection": lambda: conserved_by(
        "widebnn.samplers._langevin", without_flip, lambda u: samplers.langevin(u, 0.8, 0.02)
    ),
    "momentum kept on rejection, linear regression": lambda: conserved_by(
        "widebnn.samplers._langevin",
        without_flip,
        lambda u: samplers.langevin(u, 0.8, 0.02),
        regression,
    ),
    "momentum kept on rejection, function-space HMC": lambda: conserved_by(
        "widebnn.samplers._function_space_hmc",
        without_flip,
        lambda u: samplers.function_space_hmc(u, 0.9, 1, damping=0.02),
    ),
    "kicks by the gradient of the prior too": lambda: conserved(
        lambda u: samplers.function_space_hmc(lambda v: u(v) + half_square(v), 0.6, 3)
    ),
    "kicks whose work is not counted": lambda: conserved_without_work(
        lambda u: samplers.function_space_hmc(u, 0.6, 3)
    ),
    "slice at the height of the state": lambda: conserved_at_level(0.0),
    "slice at half the depth": lambda: conserved_at_level(0.5),
    "Langevin uncorrected": lambda: conserved(lambda u: samplers.langevin(u, 0.8, 0.3, metropolis=False)),
}
for _name, _make in {
    "rwm": lambda u: samplers.rwm(u, 0.6),
    "pcn": lambda u: samplers.pcn(u, 0.7),
    "mala": lambda u: samplers.mala(u, 0.8),
    "pcnl": lambda u: samplers.pcnl(u, 0.7),
    "langevin": lambda u: samplers.langevin(u, 0.8, 0.3),
    "hmc": lambda u: samplers.hmc(u, 0.6, 4),
    "function_space_hmc": lambda u: samplers.function_space_hmc(u, 0.6, 3),
}.items():
    for _bug, _rule in {"always accepting": always, "half the log ratio": half_ratio}.items():
        SAMPLERS[f"{_name} {_bug}"] = lambda name=_name, make=_make, rule=_rule: conserved_by(
            f"widebnn.samplers.{name}", rule, make
        )

# Ratios that are wrong, seen on a single path.


def coupled(u):
    return jnp.sum(jnp.cosh(u)) + u[0] * u[1] ** 2


def balanced(propose, log_ratio, step_size, law):
    positions = [normal_like(jax.random.key(i), jnp.zeros(3)) for i in range(3)]
    sampler = metropolis(propose, log_ratio, step_size)(coupled)
    assert_detailed_balance(sampler, __name__, coupled, positions, law)


RATIOS = {
    "random walk without the prior term": lambda: balanced(walk, potential_difference, 0.5, laws.rwm(0.5)),
    "MALA without proposal densities": lambda: balanced(langevin_drift, density_ratio, 0.5, laws.mala(0.5)),
    "pCN with the prior counted twice": lambda: balanced(crank_nicolson, density_ratio, 0.5, laws.pcn(0.5)),
    "pCNL by the published rule": lambda: balanced(
        crank_nicolson_langevin, density_ratio, 0.5, laws.pcnl(0.5)
    ),
}

# Potentials that are wrong.


class LikelihoodOfMap(Repriorised):
    """−log p(y | T(φ)) used as U: what the published gradient code does."""

    def potential(self, position):
        f = self.embedding(position) @ self.readout(position)
        return jnp.sum((self.y - f) ** 2) / (2 * self.bnn.noise_std**2)


class WithoutLogJacobian(LikelihoodOfMap):
    """−log p(y | T(φ)) + ½‖W‖² − ½‖φ_W‖², and no more."""

    def potential(self, position):
        return super().potential(position) + half_square_difference(self.readout(position), position.readout)


class JacobianOfWrongSign(WithoutLogJacobian):
    def potential(self, position):
        return super().potential(position) + self.log_jacobian(position)


class HalfLogDeterminant(Repriorised):
    def potential(self, position):
        return super().potential(position) - self.readout_posterior(position).log_det() / 4


class LogDeterminantOfWrongSign(Repriorised):
    """Below eq. (5) of Hron et al.: det Σ ∝ det K̂ where it is its inverse."""

    def potential(self, position):
        log_det = self.readout_posterior(position).log_det()
        return super().potential(position) - self.bnn.out_features * log_det


class PrintedSign(Repriorised):
    """Eq. (5) of Hron et al. as printed: exp(+½ yᵀK̂⁻¹y)."""

    def potential(self, position):
        return super().potential(position) - self.readout_posterior(position).quadratic()


class BiasForgotten(Repriorised):
    """The map without the readout's bias column; the network has one."""

    def embedding(self, position):
        return super().embedding(position).at[:, -1].set(0)

    def to_parameters(self, position, rng_key=None):
        return Repriorised(self.bnn, self.x, self.y, self.space, reg=self.reg).to_parameters(position)


class SigmaForReg(Repriorised):
    """The potential of λ = σ² with the map of another λ."""

    def potential(self, position):
        readout = self.readout_posterior(position)
        return (readout.quadratic() + self.bnn.out_features * readout.log_det()) / 2


class MarginalPrintedSign(Marginal):
    def potential(self, position):
        return super().potential(position) - self.readout_posterior(position).quadratic()


class OneOutputOnly(Marginal):
    """log det counted once, however many outputs."""

    def potential(self, position):
        readout = self.readout_posterior(position)
        return (readout.quadratic() + readout.log_det()) / 2


class JacobianMapWithout(Jacobian):
    """`change` takes a term of the potential of R away again; by default none."""

    change = staticmethod(lambda target, position: 0.0)

    def potential(self, position):
        return super().potential(position) + self.change(self, position)


class WithoutDeterminantOfR(JacobianMapWithout):
    change = staticmethod(lambda target, position: target.log_jacobian(position))


class DeterminantOfRWrongSign(JacobianMapWithout):
    change = staticmethod(lambda target, position: 2 * target.log_jacobian(position))


class WithoutPriorOfR(JacobianMapWithout):
    change = staticmethod(
        lambda target, position: half_square_difference(position, target.to_parameters(position))
    )


class DeterminantOfFirstFactor(JacobianMapWithout):
    """det ∂R/∂φ taken for det(λΘ̂⁻¹), as if f were linear."""

    def _log_jacobian(self, f, phi, step):
        return len(step.factor) * jnp.log(self.reg) - 2 * jnp.sum(jnp.log(jnp.diag(step.factor)))


class SoftmaxWithoutLogJacobian(Categorical):
    def potential(self, position):
        affine = self.affine(self.bnn.embedding(position.inner, self.x))
        return super().potential(position) + affine.log_jacobian()


class SoftmaxWithoutPrior(Categorical):
    def potential(self, position):
        w = self.to_parameters(position).readout
        return super().potential(position) - half_square_difference(w, position.readout)


class JacobianOfAnEarlierStep(Laplace):
    """Curvature of the first Newton step where the map has that of the last."""

    def __init__(self, psi, onehot, num_steps):
        super().__init__(psi, onehot, num_steps)
        self.first = Laplace(psi, onehot, 1)

    def log_jacobian(self):
        return self.first.log_jacobian()


def softmax_change_of_variables(kind=Categorical, affine=Laplace):
    tiny = problem(out_features=3, n=4)
    target = wb.targets.categorical(tiny.bnn, tiny.x, labels(tiny), map="laplace")
    broken = kind(tiny.bnn, tiny.x, target.onehot, lambda psi: affine(psi, target.onehot, 2))
    assert_density(tiny, broken, functools.partial(log_density_of_map, log_joint=log_joint_categorical))


def change_of_variables(kind, reg=None, **options):
    tiny = problem(**({"widths": (4,), "out_features": 2} | options))
    reg = tiny.bnn.noise_std**2 if reg is None else reg
    assert_density(tiny, kind(tiny.bnn, tiny.x, tiny.y, reg=reg), log_density_of_map)


def evidence(kind):
    tiny = problem(out_features=2)
    assert_density(tiny, kind(tiny.bnn, tiny.x, tiny.y), log_density_of_inner)


def in_blocks(broken):
    """The marginal target by blocks of 2 of its 5 observations, with another sum over them."""
    tiny = problem(widths=(2,), out_features=2)
    target = Marginal(tiny.bnn, tiny.x, tiny.y, "feature", 2)
    with mock.patch.object(blocks.Rows, "sum", broken):
        assert_density(tiny, target, log_density_of_inner)


def last_block_counted_twice(rows, of_block):
    """The last block reaches back, and nothing is masked."""
    cuts = [(rows.x[i : i + 2], rows.y[i : i + 2]) for i in (0, 2, 3)]
    parts = [of_block(lambda embedding, inner, x=x, y=y: (embedding(inner, x), y)) for x, y in cuts]
    return jax.tree.map(lambda *leaves: sum(leaves[1:], leaves[0]), *parts)


def last_block_left_out(rows, of_block):
    return RIGHT_SUM(rows._replace(x=rows.x[:4], y=rows.y[:4]), of_block)


RIGHT_SUM = blocks.Rows.sum

POTENTIALS = {
    "blocks: rows of the last one counted twice": lambda: in_blocks(last_block_counted_twice),
    "blocks: the last one left out": lambda: in_blocks(last_block_left_out),
    "−log p(y | T(φ)) used as U": lambda: change_of_variables(LikelihoodOfMap),
    "−log p(y | T(φ)) used as U, other λ": lambda: change_of_variables(LikelihoodOfMap, reg=0.5),
    "log-Jacobian missing": lambda: change_of_variables(WithoutLogJacobian),
    "log-Jacobian missing, other λ": lambda: change_of_variables(WithoutLogJacobian, reg=0.5),
    "log-Jacobian of the wrong sign": lambda: change_of_variables(JacobianOfWrongSign),
    "log det halved": lambda: change_of_variables(HalfLogDeterminant),
    "log det of the wrong sign": lambda: change_of_variables(LogDeterminantOfWrongSign),
    "printed sign of eq. (5)": lambda: change_of_variables(PrintedSign),
    "readout bias forgotten in the map": lambda: change_of_variables(BiasForgotten),
    "potential of σ² with the map of λ": lambda: change_of_variables(SigmaForReg, reg=0.5),
    "printed sign of eq. (5), marginal": lambda: evidence(MarginalPrintedSign),
    "log det counted once for two outputs": lambda: evidence(OneOutputOnly),
    "R: log-determinant missing": lambda: change_of_variables(WithoutDeterminantOfR, reg=0.5),
    "R: log-determinant of the wrong sign": lambda: change_of_variables(DeterminantOfRWrongSign, reg=0.5),
    "R: prior term missing": lambda: change_of_variables(WithoutPriorOfR, reg=0.5),
    "R: determinant as if f were linear": lambda: change_of_variables(DeterminantOfFirstFactor, reg=0.5),
    "softmax: log-Jacobian missing": lambda: softmax_change_of_variables(SoftmaxWithoutLogJacobian),
    "softmax: prior term missing": lambda: softmax_change_of_variables(SoftmaxWithoutPrior),
    "softmax: Jacobian of an earlier Newton step": lambda: softmax_change_of_variables(
        affine=JacobianOfAnEarlierStep
    ),
}

# Predictions that are wrong.


def complement_at_scale(scale):
    module = sys.modules["widebnn.targets._rotated"]
    tiny = problem(widths=(3,), activation="erf")
    rotated = wb.targets.rotated(wb.targets.marginal(tiny.bnn, tiny.x, tiny.y))
    row_space = module._row_space
    with mock.patch.object(module, "_row_space", lambda *args: scale * row_space(*args)):
        assert_new_inputs_see_the_prior(
            rotated, tiny, lambda u, key: rotated.embedding_at(tiny.x_new)(u, key)
        )


def complement_left_out():
    tiny = problem(widths=(3,), activation="erf")
    rotated = wb.targets.rotated(wb.targets.marginal(tiny.bnn, tiny.x, tiny.y))
    inside = tiny.x_new @ rotated.basis @ rotated.basis.T
    assert_new_inputs_see_the_prior(rotated, tiny, lambda u, key: rotated.embedding_at(inside)(u, key))


@functools.cache
def solved():
    tiny = problem(widths=(3,))
    return tiny, reference(tiny, (3,), "gelu", num_draws=100_000)


def exact_predictions(kind, make_sampler):
    tiny, exact = solved()
    target = kind(tiny.bnn, tiny.x, tiny.y)
    assert_exact(target, make_sampler(target.potential), tiny, exact.moments)


class ReadoutAtItsMean(Marginal):
    """Predictions from μ in place of a draw of the readout."""

    def readout(self, position, rng_key=None):
        return self.readout_posterior(position).mean()


class ReadoutFromPrior(Marginal):
    def readout(self, position, rng_key=None):
        return normal_like(rng_key, self.bnn.template(self.x).readout)


def likelihood_of_map(bnn, x, y):
    return LikelihoodOfMap(bnn, x, y, reg=bnn.noise_std**2)


PREDICTIONS = {
    "rotated complement at 0.9 of its scale": lambda: complement_at_scale(0.9),
    "rotated complement left out": complement_left_out,
    "published pCNL: −log p(y | T(φ)) as U": lambda: exact_predictions(
        likelihood_of_map, lambda u: samplers.pcnl(u, 0.6)
    ),
    "printed sign of eq. (5)": lambda: exact_predictions(MarginalPrintedSign, lambda u: samplers.pcn(u, 0.6)),
    "readout at its mean": lambda: exact_predictions(ReadoutAtItsMean, lambda u: samplers.pcn(u, 0.6)),
    "readout from the prior": lambda: exact_predictions(ReadoutFromPrior, lambda u: samplers.pcn(u, 0.6)),
}


def units_with(name, broken, block_size=2, **options):
    """The unit-wise sampler with one of its functions broken: `broken(right)` in its place."""
    module = sys.modules["widebnn.samplers._unitwise"]
    tiny = problem(**({"widths": (3, 6), "out_features": 2, "n": 4} | options))
    target = wb.targets.marginal(tiny.bnn, tiny.x, tiny.y)
    with mock.patch.object(module, name, broken(getattr(module, name))):
        assert_changes_of_potential(target, block_size)


def without_log_det(right):
    return lambda m: (right(m)[0], jnp.zeros(()))


def without_inverse(right):
    return lambda m: (jnp.eye(len(m)), right(m)[1])


def of_wrong_noise(right):
    return lambda psi, noise_std: right(psi, jnp.sqrt(2) * noise_std)


UNITS = {
    f"{bug}, n = {n}": lambda args=args, n=n: units_with(*args, n=n)
    for n in (4, 20)
    for bug, args in {
        "log |det M| left out": ("_inverse", without_log_det),
        "M taken for the identity": ("_inverse", without_inverse),
        "inverse at another σ": ("_inverse_of_gram", of_wrong_noise),
    }.items()
}

# Paths, slices and curvatures that are wrong.


def straight(a, b, t):
    return jax.tree.map(lambda u, v: (1 - t) * u + t * v, a, b)


def arc_of_constant_norm(a, b, t):
    """The norm of a all the way."""
    norm_a, norm_b = landscape._norm(a), landscape._norm(b)
    scale = norm_a / ((1 - t) * norm_a + t * norm_b)
    return jax.tree.map(lambda leaf: scale * leaf, landscape.slerp(a, b, t))


def leaf_by_leaf(a, b, t):
    """Each leaf on a sphere of its own."""
    return jax.tree.map(lambda u, v: landscape.slerp(u, v, t), a, b)


def slice_with(energy):
    """A slice whose prior part is `energy(slice)`."""

    def slice_through(target, corners, resolution):
        seen = landscape.slice_through(target, corners, resolution)
        return seen._replace(half_square=energy(seen.half_square))

    tiny = problem()
    target = wb.targets.repriorised(tiny.bnn, tiny.x, tiny.y)
    assert_slice(slice_through, target, [tiny.draw_parameters(seed) for seed in range(3)])


def bent(curvature, potential=coupled):
    target = wb.targets.from_potential(potential, jnp.zeros(3))
    assert_curvature(curvature, target, jnp.array([0.3, -0.8, 0.5]), 3)


def without_prior(*args):
    found = landscape.curvature(*args)
    return found._replace(largest=found.largest - 1)


def largest_in_size(rng_key, target, position, num_steps):
    """Power iteration, which finds the end of the spectrum that lies further from 0."""
    v = normal_like(rng_key, position)
    for _ in range(50 * num_steps):
        w = jax.jvp(jax.grad(target.potential), (position,), (v,))[1]
        v = w / jnp.linalg.norm(w)
    return landscape.Curvature(
        1 + v @ jax.jvp(jax.grad(target.potential), (position,), (v,))[1], jnp.array(0.0)
    )


LANDSCAPES = {
    "straight line for the great circle": lambda: assert_spherical(straight),
    "norm kept for norm linear in t": lambda: assert_spherical(arc_of_constant_norm),
    "each leaf on a sphere of its own": lambda: assert_spherical(leaf_by_leaf),
    "slice of U alone given as energy": lambda: slice_with(jnp.zeros_like),
    "‖u‖² for ½‖u‖²": lambda: slice_with(lambda half: 2 * half),
    "Hessian of U alone": lambda: bent(without_prior),
    "power iteration where U bends down": lambda: bent(largest_in_size, lambda u: -jnp.sum(jnp.cosh(2 * u))),
}

# Kernels that are wrong.


def wrong_expectations(name, first, second, check):
    """E[ψψ] and E[ψ′ψ′] changed by functions of what they are."""
    right = EXPECTATIONS[name]

    def wrong(a, c, b):
        values, slopes = right(a, c, b)
        return first(values), second(slopes)

    with mock.patch.dict(EXPECTATIONS, {name: wrong}):
        check(name)


def wrong_layer(weight, bias, check=assert_kernel):
    """A layer with other scales: functions of σ_W and σ_b."""
    right = kernels._dense

    def wrong(layer, weight_std, bias_std):
        return right(layer, weight(weight_std), bias(bias_std))

    with mock.patch.object(kernels, "_dense", wrong):
        check("gelu")


def same(value):
    return value


def tangent_forgets_first_layers(check=assert_tangent_kernel):
    right = kernels._dense

    def wrong(layer, weight_std, bias_std):
        return right(layer._replace(tangent=jnp.zeros_like(layer.tangent)), weight_std, bias_std)

    with mock.patch.object(kernels, "_dense", wrong):
        check("gelu")


KERNELS = {
    "erf: 1/π for 2/π": lambda: wrong_expectations("erf", lambda k: k / 2, same, assert_kernel),
    "ReLU: 2π forgotten": lambda: wrong_expectations("relu", lambda k: 2 * jnp.pi * k, same, assert_kernel),
    "GELU of half the slope": lambda: wrong_expectations(
        "gelu", same, lambda s: s / 2, assert_tangent_kernel
    ),
    "σ_W not squared": lambda: wrong_layer(jnp.sqrt, same),
    "σ_b not squared": lambda: wrong_layer(same, jnp.sqrt),
    "σ_b forgotten": lambda: wrong_layer(same, lambda bias_std: 0.0),
    "tangent kernel without E[ψ′ψ′]": lambda: wrong_expectations(
        "gelu", same, jnp.ones_like, assert_tangent_kernel
    ),
    "tangent kernel of the readout alone": tangent_forgets_first_layers,
    "tangent kernel without the biases' own part": lambda: wrong_layer(
        same, lambda bias_std: 0.0, assert_tangent_kernel
    ),
}

# The law of the published pCNL, wrongly derived.


def at_half_the_noise(target):
    return Marginal(wb.BNN(target.bnn.features, 2, target.bnn.noise_std / 2**0.5), target.x, target.y)


def published(make_potential):
    assert_integrates(problem(out_features=2, bias_std=0.1), make_potential)


PUBLISHED = {
    "taken for the posterior": lambda: published(lambda target: target.potential),
    "likelihood squared, the evidence not divided out": lambda: published(
        lambda target: at_half_the_noise(target).potential
    ),
    "divided by the evidence twice": lambda: published(
        lambda target: lambda u: at_half_the_noise(target).potential(u) - 2 * target.potential(u)
    ),
}

# Estimates that are wrong.


def reversed_kl(potential):
    """KL(P ‖ N(0, I)) where the reverse is asked for."""
    return estimates.kl_from_prior(-potential)


def error_of_the_mean_alone(potential):
    """As if log E[e^{−U}] were known: its noise, which cancels most of the mean's, is left out."""
    kl = estimates.kl_from_prior(potential)
    return kl._replace(error=potential.std(axis=-1) / math.sqrt(potential.shape[-1]))


def largest_of_noisy_differences(mean, variance, limit_mean, limit_variance, num_points):
    """t chosen and the distance measured on the same draws."""
    twice = (np.repeat(x, 2, axis=0) for x in (mean, variance))
    return estimates.kolmogorov_distance(*twice, limit_mean, limit_variance, num_points)


ESTIMATES = {
    "KL the other way round": lambda: assert_kl_of_quadratic_potential(reversed_kl),
    "KL with the error of E[U] alone": lambda: assert_kl_of_linear_potential(error_of_the_mean_alone, 0.4),
    "largest distance on the draws that chose t": lambda: assert_distance_of_mixture(
        largest_of_noisy_differences
    ),
}

# Streams and checkpoints that forget.


def streaming_with(name, wrong, check):
    """`check` while one function of `streaming` is another one."""

    def run():
        with mock.patch.object(streaming, name, wrong):
            check()

    return run


def long_stream():
    """In float32, which is what it is about."""
    with jax.enable_x64(False):
        assert_moments_of_long_float32_stream()


def rounded_sum(total, term):
    return streaming.Sum(total.high + term, total.low)


def with_first_of_every_pair(sketch, value, count, rng_key):
    with mock.patch.object(jax.random, "bernoulli", lambda key, shape: jnp.zeros(shape, bool)):
        return into_sketch(sketch, value, count, rng_key)


def with_last_of_merged_batches(batches, value, count):
    merged = into_batches(batches, value, count)
    is_merged = merged.length > batches.length
    means = merged.means.at[: streaming.NUM_BATCHES // 2].set(batches.means[1::2])
    return merged._replace(means=jnp.where(is_merged, means, merged.means))


into_sketch, into_batches = streaming._into_sketch, streaming._into_batches

STREAMS = {
    "sums that lose what rounding takes": streaming_with("_add", rounded_sum, long_stream),
    "sketch that always keeps the first of two": streaming_with(
        "_into_sketch", with_first_of_every_pair, assert_quantiles
    ),
    "one of two batches thrown away": streaming_with(
        "_into_batches", with_last_of_merged_batches, assert_effective_sample_size
    ),
    "halves that lose a batch": streaming_with(
        "_into_batches", with_last_of_merged_batches, assert_split_rhat
    ),
}


def resumed_with(forget):
    """Checkpoints that come back with `forget(old, fresh)` of the carry."""

    def run():
        def wrong(self, carry, draw):
            kept = restore(self, carry, draw)
            return kept._replace(carry=forget(kept.carry, carry))

        restore = checkpoint.Store.restore
        with mock.patch.object(checkpoint.Store, "restore", wrong), tempfile.TemporaryDirectory() as folder:
            assert_resumes(Path(folder))

    return run


def resumed_without(name):
    return resumed_with(
        lambda old, fresh: old._replace(**{name: jax.tree.map(jnp.copy, getattr(fresh, name))})
    )


CHECKPOINTS = {
    "averaged step size forgotten": resumed_without("average"),
    "step size under tuning forgotten": resumed_without("log_step_size"),
    "streamed summary forgotten": resumed_without("streamed"),
    "momentum forgotten": resumed_with(
        lambda old, fresh: old._replace(states=old.states._replace(momentum=fresh.states.momentum))
    ),
}


def variational_with(module, name, wrong):
    """The fit of a linear model with `name` of `module` replaced by `wrong(right)`."""

    def run():
        with mock.patch.object(sys.modules[module], name, wrong(getattr(sys.modules[module], name))):
            assert_optimum()

    return run


def with_std_for_rho(right):
    return lambda posterior, variance: right(posterior._replace(rho=posterior.std), variance)


def without_scaling():
    module = TwoLayer(3, 5, 2, rngs=nnx.Rngs(0))
    module.scale = 1.0
    assert_scaling(module)


VARIATIONAL = {
    "KL of every minibatch in full": variational_with(
        "widebnn.vi.fit", "kl_weights", lambda right: lambda num_batches, kind: jnp.ones(num_batches)
    ),
    "σ in place of ρ in the KL": variational_with("widebnn.vi.fit", "kl_divergence", with_std_for_rho),
    "prior's deviation in place of its variance": variational_with(
        "widebnn.vi.fit", "kl_divergence", lambda right: lambda q, variance: right(q, variance**0.5)
    ),
    "readout without 1/N": without_scaling,
}


class Planted(NamedTuple):
    kind: str
    bug: str
    check: Callable[[], None]
    complaint: str


BUGS = [
    Planted(kind, bug, check, complaint)
    for kind, complaint, rows in [
        ("sampler", "CDFs differ by", SAMPLERS),
        ("ratio", "log ratio .* is right", RATIOS),
        ("potential", "where .* is right", POTENTIALS),
        ("prediction", "CDFs differ by|off by .* standard errors", PREDICTIONS),
        ("unit", "change .* is right", UNITS),
        ("landscape", "is on the sphere|is right", LANDSCAPES),
        ("kernel", "kernel off by .* standard errors", KERNELS),
        ("published law", "where .* is right", PUBLISHED),
        ("estimate", "mean z-score|coverage", ESTIMATES),
        ("stream", "long stream is off|quantiles|is biased|R-hat of the halves is off", STREAMS),
        ("checkpoint", "not the bits of the other run", CHECKPOINTS),
        ("variational", "is not at the optimum|no mean over neurons", VARIATIONAL),
    ]
    for bug, check in rows.items()
]


@pytest.mark.parametrize("planted", BUGS, ids=lambda planted: f"{planted.kind}: {planted.bug}")
def test_bug_is_caught(planted):
    with pytest.raises(AssertionError, match=f"(?s){planted.complaint}"):
        planted.check()


def test_right_sampler_of_the_same_make_passes():
    """The rows above fail for their bugs and not for the way they are built."""
    conserved(metropolis(walk, density_ratio, 0.6))
    conserved(metropolis(crank_nicolson, potential_difference, 0.7))
    balanced(walk, density_ratio, 0.5, laws.rwm(0.5))
    balanced(crank_nicolson, potential_difference, 0.5, laws.pcn(0.5))
    change_of_variables(Repriorised, reg=0.5)
    change_of_variables(JacobianMapWithout, reg=0.5)
    softmax_change_of_variables()
    evidence(Marginal)
    in_blocks(RIGHT_SUM)
    units_with("_inverse", lambda right: right)
    slice_with(lambda half: half)
    bent(landscape.curvature)
    wrong_expectations("erf", same, same, assert_kernel)
    wrong_layer(same, same, assert_tangent_kernel)
    published(lambda target: lambda u: at_half_the_noise(target).potential(u) - target.potential(u))
