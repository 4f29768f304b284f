"""A parametrisation and a sampler for a posterior, by rules that were measured."""

import contextlib
import math
from typing import Any, NamedTuple

import jax
import numpy as np

from widebnn.samplers import function_space_hmc, tuned, unitwise
from widebnn.samplers._base import Sampler
from widebnn.samplers._unitwise import has_noise_per_output
from widebnn.targets import Scaled, Target, marginal, rotated, whitened
from widebnn.targets._marginal import Marginal
from widebnn.targets._network import NetworkTarget
from widebnn.targets._repriorised import Repriorised
from widebnn.targets._rotated import IrreducibleError, Rotated
from widebnn.targets._standard import Standard
from widebnn.targets._units import UnitsError

__all__ = ["Auto", "auto"]

WIDE = 2
"""Units of a single hidden layer per observation from which redrawing them one by one is the faster way."""
ACCEPTANCE = 0.8
WITH_SCALES = 0.9
"""Acceptance where scales are learned: where σ is small a chain moves by small steps alone.

On 50 rows of diabetes with 64 units, the scales had 97 to 555 effective samples in five runs of 1,600 draws
at 0.8, and 208 to 393 at 0.9.
"""
JITTER = 0.2
START = 0.1
"""The angle at which tuning starts, in radians."""
HMC = "function-space HMC, tuned to an acceptance of"


class Auto(NamedTuple):
    """What `auto` chose.

    Attributes
    ----------
    target
        The posterior in the parametrisation that is to be sampled.
    sampler
        Its sampler, to be passed to `widebnn.sample`, which tunes its step size, if it has one, during
        burn-in.
    reason
        Which target and sampler were chosen, and why, in one line.
    """

    target: Target
    sampler: Sampler | tuned
    reason: str


def auto(target: Target) -> Auto:
    """A parametrisation of a posterior, and a sampler that suits it.

    The readout is integrated out where the noise is Gaussian, and every dense layer is reduced to what the
    data see of it (`widebnn.targets.whitened`), or the first layer alone (`widebnn.targets.rotated`) where
    no other can be or has to be. Networks with one hidden layer of at least twice as many units as there are
    observations are sampled unit by unit (`widebnn.samplers.unitwise`). All others are sampled by
    `widebnn.samplers.function_space_hmc`, whose angle is tuned to an acceptance of 0.8,
    or 0.9 where scales are learned.
    ``python -m benchmarks.first_draws`` measures what the rules rest on: the seconds of compiling, burn-in
    and sampling up to 400 effective samples, over width, depth and number of observations.

    `widebnn.smc` takes the same coordinates and kernels for particles: for the evidence, and where the way
    from the prior is short. For predictions alone `widebnn.sample` compiles faster up to 256 units. On a
    hundred rows it costs two thirds as much per effective sample up to 256 units, and a third more at 4,096;
    in three layers a seventh, on a thousand rows a sixteenth (``python -m benchmarks.evidence``). It is for
    long runs too, and where the way is long.

    What `auto` chooses is passed to `widebnn.sample`::

        target, sampler, reason = wb.auto(wb.targets.marginal(bnn, x, y))
        draws = wb.sample(
            rng_key, target, sampler, num_samples=1_000, burn_in=200, num_chains=4
        )

    Parameters
    ----------
    target
        Any target. Those of `widebnn.targets.standard`, `widebnn.targets.repriorised` and
        `widebnn.targets.marginal` are reparametrised. Others, such as those that are rotated or whitened
        already, are sampled as they are. Of `widebnn.targets.scaled` weights and scales move together, in
        coordinates in which the scales start at their posterior in the limit of infinite width, where that is
        known.
    """
    if not isinstance(target, Target):
        raise TypeError(f"target must be one of widebnn.targets; got {type(target).__name__}")
    if isinstance(target, Scaled):
        about, start = _about_limit(target)
        reason = f"{HMC} {WITH_SCALES}, on the network as it is and its scales, which start {start}"
        return Auto(about, _hmc(WITH_SCALES), reason)
    target, parametrisation = _parametrised(target)
    if (shallow := _shallow(target)) is not None:
        num_units, num_data = shallow.units.num_units, shallow.num_observations
        if num_units >= WIDE * num_data:
            reason = f"one hidden layer of {num_units:,} units, {num_data:,} observations"
            return Auto(target, unitwise(), f"the unit-wise sampler on {parametrisation}: {reason}")
    return Auto(target, _hmc(ACCEPTANCE), f"{HMC} {ACCEPTANCE}, on {parametrisation}")


def _hmc(acceptance: float) -> tuned:
    return tuned(function_space_hmc(START, jitter=JITTER), acceptance, math.pi / 2)


def _about_limit(target: Scaled) -> tuple[Scaled, str]:
    """The target in coordinates of the scales from which chains start, and where that is."""
    if target.reference is not None:
        return target, "as the target has it"
    try:
        limit = target.limiting_scales()
    except (TypeError, ValueError, np.linalg.LinAlgError):  # no Gaussian noise, no known kernel
        return target, "at their priors"
    return target.about(limit), "at their posterior in the limit of infinite width"


def _parametrised(target: Target) -> tuple[Target, str]:
    """The target in the coordinates in which chains move furthest, and what they are called."""
    if not isinstance(target, Standard | Repriorised | Marginal) or not jax.tree.leaves(
        target.bnn.features.template
    ):
        return target, "the target as it is"
    if not isinstance(target, Marginal):
        target = marginal(target.bnn, target.x, target.y, target.space, target.block_size)
    reduced, name = _reduced(target)
    return reduced, f"{name}, the readout integrated out"


def _reduced(target: NetworkTarget) -> tuple[NetworkTarget, str]:
    """Of a network whose layers can be reduced to what the data see of them."""
    if target.bnn.features.graph is not None:  # whose layers are known
        with contextlib.suppress(IrreducibleError):
            if (reduced := whitened(target)).layers:
                return reduced, "whitened layers"
            target = reduced.weights  # rotated, where the first layer is known
    if not isinstance(target, Rotated):
        try:
            target = rotated(target)
        except IrreducibleError:
            return target, "the weights"
    return target, "rotated inputs"


def _shallow(target: Any) -> Any:
    """The target, if `unitwise` moves all of it: all parameters belong to the units, and σ to all outputs."""
    try:
        units = getattr(target, "units", None)
    except UnitsError:
        return None
    if units is None or not all(jax.tree.leaves(units.is_unit)) or has_noise_per_output(target):
        return None
    return target
