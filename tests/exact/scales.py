"""Posteriors of scales and weights together: their density written out, and importance sampling."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

import widebnn as wb
from widebnn import samplers, targets

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


def assert_exact(target, observed, exact, num_samples=50, thin=5, burn_in=200):
    """Posterior means and deviations of f and of log scales; false failures at `FALSE_FAILURE`."""
    draws = wb.sample(
        jax.random.key(3),
        target,
        # with small angles too: of 512 chains some start where σ is small and nothing fits
        samplers.function_space_hmc(0.2, num_steps=6, jitter=1),
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


def assert_density(target):
    """exp(−U(v) − ½‖v‖²) is the likelihood times N(u; 0, I) |∂u/∂v|, with u found from the scales."""
    medians, spreads = (np.array([prior[i] for prior in PRIORS.values()]) for i in (0, 1))

    @jax.jit
    def at(key):
        position = target.draw_prior(key)

        def u_of(v):
            found = target.scales(position._replace(scales=dict(zip(sorted(PRIORS), v))))
            return jnp.log(jnp.stack([found[name] for name in PRIORS]) / medians) / spreads

        v = jnp.stack([position.scales[name] for name in sorted(PRIORS)])
        layer, s = position.network["layers"][0], target.scales(position)
        psi = embedding((layer["kernel"], layer["bias"], s), target.base.x)
        kernel = psi @ psi.T + s["noise_std"] ** 2 * jnp.eye(len(psi))
        evidence = jax.scipy.stats.multivariate_normal.logpdf(
            target.base.y[:, 0], jnp.zeros(len(psi)), kernel
        )
        wanted = evidence - jnp.sum(u_of(v) ** 2) / 2 + jnp.linalg.slogdet(jax.jacfwd(u_of)(v))[1]
        return -target.potential(position) - jnp.sum(v**2) / 2, wanted

    for seed in range(3):
        found, wanted = at(jax.random.key(seed))
        assert abs(found - wanted) < 1e-8, f"the log density is {found:.6f}, not {wanted:.6f}"
