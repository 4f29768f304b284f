"""Rotated inputs: the same posterior on fewer numbers, the rest of the first layer drawn when it is seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.flatten_util import ravel_pytree
from numpy.testing import assert_allclose

import widebnn as wb

from ..exact.complement import assert_new_inputs_see_the_prior
from ..exact.networks import problem
from ..exact.whitening import assert_batches_share_a_draw

FIRST = ("layers", 0, "kernel")

BASES = {
    "marginal": lambda tiny: wb.targets.marginal(tiny.bnn, tiny.x, tiny.y),
    "repriorised": lambda tiny: wb.targets.repriorised(tiny.bnn, tiny.x, tiny.y, reg=0.5),
}


@pytest.fixture(params=BASES)
def pair(request):
    """A target, rotated, and as it was."""
    tiny = problem(widths=(4, 3), out_features=2)
    base = BASES[request.param](tiny)
    return tiny, wb.targets.rotated(base), base


def of_both(rotated, base, inside=None):
    """At four positions, by one program: positions there and back, and questions to both targets."""
    questions = [] if inside is None else ["predictive_mean", "predictive_covariance", "embedding"]

    def at(key):
        position = rotated.draw_prior(key)
        theta = rotated.to_parameters(position, jax.random.fold_in(key, 1))
        before = base.from_parameters(theta)
        answers = [(rotated.potential(position), base.potential(before))]
        answers += [(rotated.embedding(position), base.embedding(before))]
        for question in questions:
            after, expected = (
                getattr(wb, question)(inside)(*one) for one in ((rotated, position), (base, before))
            )
            answers.append((after, expected))
        return answers, ravel_pytree(position)[0], ravel_pytree(rotated.from_parameters(theta))[0]

    return jax.device_get(jax.jit(jax.vmap(at))(jax.random.split(jax.random.key(0), 4)))


def test_chain_is_as_large_as_the_rank_and_the_posterior_the_same(pair):
    tiny, rotated, base = pair
    inner = [jax.eval_shape(target.inner, target.template) for target in (rotated, base)]
    assert [one["layers"][0]["kernel"].shape for one in inner] == [(2, 4), (3, 4)]
    inside = np.array([[0.3, -1.0, 0.0, 0.0, 2.0], [1.0, 0.0, 0.5, 0.0, 0.0]]) @ tiny.x
    answers, position, returned = of_both(rotated, base, inside)
    for after, before in answers:
        assert_allclose(after, before, rtol=1e-10, atol=1e-10)
    assert_allclose(returned, position, atol=1e-10)


def test_new_inputs_outside_the_span_need_a_key(pair):
    tiny, rotated, _ = pair
    position = rotated.draw_prior(jax.random.key(0))
    mean = wb.predictive_mean(tiny.x_new)
    with pytest.raises(TypeError, match="rng_key is required: the part of W¹ that x sees"):
        mean(rotated, position)
    draws = jax.jit(jax.vmap(lambda key: mean(rotated, position, rng_key=key)))
    first, second = draws(jax.random.split(jax.random.key(0)))
    assert first.shape == (2, 2) and not np.allclose(first, second, atol=1e-3)
    with pytest.raises(TypeError, match="rng_key is required: the part of W¹ outside the data"):
        rotated.to_parameters(position)


def one_layer():
    tiny = problem(widths=(3,), activation="erf")
    return tiny, wb.targets.rotated(wb.targets.marginal(tiny.bnn, tiny.x, tiny.y))


def test_new_inputs_see_the_prior_of_the_complement():
    tiny, rotated = one_layer()
    assert_new_inputs_see_the_prior(rotated, tiny, lambda u, key: wb.embedding(tiny.x_new)(rotated, u, key))


@pytest.mark.slow
def test_whole_parameters_hold_the_prior_of_the_complement():
    tiny, rotated = one_layer()

    def embedding(position, key):
        return tiny.bnn.embedding(rotated.to_parameters(position, key).inner, tiny.x_new)

    assert_new_inputs_see_the_prior(rotated, tiny, embedding)


def test_one_key_is_one_network():
    """Whatever inputs are asked of it, and that of the parameters that `to_parameters` draws."""
    tiny, rotated = one_layer()
    x = np.concatenate([tiny.x[:1], tiny.x_new, 2 * tiny.x_new[:1] - tiny.x[1:2]])
    assert_batches_share_a_draw(rotated, x)

    @jax.jit
    def outputs(position, key):
        return wb.output(x)(rotated, position, key), tiny.bnn(rotated.to_parameters(position, key), x)

    found, whole = outputs(rotated.draw_prior(jax.random.key(0)), jax.random.key(1))
    assert_allclose(found, whole, atol=1e-9)


@pytest.mark.parametrize(
    "rows, rank",
    [
        pytest.param(np.eye(3), 3, id="full rank"),
        pytest.param(np.ones((4, 3)), 1, id="all rows alike"),
        pytest.param(np.array([[1, 2, 3], [2, 4, 6], [0, 0, 1], [1, 2, 3]]), 2, id="multiples"),
        pytest.param(1e-6 * np.eye(3)[:2], 2, id="small entries"),
    ],
)
def test_rank_of_the_data(rows, rank):
    tiny = problem(widths=(4,))
    x, y = np.asarray(rows, float), np.arange(float(len(rows)))[:, None]
    base = wb.targets.marginal(tiny.bnn, x, y)
    rotated = wb.targets.rotated(base)
    assert rotated.basis.shape == (3, rank)
    assert_allclose(rotated.basis.T @ rotated.basis, np.eye(rank), atol=1e-12)
    ((after, before), _), *_ = of_both(rotated, base)
    assert_allclose(after, before, rtol=1e-10)


def test_float32_data_of_full_rank_keep_it():
    x = np.random.default_rng(0).normal(size=(20, 30)).astype(np.float32)
    features = wb.models.FCN(30, 5, rngs=nnx.Rngs(0))
    bnn, y = wb.BNN(features, 1, 0.1), jnp.zeros((20, 1), jnp.float32)
    with jax.numpy_dtype_promotion("standard"):  # the network is in float64
        assert wb.targets.rotated(wb.targets.marginal(bnn, jnp.asarray(x), y)).basis.shape == (30, 20)


def test_kernel_is_named_where_two_would_do():
    tiny = problem(widths=(3, 4))
    base = wb.targets.marginal(tiny.bnn, tiny.x, tiny.y)
    with pytest.raises(ValueError, match="kernel must be the path of the first layer's kernel"):
        wb.targets.rotated(base)
    assert wb.targets.rotated(base, FIRST).basis.shape == (3, 2)
    with pytest.raises(ValueError, match="embedding changed under the rotation"):
        wb.targets.rotated(base, ("layers", 1, "kernel"))
