"""Maps that take several steps: that their potentials are of one posterior."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from book.experiments.iterated_maps import Iterated, diabetes_patients
from widebnn import targets
from widebnn._pytree import as_pytree


def test_one_step_of_r_has_the_potential_of_the_jacobian_target():
    bnn, x, y = diabetes_patients(3, 2, 0.1, 0)
    right = targets.jacobian(bnn, x, y, 10.0)
    step = as_pytree(right.to_parameters)
    once, twice = (Iterated(targets.standard(bnn, x, y), step, k) for k in (1, 2))

    @jax.jit
    @jax.vmap
    def found(key):
        phi = right.draw_prior(key)
        # two steps are one step from where the first ends, up to what the first does to the density
        theta = once.to_parameters(phi)
        moved, was = (jnp.sum(ravel_pytree(p)[0] ** 2) for p in (theta, phi))
        expected = once.potential(theta) + (moved - was) / 2 - right.log_jacobian(phi)
        orientations = once.orientation(phi), right.orientation(phi)
        return orientations, (once.potential(phi), right.potential(phi)), (twice.potential(phi), expected)

    orientations, of_one, of_two = found(jax.random.split(jax.random.key(1), 3))
    np.testing.assert_array_equal(*orientations)
    np.testing.assert_allclose(*of_one, rtol=1e-3)
    np.testing.assert_allclose(*of_two, rtol=1e-3)
