"""σ, λ and the scales of layers can be traced: derivatives of potentials in them, and what U leaves out."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.flatten_util import ravel_pytree
from scipy import stats

import widebnn as wb
from widebnn import targets

from ..exact.change_of_variables import log_density_of_map
from ..exact.networks import log_evidence, problem

RNG = np.random.default_rng(0)
X, Y, LABELS = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2)), np.array([0, 1, 1, 0, 1])
KEY = jax.random.key(0)
SCALES = {
    "noise_std": 0.4,
    "weight_std": 1.1,
    "bias_std": 0.2,
    "layers_weight_std": 1.3,
    "layers_bias_std": 0.5,
    "reg": 0.3,
}


def network(s, activation="gelu", width=3):
    features = wb.models.FCN(
        3,
        width,
        activation=activation,
        weight_std=s["layers_weight_std"],
        bias_std=s["layers_bias_std"],
        rngs=nnx.Rngs(0),
    )
    return wb.BNN(features, 2, s["noise_std"], weight_std=s["weight_std"], bias_std=s["bias_std"])


def deep(s):
    return network(s, width=(4, 3))


TARGETS = {
    "standard": lambda s: targets.standard(network(s), X, Y),
    "marginal, blocks": lambda s: targets.marginal(network(s), X, Y, "feature", 2),
    "repriorised at λ, feature space": lambda s: targets.repriorised(network(s), X, Y, s["reg"], "feature"),
    "whitened": lambda s: targets.whitened(targets.marginal(deep(s), X[:3], Y[:3])),
    "jacobian": lambda s: targets.jacobian(network(s, width=1), X[:2], Y[:2], s["reg"]),
    "categorical, laplace": lambda s: targets.categorical(network(s), X, LABELS, "laplace"),
    "Student": lambda s: targets.student_t(network(s), X, Y, degrees=3.0),
    "linear, repriorised at λ": lambda s: targets.linear(X, Y, s["noise_std"]).repriorised(s["reg"]),
}


def derivatives(functions):
    """Values and gradients of functions of the scales around `SCALES`, each scale moved, by one program."""
    moves = STEP * np.concatenate([np.eye(len(SCALES)) * k for k in (0, 1, -1, 2, -2)])
    rows = np.array(list(SCALES.values())) + moves

    def at(row):
        named = dict(zip(SCALES, row, strict=True))
        return {name: jax.value_and_grad(function)(named) for name, function in functions.items()}

    return jax.device_get(jax.jit(jax.vmap(at))(rows))


STEP = 1e-4


def assert_derivatives(values, gradients, least=1):
    """In all scales at once, under jit and vmap: the gradient in the middle against central differences."""
    _, up, down, up2, down2 = values.reshape(5, -1)
    slopes = (8 * (up - down) - (up2 - down2)) / (12 * STEP)
    assert (np.abs(slopes) > 1e-3).sum() >= least, "nothing depends on a scale"
    found = [gradients[name][0] for name in SCALES]
    np.testing.assert_allclose(found, slopes, rtol=1e-7, atol=1e-7 * np.abs(values).max())


def potential(make):
    """At a draw from the prior."""

    def at(s):
        target = make(s)
        return target.potential(jax.tree.map(lambda leaf: leaf.astype(float), target.draw_prior(KEY)))

    return at


@functools.cache
def of_targets():
    return derivatives({name: potential(make) for name, make in TARGETS.items()})


@pytest.mark.slow
@pytest.mark.parametrize("which", TARGETS)
def test_potentials_have_derivatives_in_all_scales(which):
    assert_derivatives(*of_targets()[which])


@pytest.mark.slow
def test_kernels_of_the_limit_have_derivatives_in_all_scales():
    """At equal inputs the arc-cosine kernel has a root of 0 in it: its derivative must not be NaN."""

    def evidence(activation, s):
        kernel = wb.nngp.nngp_kernel(network(s, activation))
        return wb.nngp.gaussian_process(kernel, X, Y, s["noise_std"]).log_marginal_likelihood()

    def tangent(s):
        return jnp.sum(jnp.sin(wb.nngp.ntk_kernel(network(s, "relu"))(X)))

    evidences = {name: functools.partial(evidence, name) for name in ("gelu", "erf", "relu")}
    for name, found in derivatives(evidences | {"tangent": tangent}).items():
        assert_derivatives(*found, least=4 if name == "tangent" else 5)


def test_a_traced_bias_keeps_its_column_and_a_known_zero_drops_it():
    def columns(bias_std):
        bnn = network(SCALES | {"bias_std": bias_std, "layers_bias_std": bias_std})
        return bnn.has_bias, bnn.embedding(jax.tree.map(jnp.ones_like, bnn.features.template), X).shape[1]

    assert columns(0.0) == columns(jnp.asarray(0.0)) == (False, 3)
    assert columns(0.2) == columns(jnp.asarray(0.2)) == (True, 4)
    traced = []
    jax.jit(lambda bias_std: traced.append(columns(bias_std)))(0.0)
    assert traced == [(True, 4)]


NORMALISED = {
    "repriorised at λ": lambda *at: targets.repriorised(*at, reg=0.7),
    "jacobian": lambda *at: targets.jacobian(*at, reg=0.7),
}


@functools.cache
def normalised():
    """U + c and what it is minus the logarithm of, as a function of σ."""
    tiny = problem(widths=(2,), out_features=2, n=3)

    @jax.jit
    def everything(noise_std):
        bnn = dataclasses.replace(tiny.bnn, noise_std=noise_std)
        here, position = tiny._replace(bnn=bnn), tiny.draw_parameters()
        prior = jnp.sum(jax.scipy.stats.norm.logpdf(ravel_pytree(position)[0]))
        found = {}
        for name, make in NORMALISED.items():
            target = make(bnn, tiny.x, tiny.y)
            exact = prior - log_density_of_map(here, target, position)
            found[name] = target.potential(position) + target.log_normaliser(), exact
        for space in ("data", "feature"):
            target = targets.marginal(bnn, tiny.x, tiny.y, space)
            exact = -log_evidence(here, position.inner)
            found[space] = target.potential(position.inner) + target.log_normaliser(), exact
        # θ of a rotated target is drawn: its φ is the one that was rotated
        whole = targets.repriorised(bnn, tiny.x, tiny.y, reg=0.7)
        rotated = targets.rotated(whole)
        u = rotated.draw_prior(jax.random.key(0))
        phi = whole.from_parameters(rotated.to_parameters(u, jax.random.key(1)))
        found["rotated"] = tuple(
            target.potential(at) + target.log_normaliser() for target, at in ((rotated, u), (whole, phi))
        )
        return found

    return [jax.device_get(everything(noise_std)) for noise_std in (0.4, 1.7)]


@pytest.mark.slow
@pytest.mark.parametrize("which", [*NORMALISED, "data", "feature", "rotated"])
def test_with_its_normaliser_a_potential_is_minus_the_log_likelihood(which):
    """U + c = −log p(y | θ) + ½‖θ‖² − ½‖φ‖² − log |∂θ/∂φ|, with no constant left over.

    Of the marginal target, minus the log evidence.
    """
    for found in normalised():
        np.testing.assert_allclose(*found[which], rtol=1e-10)


def test_with_its_normaliser_a_linear_potential_is_minus_the_log_evidence():
    """In φ at λ = σ² it is the evidence at every position."""
    target = targets.linear(X, Y, 0.4)
    law = stats.multivariate_normal(np.zeros(len(X)), X @ X.T + 0.4**2 * np.eye(len(X)))
    found = target.repriorised().potential(jnp.ones((3, 2))) + target.log_normaliser()
    np.testing.assert_allclose(found, -sum(law.logpdf(column) for column in Y.T), rtol=1e-10)
