"""The networks that experiments compare: what they take, how wide they are, which names there are."""

import jax
import numpy as np
import pytest

from book.experiments.networks import in_span, network, observed


@pytest.mark.parametrize(
    ("architecture", "inputs", "inner"),
    [
        ("dense", (64,), 64 * 8 + 8 + 8 * 8 + 8),
        ("convolutional", (8, 8, 1), 9 * 8 + 8 + 9 * 8 * 8 + 8),
        # groups of 2, 4 and 8 channels without biases, and two changes of channels
        ("residual", (8, 8, 1), 9 * (2 + 6 * 4 + 2 * 4 + 5 * 16 + 4 * 8 + 5 * 64) + 2 * 4 + 4 * 8),
    ],
)
def test_a_network_takes_its_images_and_has_the_size_that_its_width_says(architecture, inputs, inner):
    dataset = observed(architecture, "digits", num_train=3, num_test=2)
    assert dataset.x_train.shape == (3, *inputs) and dataset.x_test.shape == (2, *inputs)
    bnn = network(architecture, dataset, width=8, depth=2, noise_std=0.1, seed=0)
    template = bnn.template(dataset.x_train)
    assert sum(leaf.size for leaf in jax.tree.leaves(template.inner)) == inner
    assert template.readout.shape == (8 + 1, 10)
    assert bnn.noise_std == 0.1


@pytest.mark.slow
def test_in_the_span_a_dense_network_is_the_same_function(float64, mixed_dtypes):
    whole = observed("dense", "digits", num_train=5, num_test=3)
    span = in_span(whole)
    assert span.x_train.shape == (5, 5) and span.x_test.shape == (3, 5)
    large, small = (network("dense", one, 4, 2, 0.1, 0) for one in (whole, span))
    parameters = jax.tree.map(
        lambda leaf: jax.random.normal(jax.random.key(leaf.size), leaf.shape), large.template(whole.x_train)
    )
    # the orthonormal basis of the span, from what the two sets of coordinates say
    basis = np.linalg.lstsq(whole.x_train * np.sqrt(5 / 64), span.x_train)[0]
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-5)
    first = parameters.inner["layers"][0]
    turned = jax.tree.map(lambda leaf: leaf, parameters)
    turned.inner["layers"][0] = first | {"kernel": basis.T @ first["kernel"]}
    expected = large(parameters, whole.x_train)
    np.testing.assert_allclose(small(turned, span.x_train), expected, atol=1e-5)
    seen = whole.x_test @ basis @ basis.T  # the part of new images that lies in the span
    np.testing.assert_allclose(small(turned, span.x_test), large(parameters, seen), atol=1e-5)
