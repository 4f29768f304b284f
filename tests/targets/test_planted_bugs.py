"""Bugs planted in targets: what checks them must see every one."""

import functools
from unittest import mock

import jax
import jax.numpy as jnp

import widebnn as wb
from widebnn._pytree import as_pytree
from widebnn.models import _whitened_dense
from widebnn.models._whitened_dense import WhitenedDense
from widebnn.targets import _blocks as blocks
from widebnn.targets._affine_maps import Laplace
from widebnn.targets._jacobian import Jacobian
from widebnn.targets._likelihoods import StudentT
from widebnn.targets._marginal import Marginal
from widebnn.targets._non_gaussian import NonGaussian
from widebnn.targets._repriorised import Repriorised
from widebnn.targets._rotated import Rotated
from widebnn.targets._whitened import Whitened
from widebnn.tree import half_square_difference

from ..exact.change_of_variables import (
    assert_same_density,
    log_density_of_inner,
    log_density_of_map,
    log_density_of_readout_map,
)
from ..exact.complement import assert_new_inputs_see_the_prior
from ..exact.importance import assert_exact, solved
from ..exact.likelihoods import LIKELIHOODS
from ..exact.networks import problem
from ..exact.planted import anew, caught, passed
from ..exact.whitening import (
    assert_batches_share_a_draw,
    assert_new_inputs_see_the_prior_of_the_complement,
    assert_orthogonal_change_of_variables,
)


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


class WithoutPriorOfR(JacobianMapWithout):
    change = staticmethod(
        lambda target, position: half_square_difference(position, target.to_parameters(position))
    )


class DeterminantOfFirstFactor(JacobianMapWithout):
    """det ∂R/∂φ taken for det(λΘ̂⁻¹), as if f were linear."""

    def _log_jacobian(self, f, phi, step):
        return len(step.factor) * jnp.log(self.reg) - 2 * jnp.sum(jnp.log(jnp.diag(step.factor)))


class MapWithoutLogJacobian(NonGaussian):
    def potential(self, position):
        affine = self.map_of_readout(self.bnn.embedding(position.inner, self.x))
        return super().potential(position) + affine.log_jacobian()


class MapWithoutPriorOfW(NonGaussian):
    def potential(self, position):
        w = self.to_parameters(position).readout
        return super().potential(position) - half_square_difference(w, position.readout)


class JacobianOfAnEarlierStep(Laplace):
    """Curvature of the first step where the map has that of the last."""

    def __init__(self, *of, num_steps):
        super().__init__(*of, num_steps)
        self.earlier = Laplace(*of, 1)

    def log_jacobian(self):
        return self.earlier.log_jacobian()


class ScaleForgotten(StudentT):
    """σ left out of t = (y − F)/σ."""

    def log_prob(self, y, f):
        return jax.scipy.stats.t.logpdf(y, self.degrees, f, 1.0)


def repriorised(kind=Repriorised, reg=None):
    """The name of the exact density, and a function that makes the target of a problem."""

    def make(tiny):
        return kind(tiny.bnn, tiny.x, tiny.y, reg=tiny.bnn.noise_std**2 if reg is None else reg)

    return f"repriorised at {reg}", make


def jacobian(kind=JacobianMapWithout):
    return "jacobian", lambda tiny: kind(tiny.bnn, tiny.x, tiny.y, reg=0.5)


def marginal(kind=Marginal):
    return "marginal", lambda tiny: kind(tiny.bnn, tiny.x, tiny.y)


def in_blocks(broken):
    """The marginal target by blocks of 2 of its 5 observations, with another sum over them."""

    class Blocked(Marginal):
        def potential(self, position):
            with mock.patch.object(blocks.Rows, "sum", broken):
                return super().potential(position)

    return "marginal", lambda tiny: Blocked(tiny.bnn, tiny.x, tiny.y, "feature", 2)


def non_gaussian(which="softmax", kind=NonGaussian, affine=Laplace, likelihood=lambda right: right):
    def make(tiny):
        right = LIKELIHOODS[which].target(tiny)
        first = jnp.zeros((len(tiny.x), tiny.bnn.out_features))
        steps = as_pytree(lambda *of: affine(*of, first, num_steps=2))
        return kind(tiny.bnn, tiny.x, right.y, likelihood(right.likelihood), steps)

    return which, make


def student(right):
    return right.degrees, right.scale


def last_block_counted_twice(rows, of_block):
    """The last block reaches back, and nothing is masked."""
    cuts = [(rows.x[i : i + 2], rows.y[i : i + 2]) for i in (0, 2, 3)]
    parts = [of_block(lambda bnn, inner, x=x, y=y: (bnn.embedding(inner, x), y)) for x, y in cuts]
    return jax.tree.map(lambda *leaves: sum(leaves[1:], leaves[0]), *parts)


RIGHT_SUM = blocks.Rows.sum


ROOT, RESTORE, EMBEDDING = _whitened_dense.root, WhitenedDense.restore, Whitened.embedding


def factor(change):
    """The check of whitened layers with another Cholesky factor L of (scaled activations, σ_b)."""

    def check():
        with anew():
            assert_orthogonal_change_of_variables(root=change)

    return check


def prior_added(layer, h, rng_key):
    """Z not projected: the part that the data see gets the prior's draw besides."""
    right = RESTORE(layer, h, rng_key)
    names = sorted(right)
    return {name: right[name] + 0.3 * jax.random.normal(rng_key, right[name].shape) for name in names}


