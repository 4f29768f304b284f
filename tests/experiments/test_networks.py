"""The networks that experiments compare: what they take, how wide they are, which names there are."""

import jax
import pytest

from widebnn.experiments.networks import NETWORKS, network, observed


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


def test_unknown_names_and_sizes_are_refused():
    dataset = observed("dense", "digits", num_train=3, num_test=2)
    for call in (
        lambda: observed("recurrent", "digits", 3, 2),
        lambda: network("recurrent", dataset, 8, 2, 0.1, 0),
    ):
        with pytest.raises(ValueError, match="architecture must be one of") as error:
            call()
        assert all(repr(name) in str(error.value) for name in NETWORKS)
    with pytest.raises(ValueError, match="dataset"):
        observed("dense", "imagenet", 3, 2)
    with pytest.raises(ValueError, match="width must be at least 4; got 3"):
        network("residual", observed("residual", "digits", 3, 2), 3, 2, 0.1, 0)
    with pytest.raises(ValueError, match="noise_std"):
        network("dense", dataset, 8, 2, 0.0, 0)
