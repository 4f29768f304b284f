"""σ, λ and the scales of layers can be traced: derivatives of potentials in them, and what U leaves out."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from flax import nnx
from jax.flatten_util import ravel_pytree

import widebnn as wb
from widebnn import targets

from ..exact.change_of_variables import log_density_of_inner, log_density_of_map
from ..exact.networks import problem

RNG = np.random.default_rng(0)
X, Y, LABELS = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2)), np.array([0, 1, 1, 0, 1])
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


def probed(s):
    return targets.jacobian(network(s, width=2), X, Y, s["reg"], num_probes=2, rng_key=jax.random.key(1))


def classifier(which, reg=False):
    return lambda s: targets.categorical(network(s), X, LABELS, which, s["reg"] if reg else None)


TARGETS = {
    "standard": lambda s: targets.standard(network(s), X, Y),
    "standard, blocks": lambda s: targets.standard(network(s), X, Y, "feature", 2),
    "marginal, data space": lambda s: targets.marginal(network(s), X, Y, "data"),
    "marginal, feature space": lambda s: targets.marginal(network(s), X, Y, "feature"),
    "marginal, blocks": lambda s: targets.marginal(network(s), X, Y, "feature", 2),
    "repriorised": lambda s: targets.repriorised(network(s), X, Y),
    "repriorised at λ, data space": lambda s: targets.repriorised(network(s), X, Y, s["reg"], "data"),
    "repriorised at λ, feature space": lambda s: targets.repriorised(network(s), X, Y, s["reg"], "feature"),
    "repriorised at λ, blocks": lambda s: targets.repriorised(network(s), X, Y, s["reg"], "feature", 2),
    "rotated": lambda s: targets.rotated(targets.repriorised(network(s), X, Y, s["reg"])),
    "whitened": lambda s: targets.whitened(targets.marginal(deep(s), X[:3], Y[:3])),
    "jacobian": lambda s: targets.jacobian(network(s, width=1), X[:2], Y[:2], s["reg"]),
    "jacobian, probes": probed,
    "categorical, identity": classifier("identity"),
    "categorical, gaussian": classifier("gaussian"),
    "categorical, gaussian at λ": classifier("gaussian", reg=True),
    "categorical, laplace": classifier("laplace"),
    "binary": lambda s: targets.binary(network(s), X, Y > 0),
    "Student": lambda s: targets.student_t(network(s), X, Y, degrees=3.0),
    "Student, identity": lambda s: targets.student_t(network(s), X, Y, 3.0, "identity"),
    "linear": lambda s: targets.linear(X, Y, s["noise_std"]),
    "linear, repriorised": lambda s: targets.linear(X, Y, s["noise_std"]).repriorised(),
    "linear, repriorised at λ": lambda s: targets.linear(X, Y, s["noise_std"]).repriorised(s["reg"]),
}


def assert_derivatives(function, least=1):
    """In all scales at once, under jit and vmap: the gradient in the middle against central differences."""
    step, names = 1e-4, list(SCALES)
    middle = jnp.asarray(list(SCALES.values()))
    moves = step * jnp.concatenate([jnp.eye(len(names)) * k for k in (0, 1, -1, 2, -2)])
    value_and_gradient = jax.value_and_grad(lambda row: function(dict(zip(names, row, strict=True))))
    values, gradients = jax.jit(jax.vmap(value_and_gradient))(middle[None] + moves)
    _, up, down, up2, down2 = values.reshape(5, -1)
    slopes = (8 * (up - down) - (up2 - down2)) / (12 * step)
    assert (jnp.abs(slopes) > 1e-3).sum() >= least, "nothing depends on a scale"
    np.testing.assert_allclose(gradients[0], slopes, rtol=1e-7, atol=1e-7 * jnp.abs(values).max())


@pytest.mark.parametrize("which", TARGETS)
def test_potentials_have_derivatives_in_all_scales(which):
    make = TARGETS[which]
    position = wb.tree.normal_like(jax.random.key(0), make(SCALES).template)
    position = jax.tree.map(lambda leaf: leaf.astype(float), position)
    assert_derivatives(lambda s: make(s).potential(position))


@pytest.mark.parametrize("activation", ["gelu", "erf", "relu"])
def test_evidence_of_the_limit_has_derivatives_in_all_scales(activation):
    """At equal inputs the arc-cosine kernel has a root of 0 in it: its derivative must not be NaN."""

    def evidence(s):
        kernel = wb.nngp.nngp_kernel(network(s, activation))
        return wb.nngp.gaussian_process(kernel, X, Y, s["noise_std"]).log_marginal_likelihood()

    assert_derivatives(evidence, least=5)


def test_tangent_kernel_has_derivatives_in_all_scales():
    assert_derivatives(lambda s: jnp.sum(jnp.sin(wb.nngp.ntk_kernel(network(s, "relu"))(X))), least=4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "features",
    [
        lambda s: wb.models.CNN(
            1, 2, weight_std=s["layers_weight_std"], bias_std=s["layers_bias_std"], rngs=nnx.Rngs(0)
        ),
        lambda s: wb.models.WideResNet20(
            1, (1, 1, 2), weight_std=s["layers_weight_std"], offset=s["reg"], rngs=nnx.Rngs(0)
        ),
    ],
    ids=["CNN", "WideResNet20"],
)
def test_scales_of_convolutions(features):
    images = RNG.normal(size=(2, 4, 4, 1))

    def target(s):
        bnn = wb.BNN(features(s), 2, s["noise_std"], weight_std=s["weight_std"], bias_std=s["bias_std"])
        return targets.marginal(bnn, images, Y[:2])

    position = jax.tree.map(lambda leaf: leaf.astype(float), target(SCALES).draw_prior(jax.random.key(0)))
    assert_derivatives(lambda s: target(s).potential(position), least=5)


def test_a_traced_bias_keeps_its_column_and_a_known_zero_drops_it():
    def columns(bias_std):
        bnn = network(SCALES | {"bias_std": bias_std, "layers_bias_std": bias_std})
        return bnn.has_bias, bnn.embedding(jax.tree.map(jnp.ones_like, bnn.features.template), X).shape[1]

    assert columns(0.0) == columns(jnp.asarray(0.0)) == (False, 3)
    assert columns(0.2) == columns(jnp.asarray(0.2)) == (True, 4)
    traced = []
    jax.jit(lambda bias_std: traced.append(columns(bias_std)))(0.0)
    assert traced == [(True, 4)]


def test_outside_of_jit_with_features_from_outside():
    """As a user writes it: the module is made once, and σ is the argument."""
    features = wb.models.FCN(3, 4, rngs=nnx.Rngs(0))
    position = wb.BNN(features, 2, 0.1).features.template
    position = jax.tree.map(lambda leaf: jnp.ones(leaf.shape), position)
    found = jax.grad(lambda s: targets.marginal(wb.BNN(features, 2, s), X, Y).potential(position))(0.4)
    up, down = (targets.marginal(wb.BNN(features, 2, s), X, Y).potential(position) for s in (0.4001, 0.3999))
    assert jnp.isclose(found, (up - down) / 2e-4, rtol=1e-5)


NORMALISED = {
    "standard": targets.standard,
    "repriorised": targets.repriorised,
    "repriorised at λ": lambda *args: targets.repriorised(*args, reg=0.7),
    "rotated": lambda *args: targets.rotated(targets.repriorised(*args, reg=0.7)),
    "jacobian": lambda *args: targets.jacobian(*args, reg=0.7),
}


@pytest.mark.parametrize("which", NORMALISED)
@pytest.mark.parametrize("noise_std", [0.4, 1.7])
def test_with_its_normaliser_a_potential_is_minus_the_log_likelihood(which, noise_std):
    """U + c = −log p(y | θ) + ½‖θ‖² − ½‖φ‖² − log |∂θ/∂φ|, with no constant left over."""
    tiny = problem(widths=(2,), out_features=2, n=3, noise_std=noise_std)
    target = NORMALISED[which](tiny.bnn, tiny.x, tiny.y)
    if which == "rotated":  # θ of a rotated target is drawn: its φ is the one that was rotated
        position = target.draw_prior(jax.random.key(0))
        theta = target.to_parameters(position, jax.random.key(1))
        whole = NORMALISED["repriorised at λ"](tiny.bnn, tiny.x, tiny.y)
        assert jnp.isclose(target.potential(position), whole.potential(whole.from_parameters(theta)))
        assert target.log_normaliser() == whole.log_normaliser()
        return
    position = tiny.draw_parameters()
    flat, _ = ravel_pytree(position)
    prior = jnp.sum(jax.scipy.stats.norm.logpdf(flat))
    exact = prior - log_density_of_map(tiny, target, position)
    assert jnp.isclose(target.potential(position) + target.log_normaliser(), exact, rtol=1e-10)


@pytest.mark.parametrize("space", ["data", "feature"])
def test_with_its_normaliser_the_marginal_potential_is_minus_the_log_evidence(space):
    tiny = problem(out_features=2, noise_std=0.7)
    target, position = targets.marginal(tiny.bnn, tiny.x, tiny.y, space), tiny.draw_parameters().inner
    flat, _ = ravel_pytree(position)
    exact = -log_density_of_inner(tiny, target, position) - flat @ flat / 2
    assert jnp.isclose(target.potential(position) + target.log_normaliser(), exact, rtol=1e-10)


def test_with_its_normaliser_a_linear_potential_is_minus_the_log_evidence():
    """In φ at λ = σ² it is the evidence at every position."""
    target = targets.linear(X, Y, 0.4)
    covariance = X @ X.T + 0.4**2 * np.eye(len(X))
    exact = sum(
        jax.scipy.stats.multivariate_normal.logpdf(column, np.zeros(len(X)), covariance) for column in Y.T
    )
    found = target.repriorised().potential(jnp.ones((3, 2))) + target.log_normaliser()
    assert jnp.isclose(found, -exact, rtol=1e-10)


def test_number_of_observations():
    bnn = network(SCALES)
    known = [
        targets.marginal(bnn, X, Y),
        targets.rotated(targets.standard(bnn, X, Y)),
        targets.jacobian(bnn, X, Y),
        targets.categorical(bnn, X, LABELS),
        targets.linear(X, Y, 0.1),
    ]
    assert [target.num_observations for target in known] == 5 * [5]
    assert targets.from_potential(lambda u: jnp.sum(u), jnp.zeros(3)).num_observations is None


@pytest.mark.parametrize("value", ["0.1", None, True, np.ones(1), jnp.ones((1, 2)), 1j], ids=repr)
def test_what_is_no_number_is_refused(value, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users meet our errors, and alone
    with pytest.raises(TypeError, match="noise_std must be a finite number above 0; got"):
        wb._check.positive(noise_std=value)


def test_traced_numbers_of_another_shape_are_refused(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(TypeError, match="noise_std must be a finite number above 0; got"):
        jax.jit(lambda v: wb._check.positive(noise_std=v))(jnp.ones(2))
