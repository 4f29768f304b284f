"""Bugs planted in learned scales: exact answers and calibration must see every one."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from widebnn import samplers, targets
from widebnn.targets import LogNormal, Scaled, Spectrum

from ..exact import scales
from ..exact.planted import caught, passed


class PowersOfTen(LogNormal):
    """log₁₀ s normal in place of log s."""

    def at(self, u):
        return self.median * 10 ** (self.spread * jnp.clip(u, -3, 3))


class WithSpectrum(Scaled):
    """Draws readout scales from the conditional that another spectrum has."""

    spectrum = Spectrum

    def readout_conditional(self, position):
        target, here = self.at(position), self.scales(position)
        eigen = self.spectrum(*targets.spectrum(target.embedding(position.network), target.y, "feature"))

        def potential(u):
            there = {name: self.priors[name].at(value) for name, value in u.items()}
            return eigen.potential(there["readout_std"] / here["readout_std"], there["noise_std"])

        return potential


class ScaleNotSquared(Spectrum):
    def potential(self, scale, noise_std):
        return super().potential(jnp.sqrt(scale), noise_std)


class RestForgotten(Spectrum):
    def potential(self, scale, noise_std):
        return Spectrum(*self)._replace(rest=jnp.zeros_like(self.rest)).potential(scale, noise_std)


class NoiseOfSeenDirectionsAlone(Spectrum):
    """Without (n − k) log σ²: what feature space does not see is forgotten."""

    def potential(self, scale, noise_std):
        return Spectrum(*self)._replace(num_observations=len(self.values)).potential(scale, noise_std)


def with_spectrum(kind):
    class Broken(WithSpectrum):
        spectrum = kind

    right = scales.target_of(*scales.data(n=12)[:2])
    return Broken(right.base, right.priors)


def powers_of_ten(x, y):
    return scales.target_of(x, y, {name: PowersOfTen(*prior) for name, prior in scales.PRIORS.items()})


class Blind(samplers.elliptical_slice):
    """A slice of a flat density."""

    def init(self, target, position, rng_key=None):
        return super().init(FLAT, position, rng_key)

    def step(self, target, rng_key, state):
        return super().step(FLAT, rng_key, state)


FLAT = samplers.Density(lambda u: jnp.zeros(()))


def inner_scale_from_its_prior(target):
    """A slice that does not look at the data."""
    move = samplers.conditional("network", samplers.function_space_hmc(0.5, num_steps=2))
    blind = samplers.conditional("scales", Blind())
    return samplers.alternate(samplers.alternate(move, blind), samplers.readout_scales())


class First(NamedTuple):
    """A position, and the one at the start."""

    position: targets.ScaledPosition
    first: targets.ScaledPosition


class scales_at_the_first_network(samplers.with_scales):
    """The spectrum of the network at the start, kept as if nothing moved."""

    def prepare(self, target):
        return self

    def init(self, target, position, rng_key=None):
        return First(position, position)

    def step(self, target, rng_key, state):
        network_key, scales_key = jax.random.split(rng_key)
        right, stale = self._on(target), samplers.readout_scales()
        moved, info = right.step(target, network_key, right.init(target, state.position))
        old = state.first._replace(scales=moved.position.scales)
        drawn, _ = stale.step(target, scales_key, stale.init(target, old))
        position = moved.position._replace(readout_scales=drawn.position.readout_scales)
        return First(position, state.first), info


def ranked(make_target=scales.target_of, make_sampler=scales.sampler_of):
    return lambda: scales.assert_uniform(scales.ranks(make_target, make_sampler))


def same(kind):
    return lambda: scales.assert_conditional(with_spectrum(kind))


test_bug_is_caught = caught(
    (
        "ranks",
        "ranks of .* are not uniform",
        {
            "layers' scale from its prior": ranked(make_sampler=inner_scale_from_its_prior),
            "prior in powers of ten": ranked(powers_of_ten),
            "scales at the first network": ranked(
                make_sampler=lambda target: scales.sampler_of(target, make=scales_at_the_first_network)
            ),
        },
    ),
    (
        "conditional",
        "the conditional of the readout's scales is not the potential",
        {
            "readout scale not squared": same(ScaleNotSquared),
            "noise of seen directions alone": same(NoiseOfSeenDirectionsAlone),
            "rest of the observations forgotten": same(RestForgotten),
        },
    ),
    nightly=("ranks",),
)

test_right_one_of_the_same_make_passes = passed(spectrum=same(Spectrum))
