"""Samplers of BlackJAX on a target, each after the adaptation that BlackJAX has for it."""

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from widebnn.samplers import Sampler, from_blackjax, tuned
from widebnn.targets import Target
from widebnn.tree import Position

__all__ = ["BLACKJAX", "Adaptation", "blackjax", "windows"]

WINDOWS = 300
"""Steps in which a step size and a mass matrix are adapted."""
MICROCANONICAL = 2_000
"""Steps for which BlackJAX makes three tenths as many to tune MCLMC, adjusted or not."""


Adaptation = Callable[[Target, Position, Key[Array, ""]], Sampler | tuned]
"""From a target, a position and random numbers to a sampler that runs, or that `widebnn.sample` tunes."""


def blackjax() -> ModuleType:
    """The package, which only comparisons with it need.

    Raises
    ------
    ImportError
        If it is not installed.
    """
    try:
        return importlib.import_module("blackjax")
    except ModuleNotFoundError as error:
        raise ImportError("a comparison with BlackJAX needs it: pip install 'blackjax>=1.7'") from error


def windows(name: str, num_steps: int = WINDOWS, **fixed) -> Adaptation:
    """A step size for an acceptance of 0.8 and a mass matrix, in windows as Stan has them."""

    def adapted(target: Target, position: Position, rng_key: Key[Array, ""]) -> Sampler | tuned:
        library = blackjax()
        algorithm = getattr(library, name)
        # From a step of 1 the first trajectories would be a thousand gradients long.
        options = {"adaptation_info_fn": library.adaptation.base.get_filter_adapt_info_fn()} | fixed
        run = library.window_adaptation(algorithm, target.logdensity, initial_step_size=0.1, **options).run
        (_, found), _ = run(rng_key, position, num_steps)
        step_size = found.pop("step_size")
        return from_blackjax(partial(algorithm, **found), step_size)

    return adapted


def adjusted_mclmc(target: Target, position: Position, rng_key: Key[Array, ""]) -> Sampler | tuned:
    """Two steps of the integrator per proposal on average, two gradients each, accepted at a rate of 0.65.

    Of rates of 0.65 and 0.9, of 2, 5 and 10 steps, with a diagonal mass matrix and without one, these made
    the most effective samples per gradient on the whitened posterior of 32 images at width 128.
    """
    library = blackjax()
    dynamic = library.mcmc.adjusted_mclmc_dynamic
    num_steps = dynamic.make_random_trajectory_length_fn(True)
    start_key, rng_key = jax.random.split(rng_key)
    _, found, _ = library.adjusted_mclmc_find_L_and_step_size(
        dynamic.build_kernel(integration_steps_fn=num_steps),
        target.logdensity,
        MICROCANONICAL,
        dynamic.init(position, target.logdensity, start_key),
        rng_key,
        target=0.65,
        diagonal_preconditioning=False,
    )
    length = found.L / found.step_size
    make = partial(
        library.adjusted_mclmc_dynamic, integration_steps_fn=num_steps, integration_steps_params=(length,)
    )
    return from_blackjax(make, found.step_size)


def unadjusted_mclmc(target: Target, position: Position, rng_key: Key[Array, ""]) -> Sampler | tuned:
    """Without an accept–reject step: what it samples is off the posterior by what its step size makes it."""
    library = blackjax()
    kernel = library.mclmc.build_kernel()
    start_key, rng_key = jax.random.split(rng_key)
    _, found, _ = library.mclmc_find_L_and_step_size(
        kernel,
        MICROCANONICAL,
        library.mclmc.init(position, target.logdensity, start_key),
        rng_key,
        logdensity_fn=target.logdensity,
        diagonal_preconditioning=False,
    )
    return from_blackjax(partial(library.mclmc, L=found.L), found.step_size)


class _Identity:
    """The prior's eigenvectors, which as a matrix would have the square of the dimension."""

    def __matmul__(self, u: Array) -> Array:
        return u


def mgrad_gaussian(target: Target, position: Position, rng_key: Key[Array, ""]) -> Sampler | tuned:
    """Titsias & Papaspiliopoulos 2018, tuned to an acceptance of a half, as they advise."""
    library = blackjax()
    spectrum = library.mcmc.marginal_latent_gaussian.CovarianceSVD(
        _Identity(), jnp.ones(sum(leaf.size for leaf in jax.tree.leaves(position))), _Identity()
    )

    def make(_, step_size):  # it wants the density relative to N(0, I)
        return library.mgrad_gaussian(lambda u: -target.potential(u), cov_svd=spectrum, step_size=step_size)

    return tuned(from_blackjax(make, 0.1), 0.5, max_step_size=1e4)


BLACKJAX: Mapping[str, Adaptation] = {
    "NUTS": windows("nuts"),
    "HMC, 8 steps": windows("hmc", num_integration_steps=8),
    "adjusted MCLMC": adjusted_mclmc,
    "mgrad": mgrad_gaussian,
    "unadjusted MCLMC": unadjusted_mclmc,
}
"""By name. NUTS with a low-rank mass was slower than NUTS wherever it was tried."""
