"""The peer that we are timed against samples the same posterior."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import widebnn as wb
from benchmarks.paper_pcn import log_density, pcn_steps
from benchmarks.steps import network
from benchmarks.timing import compare


def test_the_papers_density_is_ours():
    with jax.enable_x64(True):
        data = wb.data.digits(20, 5)
        x, y = jnp.asarray(data.x_train, jnp.float64), jnp.asarray(data.y_train, jnp.float64)
        bnn = network(data, width=8)
        target = wb.targets.repriorised(bnn, x, y)
        density = log_density(bnn, target.template)
        u, v = (target.draw_prior(jax.random.key(i)) for i in range(2))
        theirs = density(ravel_pytree(u)[0], x, y) - density(ravel_pytree(v)[0], x, y)
        ours = target.logdensity(u) - target.logdensity(v)
    np.testing.assert_allclose(theirs, ours, rtol=1e-10)


def test_the_papers_steps_accept_as_ours_do():
    data = wb.data.digits(20, 5)
    bnn = network(data, width=512)
    theirs = pcn_steps(bnn, data.x_train, data.y_train, 0.2)
    theirs(500)
    target = wb.targets.rotated(wb.targets.marginal(bnn, data.x_train, data.y_train))
    draws = wb.sample(
        jax.random.key(0), wb.samplers.pcn(target.potential, 0.2), target, num_samples=3_000, burn_in=500
    )
    rates = draws.stats["acceptance_rate"]
    error = rates.std() / np.sqrt(float(wb.effective_sample_size(rates)))
    assert abs(theirs(3_000) - rates.mean()) < 5 * np.sqrt(2) * error


def test_a_ratio_is_peer_over_ours():
    row = compare("x", ours=lambda: 2.0, peer=lambda: 6.0, rounds=3)
    assert (row["ours"], row["peer"], row["ratio"], row["spread"]) == (2.0, 6.0, 3.0, (3.0, 3.0))