def prior_added_to_the_seen():
    with anew():
        assert_new_inputs_see_the_prior_of_the_complement(prior_added)


def other_draw_per_batch(target, position, x=None, rng_key=None):
    """A key per number of rows."""
    return EMBEDDING(target, position, x, jax.random.fold_in(rng_key, len(x)))


def draw_per_batch(embedding):
    tiny = problem(widths=(6, 5), n=4)
    target = wb.targets.whitened(wb.targets.marginal(tiny.bnn, tiny.x, tiny.y))
    with anew(), mock.patch.object(Whitened, "embedding", embedding):
        assert_batches_share_a_draw(target, tiny.x_new)


FACTORS = {
    "whitened: factor transposed": factor(lambda *of: ROOT(*of).T),
    "whitened: bias forgotten in K": factor(lambda scaled, bias_std: ROOT(scaled, 0.0)),
}
BROKEN = {
    "blocks: rows of the last one counted twice": in_blocks(last_block_counted_twice),
    "−log p(y | T(φ)) used as U": repriorised(LikelihoodOfMap),
    "log-Jacobian missing": repriorised(WithoutLogJacobian, reg=0.5),
    "log-Jacobian of the wrong sign": repriorised(JacobianOfWrongSign),
    "log det halved": repriorised(HalfLogDeterminant),
    "printed sign of eq. (5)": repriorised(PrintedSign),
    "readout bias forgotten in the map": repriorised(BiasForgotten),
    "potential of σ² with the map of λ": repriorised(SigmaForReg, reg=0.5),
    "log det counted once for two outputs": marginal(OneOutputOnly),
    "R: log-determinant missing": jacobian(WithoutDeterminantOfR),
    "R: prior term missing": jacobian(WithoutPriorOfR),
    "R: determinant as if f were linear": jacobian(DeterminantOfFirstFactor),
    "softmax: log-Jacobian missing": non_gaussian(kind=MapWithoutLogJacobian),
    "softmax: prior term missing": non_gaussian(kind=MapWithoutPriorOfW),
    "softmax: Jacobian of an earlier Newton step": non_gaussian(affine=JacobianOfAnEarlierStep),
    "Student: σ forgotten": non_gaussian("student", likelihood=lambda y: ScaleForgotten(*student(y))),
}
RIGHT = {
    "repriorised": repriorised(reg=0.5),
    "repriorised_at_noise": repriorised(),
    "jacobian": jacobian(),
    "softmax": non_gaussian(),
    "student": non_gaussian("student"),
    "marginal": marginal(),
    "blocks": in_blocks(RIGHT_SUM),
}


@functools.cache
def log_densities():
    """The exact ones, and those of all targets, broken and right, at four positions by one program.

    Broken targets that share a map are held against one exact density, that of the right target of the map.
    """
    tiny = problem(out_features=2)
    made = {name: (of, make(tiny)) for name, (of, make) in (BROKEN | RIGHT).items()}
    right = {of: make(tiny) for of, make in reversed(RIGHT.values())}

    def exact(of, target, position):
        if of == "marginal":
            return log_density_of_inner(tiny, target, position)
        if of in LIKELIHOODS:
            return log_density_of_readout_map(tiny, target, position, LIKELIHOODS[of].log_joint)
        return log_density_of_map(tiny, target, position)

    def at(key):
        positions = {of: target.draw_prior(key) for of, target in right.items()}
        wanted = {of: exact(of, target, positions[of]) for of, target in right.items()}
        found = {name: target.logdensity(positions[of]) for name, (of, target) in made.items()}
        return {name: (found[name], wanted[of]) for name, (of, _) in made.items()}

    return jax.device_get(jax.jit(jax.vmap(at))(jax.random.split(jax.random.key(0), 4)))


def potential(name):
    return lambda: assert_same_density(*log_densities()[name])


def complement_at_scale(scale):
    tiny = problem(widths=(3,), activation="erf")
    rotated = wb.targets.rotated(wb.targets.marginal(tiny.bnn, tiny.x, tiny.y))
    complement = Rotated._complement
    with anew(), mock.patch.object(Rotated, "_complement", lambda *args: scale * complement(*args)):
        assert_new_inputs_see_the_prior(
            rotated, tiny, lambda u, key: wb.embedding(tiny.x_new)(rotated, u, key)
        )


def readout_at_its_mean():
    tiny, exact = solved("one layer")
    target = ReadoutAtItsMean(tiny.bnn, tiny.x, tiny.y)
    assert_exact(target, wb.samplers.pcn(0.6), tiny, exact.moments)


class ReadoutAtItsMean(Marginal):
    """Predictions from μ in place of a draw of the readout."""

    def readout(self, position, rng_key=None):
        return self.readout_posterior(position).mean()


PREDICTIONS = {
    "rotated complement at 0.9 of its scale": lambda: complement_at_scale(0.9),
    "readout at its mean": readout_at_its_mean,
}


RESTORED = {
    "whitened: Z not projected": prior_added_to_the_seen,
    "whitened: another draw per batch": lambda: draw_per_batch(other_draw_per_batch),
}


test_bug_is_caught = caught(
    ("potential", "where .* is right", FACTORS | {bug: potential(bug) for bug in BROKEN}),
    ("restored", "law of new inputs is another|batches see different networks", RESTORED),
    ("prediction", "CDFs differ by|off by .* standard errors", PREDICTIONS),
    patched=False,
)

# Right layers that are whitened or rotated pass the same checks in their own files.
test_right_one_of_the_same_make_passes = passed(**{name: potential(name) for name in RIGHT})
