"""Posteriors of scales and weights together: importance sampling, and ranks of what made the data."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

import widebnn as wb
from widebnn import samplers, targets

from .dkwm import FALSE_FAILURE
from .importance import NUM_CHAINS, _weighted, assert_moments, by_chains
from .networks import ACTIVATION

PRIORS = {
    "noise_std": targets.LogNormal(0.4, 0.8),
    "readout_std": targets.LogNormal(1.0, 0.8),
    "weight_std": targets.LogNormal(1.4, 1.0),
}
WIDTH, BIAS_STD = 3, 0.5


class Data(NamedTuple):
    x: jax.Array
    y: jax.Array
    x_new: jax.Array


def data(n=5, out_features=1):
    rng = np.random.default_rng(0)
    return Data(*(jnp.asarray(rng.normal(size=size)) for size in ((n, 2), (n, out_features), (2, 2))))


def target_of(x, y, priors=PRIORS, space="auto"):
    features = wb.models.FCN(x.shape[1], WIDTH, bias_std=BIAS_STD, rngs=nnx.Rngs(0))
    bnn = wb.BNN(features, y.shape[1], noise_std=1.0)
    return targets.scaled(targets.marginal(bnn, x, y, space), **priors)


def sampler_of(target, step_size=0.25, limit=None, make=samplers.with_scales):
    return make(samplers.function_space_hmc(step_size, num_steps=4), limit)


def embedding(position, x):
    """Ψ without the package: kernel, bias and the scales' coordinates in, readout scale included."""
    kernel, bias, s = position
    f = s["weight_std"] / math.sqrt(x.shape[1]) * jnp.matmul(x, kernel) + BIAS_STD * bias[None, :]
    h = ACTIVATION["gelu"](f) / math.sqrt(WIDTH)
    return s["readout_std"] * jnp.concatenate([h, jnp.full((len(x), 1), 0.1)], axis=1)


def drawn_from_prior(key, d_in, priors=PRIORS):
    kernel_key, bias_key, *keys = jax.random.split(key, 2 + len(priors))
    s = {
        name: prior.median * jnp.exp(prior.spread * jnp.clip(jax.random.normal(k), -3, 3))
        for (name, prior), k in zip(priors.items(), keys, strict=True)
    }
    return jax.random.normal(kernel_key, (d_in, WIDTH)), jax.random.normal(bias_key, (WIDTH,)), s


def reference(observed: Data, num_draws=500_000):
    """Moments of f(x_new) and of the logarithms of the scales, each scale taken as one more output.

    f is Gaussian given the layers and the scales, so that these alone are drawn.
    """

    def one(key):
        position = drawn_from_prior(key, observed.x.shape[1])
        psi, new = (embedding(position, x) for x in (observed.x, observed.x_new))
        s = position[2]
        factor = jnp.linalg.cholesky(psi @ psi.T + s["noise_std"] ** 2 * jnp.eye(len(psi)))
        whitened, cross = (
            jax.scipy.linalg.solve_triangular(factor, b, lower=True) for b in (observed.y, psi @ new.T)
        )
        log_weight = -jnp.sum(whitened**2) / 2 - observed.y.shape[1] * jnp.sum(jnp.log(jnp.diag(factor)))
        mean = (cross.T @ whitened).ravel()
        variance = jnp.repeat(jnp.sum(new**2, axis=1) - jnp.sum(cross**2, axis=0), observed.y.shape[1])
        logs = jnp.log(jnp.stack([s[name] for name in PRIORS]))
        return log_weight, *(jnp.concatenate(both) for both in ((mean, logs), (mean**2 + variance, logs**2)))

    return _weighted(one, num_draws)


