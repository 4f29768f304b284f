"""Maps of posteriors whose likelihood is not Gaussian: densities, inverses, curvature, exact moments."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from numpy.testing import assert_allclose
from scipy import stats

import widebnn as wb
from widebnn.targets._affine_maps import Laplace, regression_step
from widebnn.targets._likelihoods import Bernoulli, Softmax, StudentT
from widebnn.tree import normal_like

from ..exact.change_of_variables import assert_same_density, log_density_of_readout_map
from ..exact.importance import NUM_CHAINS, assert_moments, by_chains, reference_of_means
from ..exact.likelihoods import DEGREES, LIKELIHOODS, Poisson
from ..exact.networks import labels, problem

MAPS = {
    "identity": {"map": "identity"},
    "gaussian": {"map": "gaussian", "reg": 3.0},
    "laplace": {"map": "laplace"},
}
CASES = {
    "n below p": [*(("softmax", map) for map in MAPS), ("student", "laplace"), ("poisson", "laplace")],
    "n above p": [("softmax", "laplace"), ("bernoulli", "laplace")],
}
"""Likelihood and map."""
PROBLEMS = {
    "n below p": {"widths": (5,), "out_features": 3, "n": 4},
    "n above p": {"widths": (3, 2), "out_features": 2, "n": 6, "activation": "erf", "bias_std": 0.0},
}


def target_of(tiny, which="softmax", map="laplace"):
    return LIKELIHOODS[which].target(tiny, **MAPS[map])


def at_parameters(tiny, targets, key):
    """What the target of each likelihood and map answers at one position, and what is right."""
    position = normal_like(key, tiny.bnn.template(tiny.x))

    def flat(parameters):
        return ravel_pytree(parameters)[0]

    def of_target(target, likelihood):
        theta = target.to_parameters(position)
        f, f_new = (tiny.bnn(theta, x) for x in (tiny.x, tiny.x_new))
        return {
            "logdensity": target.logdensity(position),
            "exact": log_density_of_readout_map(tiny, target, position, likelihood.log_joint),
            "moved": flat(theta),
            "inner": flat(theta.inner),
            "there and back": flat(target.from_parameters(theta)),
            "back and there": flat(target.to_parameters(target.from_parameters(position))),
            "output": (wb.output(tiny.x_new)(target, position), f_new),
            "mean": (wb.predictive_mean(tiny.x_new)(target, position), likelihood.mean(f_new)),
            "variance": (wb.predictive_moments(tiny.x_new)(target, position)[1], likelihood.variance(f_new)),
            "likelihood": (target.log_likelihood(position), likelihood.log_prob(tiny, f)),
        }

    found = {(which, map): of_target(one, LIKELIHOODS[which]) for (which, map), one in targets.items()}
    return flat(position), found


@functools.cache
def answers(problem_name):
    """At four positions, by one program."""
    tiny = problem(**PROBLEMS[problem_name])
    targets = {(which, map): target_of(tiny, which, map) for which, map in CASES[problem_name]}
    program = jax.jit(jax.vmap(functools.partial(at_parameters, tiny, targets)))
    return jax.device_get(program(jax.random.split(jax.random.key(0), 4)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem_name", "which", "map"), [(name, *case) for name, cases in CASES.items() for case in cases]
)
def test_potential_is_the_change_of_variables(problem_name, which, map):
    """Along a map that can be undone, and with the network's outputs, likelihood and mean."""
    position, found = answers(problem_name)
    found = found[which, map]
    assert_same_density(found["logdensity"], found["exact"])
    np.testing.assert_array_equal(found["inner"], position[:, : found["inner"].shape[1]])
    for returned in (found["there and back"], found["back and there"]):
        assert_allclose(returned, position, atol=1e-10)
    assert (np.abs(found["moved"] - position).max() < 0.01) == (map == "identity")
    for question in ("output", "mean", "variance", "likelihood"):
        assert_allclose(*found[question], atol=1e-10)


@pytest.mark.parametrize("which", LIKELIHOODS)
def test_classes_have_probabilities_and_numbers_have_none(which):
    target = target_of(problem(out_features=2), which)
    assert hasattr(target, "predictive_probabilities") == (which in ("softmax", "bernoulli"))


