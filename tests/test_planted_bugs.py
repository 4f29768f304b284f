"""Bugs planted in landscapes, estimates, streams and checkpoints: what checks them must see every one."""

import math
import tempfile
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

import widebnn as wb
from widebnn import checkpoints, estimates, landscape, streaming
from widebnn.tree import normal_like

from .exact.estimates import (
    assert_distance_of_mixture,
    assert_kl_of_linear_potential,
    assert_kl_of_quadratic_potential,
)
from .exact.landscape import assert_curvature, assert_slice, assert_spherical
from .exact.networks import problem
from .exact.planted import caught, passed
from .exact.resume import assert_resumes
from .exact.streams import (
    assert_effective_sample_size,
    assert_moments_of_long_float32_stream,
    fold,
)


def coupled(u):
    return jnp.sum(jnp.cosh(u)) + u[0] * u[1] ** 2


# Paths, slices and curvatures that are wrong.


def straight(a, b, t):
    return jax.tree.map(lambda u, v: (1 - t) * u + t * v, a, b)


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
    hessian = np.asarray(jax.jit(jax.hessian(target.potential))(position))
    v = np.asarray(normal_like(rng_key, position))
    for _ in range(50 * num_steps):
        v = hessian @ v / np.linalg.norm(hessian @ v)
    return landscape.Curvature(1 + v @ hessian @ v, jnp.array(0.0))


LANDSCAPES = {
    "straight line for the great circle": lambda: assert_spherical(straight),
    "slice of U alone given as energy": lambda: slice_with(np.zeros_like),
    "Hessian of U alone": lambda: bent(without_prior),
    "power iteration where U bends down": lambda: bent(largest_in_size, lambda u: -jnp.sum(jnp.cosh(2 * u))),
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
        fold.clear_cache()
        try:
            with mock.patch.object(streaming, name, wrong):
                check()
        finally:
            fold.clear_cache()

    return run


def long_stream():
    """In float32, which is what it is about."""
    with jax.enable_x64(False):
        assert_moments_of_long_float32_stream()


def rounded_sum(total, term):
    return streaming.Sum(total.high + term, total.low)


def with_last_of_merged_batches(batches, value, count):
    merged = into_batches(batches, value, count)
    is_merged = merged.length > batches.length
    means = merged.means.at[: streaming.NUM_BATCHES // 2].set(batches.means[1::2])
    return merged._replace(means=jnp.where(is_merged, means, merged.means))


into_batches = streaming._into_batches

STREAMS = {
    "sums that lose what rounding takes": streaming_with("add", rounded_sum, long_stream),
    "one of two batches thrown away": streaming_with(
        "_into_batches", with_last_of_merged_batches, assert_effective_sample_size
    ),
}


def resumed_with(forget):
    """Checkpoints that come back with `forget(old, fresh)` of the carry."""

    def run():
        def wrong(self, carry, draw):
            kept = restore(self, carry, draw)
            return kept._replace(carry=forget(kept.carry, carry))

        restore = checkpoints.Store.restore
        with mock.patch.object(checkpoints.Store, "restore", wrong), tempfile.TemporaryDirectory() as folder:
            assert_resumes(Path(folder))

    return run


def resumed_without(name):
    return resumed_with(
        lambda old, fresh: old._replace(**{name: jax.tree.map(jnp.copy, getattr(fresh, name))})
    )


CHECKPOINTS = {
    "streamed summary forgotten": resumed_without("streamed"),
    "momentum forgotten": resumed_with(
        lambda old, fresh: old._replace(states=old.states._replace(momentum=fresh.states.momentum))
    ),
}


test_bug_is_caught = caught(
    ("landscape", "is on the sphere|is right", LANDSCAPES),
    ("estimate", "mean z-score|coverage", ESTIMATES),
    ("stream", "long stream is off|is biased", STREAMS),
    ("checkpoint", "not the bits of the other run", CHECKPOINTS),
)

test_right_one_of_the_same_make_passes = passed(
    slice=lambda: slice_with(lambda half: half), curvature=lambda: bent(landscape.curvature)
)