def assert_exact(target, sampler, observed, exact, num_samples=50, thin=5, burn_in=200):
    """Posterior means and deviations of f and of log scales; false failures at `FALSE_FAILURE`."""
    draws = wb.sample(
        jax.random.key(3),
        target,
        sampler,
        num_samples=num_samples,
        thin=thin,
        burn_in=burn_in,
        num_chains=NUM_CHAINS,
        collect={
            "f": wb.output(observed.x_new),
            "scales": lambda target, position: jnp.log(jnp.stack(list(target.scales(position).values()))),
        },
        progress=False,
    )
    both = np.concatenate([draws["f"].reshape(*draws["f"].shape[:2], -1), draws["scales"]], axis=2)
    assert_moments(by_chains(both), exact)


def assert_conditional(target):
    """The conditional of the readout's scales is the potential, but for a constant."""
    position = target.draw_prior(jax.random.key(0))

    @jax.jit
    def gaps(keys):
        conditional = target.readout_conditional(position)

        def at(key):
            u = wb.tree.normal_like(key, position.readout_scales)
            return conditional(u) - target.potential(position._replace(readout_scales=u))

        return jax.vmap(at)(keys)

    gap = float(np.ptp(gaps(jax.random.split(jax.random.key(1), 5))))
    assert gap < 1e-8, f"the conditional of the readout's scales is not the potential: {gap:.2g} off"


def ranks(make_target, make_sampler, num_sets=1_000, n=20, num_draws=19, thin=8, burn_in=500):
    """Ranks of what made a data set among draws of its posterior, (data set, quantity), in 0, …, num_draws.

    Simulation-based calibration (Talts et al. 2018): with prior, data and sampler in agreement each rank is
    uniform. Quantities: the logarithms of the scales, and f at a new input.
    """
    x, _, x_new = data(n)
    prior = target_of(x, jnp.zeros((n, 1)))

    def of_set(key):
        truth_key, readout_key, noise_key, start_key, run_key = jax.random.split(key, 5)
        truth = drawn_from_prior(truth_key, x.shape[1])
        s = truth[2]
        w = jax.random.normal(readout_key, (WIDTH + 1, 1))
        y = embedding(truth, x) @ w + s["noise_std"] * jax.random.normal(noise_key, (n, 1))
        target = make_target(x, y)
        sampler = make_sampler(target).bind(target)

        def quantities(position, key):
            logs = jnp.log(jnp.stack([target.scales(position)[name] for name in PRIORS]))
            return jnp.append(logs, wb.output(x_new[:1])(target, position, key))

        def step(state, key):
            return sampler.step(key, state)[0], None

        def draw(state, key):
            steps_key, draw_key = jax.random.split(key)
            state, _ = jax.lax.scan(step, state, jax.random.split(steps_key, thin))
            return state, quantities(state.position, draw_key)

        state = sampler.init(prior.draw_prior(start_key))
        burn_key, run_key = jax.random.split(run_key)
        state, _ = jax.lax.scan(step, state, jax.random.split(burn_key, burn_in))
        _, found = jax.lax.scan(draw, state, jax.random.split(run_key, num_draws))
        wanted = jnp.append(jnp.log(jnp.stack([s[name] for name in PRIORS])), embedding(truth, x_new[:1]) @ w)
        return jnp.sum(found < wanted[None, :], axis=0)

    return np.asarray(jax.jit(jax.vmap(of_set))(jax.random.split(jax.random.key(5), num_sets)))


def assert_uniform(found, num_draws=19):
    """DKW: sup |F̂ − F| of a rank exceeds its band at the rate `FALSE_FAILURE`, all quantities together."""
    num_sets, num_quantities = found.shape
    band = math.sqrt(math.log(2 * num_quantities / FALSE_FAILURE) / (2 * num_sets))
    uniform = np.arange(1, num_draws + 2) / (num_draws + 1)
    for name, column in zip([*PRIORS, "f"], found.T, strict=True):
        empirical = np.searchsorted(np.sort(column), np.arange(num_draws + 1), side="right") / num_sets
        gap = np.abs(empirical - uniform).max()
        assert gap < band, f"ranks of {name} are not uniform: {gap:.3f} off, where {band:.3f} is allowed"