def readout_energy(tiny, psi, which="softmax"):
    """−log p(y, W | Ψ) of one vector W, up to a constant."""

    def energy(w):
        f = psi @ w.reshape(psi.shape[1], -1)
        return w @ w / 2 - jnp.sum(LIKELIHOODS[which].log_prob(tiny, f))

    return energy


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "name"), [("softmax", "n below p"), ("poisson", "n above p"), ("bernoulli", "n above p")]
)
def test_newton_steps_are_newton_steps(which, name):
    """Mean and covariance after each number of steps, by automatic differentiation of the energy."""
    tiny = problem(**PROBLEMS[name])
    target, inner = target_of(tiny, which), tiny.draw_parameters().inner
    of = target.y, target.likelihood, jnp.zeros((len(tiny.x), tiny.bnn.out_features))

    @jax.jit
    def derivatives(w):
        energy = readout_energy(tiny, tiny.bnn.embedding(inner, tiny.x), which)
        return jax.grad(energy)(w), jax.hessian(energy)(w)

    @jax.jit
    def approximations():
        psi = tiny.bnn.embedding(inner, tiny.x)
        made = [Laplace(psi, *of, num_steps) for num_steps in (1, 2, 3)]
        eye = jnp.eye(psi.shape[1] * tiny.bnn.out_features)
        return [
            (one.posterior.mean().ravel(), one.posterior.covariance(eye), one.log_jacobian()) for one in made
        ]

    found = jax.device_get(approximations())
    w = np.zeros_like(found[0][0])
    for mean, covariance, log_jacobian in found:
        gradient, curvature = jax.device_get(derivatives(w))
        w = w - np.linalg.solve(curvature, gradient)
        assert_allclose(mean, w, atol=1e-11)
        assert_allclose(covariance @ curvature, np.eye(len(w)), atol=1e-10)
        assert_allclose(log_jacobian, -np.linalg.slogdet(curvature)[1] / 2, atol=1e-10)


def descent(tiny, which, num_steps):
    """Energy and its largest derivative after each step."""
    target, inner = target_of(tiny, which), tiny.draw_parameters().inner

    @jax.jit
    def step(w):
        psi = tiny.bnn.embedding(inner, tiny.x)
        mean = regression_step(psi, target.y, target.likelihood, psi @ w).mean().reshape(w.shape)
        value, gradient = jax.value_and_grad(readout_energy(tiny, psi, which))(mean.ravel())
        return mean, value, jnp.abs(gradient).max()

    w, found = jnp.zeros_like(tiny.draw_parameters().readout), []
    for _ in range(num_steps):
        w, *values = step(w)
        found.append(values)
    return np.array(found).T


@pytest.mark.slow
def test_steps_of_em_lower_the_energy_down_to_the_mode():
    values, gradients = descent(problem(**PROBLEMS["n above p"]), "student", 60)
    assert (np.diff(values[:3]) < 0).all() and values[-1] < values[2]
    assert gradients[-1] < 1e-5


@pytest.mark.slow
def test_sure_predictions_do_not_break_the_newton_step():
    """Float32, a true class with probability 1e-13: mean and log-Jacobian stay those of float64."""

    def step(dtype):
        given = np.ones((2, 1)), np.eye(2), np.array([[-30.0, 0.0], [1.0, 0.0]])

        @jax.jit
        def found(psi, onehot, f):
            posterior = regression_step(psi, onehot, Softmax(), f)
            return posterior.mean(), posterior.log_jacobian()

        return found(*(array.astype(dtype) for array in given))

    with jax.enable_x64(False):
        single = step(np.float32)
    for one, other in zip(single, step(np.float64), strict=True):
        assert_allclose(one, other, rtol=1e-5)


@pytest.mark.slow
def test_labels_as_one_hot_rows_and_the_default_regulariser():
    tiny = problem(out_features=2)
    onehot = np.eye(tiny.bnn.out_features)[np.asarray(labels(tiny))]
    targets = [
        *(wb.targets.categorical(tiny.bnn, tiny.x, given) for given in (onehot, onehot.astype(int))),
        target_of(tiny),
        wb.targets.categorical(tiny.bnn, tiny.x, labels(tiny), "gaussian"),
        wb.targets.categorical(tiny.bnn, tiny.x, labels(tiny), "gaussian", tiny.bnn.noise_std**2),
    ]
    potentials = jax.jit(lambda phi: [target.potential(phi) for target in targets])
    floats, integers, numbers, default, at_noise = potentials(tiny.draw_parameters())
    assert floats == integers == numbers
    assert default == at_noise != numbers


DRAWN = {
    "bernoulli": (Bernoulli(), lambda f: stats.bernoulli(1 / (1 + np.exp(-f)))),
    "student": (StudentT(DEGREES, 0.4), lambda f: stats.t(DEGREES, f, 0.4)),
    "poisson": (Poisson(), lambda f: stats.poisson(np.exp(f))),
}


@pytest.mark.parametrize("which", DRAWN)
def test_observations_are_drawn_from_the_likelihood(which):
    """At two outputs, by the Kolmogorov–Smirnov, the binomial or the χ² test at a level of 10⁻⁶."""
    likelihood, law = DRAWN[which]
    f = jnp.repeat(jnp.array([[-1.5, 0.7]]), 20_000, axis=0)
    y = np.asarray(likelihood.draw(jax.random.key(0), f))
    assert y.shape == f.shape
    for i, (column, at) in enumerate(zip(y.T, (-1.5, 0.7))):
        assert_allclose(likelihood.mean(f)[0, i], law(at).mean())
        assert_allclose(likelihood.variance(f)[0, i], law(at).var())
        if which == "bernoulli":
            assert set(column) == {0, 1}
            assert stats.binomtest(int(column.sum()), len(column), law(at).mean()).pvalue > 1e-6
        elif which == "poisson":
            counts = np.bincount(np.minimum(column, 3), minlength=4)
            shares = [*law(at).pmf([0, 1, 2]), law(at).sf(2)]
            assert stats.chisquare(counts, len(column) * np.array(shares)).pvalue > 1e-6
        else:
            assert stats.kstest(column, law(at).cdf).pvalue > 1e-6


@pytest.mark.parametrize("degrees", [1.0, 2.0, 2.5])
def test_variance_of_heavy_tails_is_infinite(degrees):
    found = StudentT(degrees, 0.4).variance(jnp.zeros((3, 2)))
    assert_allclose(found, np.full((3, 2), 0.4**2 * 5 if degrees > 2 else np.inf))


@pytest.mark.slow
def test_predict_contains_the_noise():
    """Moments at the positions of a run are those of observations drawn there, within five errors."""
    tiny = problem(widths=(3,))
    draws = wb.sample(
        jax.random.key(0),
        wb.targets.student_t(tiny.bnn, tiny.x, tiny.y, 9.0),
        wb.samplers.pcn(0.5),
        num_samples=64,
        burn_in=20,
        num_chains=64,
        collect={"y": wb.predictive_draw(tiny.x)},
        num_positions=64,
        progress=False,
    )
    y, found = draws["y"].reshape(-1, *tiny.y.shape), draws.predict(tiny.x)
    squares = (y - y.mean(axis=0)) ** 2
    errors = squares.std(axis=0) / np.sqrt(len(y))
    assert (np.abs(found.mean - y.mean(axis=0)) < 5 * y.std(axis=0) / np.sqrt(len(y))).all()
    assert (np.abs(found.std**2 - squares.mean(axis=0)) < 5 * errors).all()
    assert (5 * errors < 0.5 * squares.mean(axis=0)).all()  # or the noise could be missing


class Pair(wb.targets.Likelihood):
    """y given two outputs: mean and logarithm of the deviation, which is not log-concave."""

    def log_prob(self, y, f):
        return jax.scipy.stats.norm.logpdf(y[:, 0], f[:, 0], jnp.exp(f[:, 1]))


@pytest.mark.slow
def test_likelihoods_may_couple_outputs_and_need_not_be_concave():
    """The density is that of the network all the same, along a map that can be undone."""
    tiny = problem(widths=(4,), out_features=2)
    y = 3 * tiny.y[:, :1]
    target = wb.targets.non_gaussian(tiny.bnn, tiny.x, y, Pair())

    def log_joint(problem, theta):
        f = problem.bnn(theta, problem.x)
        log_p = jax.scipy.stats.norm.logpdf(y[:, 0], f[:, 0], jnp.exp(f[:, 1]))
        return jnp.sum(log_p) - sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(theta)) / 2

    @jax.jit
    @jax.vmap
    def at(key):
        position = target.draw_prior(key)
        exact = log_density_of_readout_map(tiny, target, position, log_joint)
        return target.logdensity(position), exact, jax.grad(target.potential)(position)

    found, exact, gradient = at(jax.random.split(jax.random.key(0), 4))
    assert_same_density(found, exact)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    with pytest.raises(NotImplementedError, match="Pair has no method mean"):
        wb.predictive_mean(tiny.x_new)(target, target.draw_prior(jax.random.key(0)))


def test_large_counts_do_not_break_the_map(float32, mixed_dtypes):
    """From F = 0 a Newton step would arrive at exp(10⁴)."""
    tiny = problem(widths=(8,))
    target = wb.targets.non_gaussian(tiny.bnn, tiny.x, np.array([0, 3, 10_000, 20, 1]), Poisson())
    assert target.y.dtype == jnp.int32
    first = np.asarray(target.affine.args[0])
    assert_allclose(first[2], np.log(10_000 - first[2]), rtol=1e-4)
    assert np.isfinite(target.potential(target.draw_prior(jax.random.key(0))))


@pytest.mark.slow
def test_predictions_have_exact_moments():
    tiny = problem(widths=(2,), out_features=3, n=4)
    exact = reference_of_means(tiny, LIKELIHOODS["softmax"], (2,), "gelu", num_draws=200_000)
    draws = wb.sample(
        jax.random.key(3),
        target_of(tiny),
        wb.samplers.pcn(0.6),
        num_samples=60,
        thin=5,
        burn_in=150,
        num_chains=NUM_CHAINS,
        collect={"mean": wb.predictive_mean(tiny.x_new)},
    )
    assert exact.effective_draws > 10_000
    assert_moments(by_chains(draws["mean"]), exact.moments)
    assert 0.1 < draws.acceptance_rate < 0.98
