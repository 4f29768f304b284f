"""A network's sampler on a posterior whose scales are learned: what moves the network, then every scale."""

from collections.abc import Callable

from widebnn.samplers._alternate import alternate
from widebnn.samplers._base import AnySampler, Potential, Sampler
from widebnn.samplers._conditional import conditional
from widebnn.samplers._elliptical_slice import elliptical_slice
from widebnn.samplers._readout_scales import HasReadoutScales, readout_scales

__all__ = ["with_scales"]


def with_scales(target: HasReadoutScales, make: Callable[[Potential], AnySampler]) -> Sampler:
    """A step on the network at its scales, then updates of all scales at that network.

    σ and the readout's scale come from their exact conditional where the readout is integrated out
    (`readout_scales`), every other scale by an elliptical slice. The report is that of the network's step, so
    that its step size can be tuned::

        samplers.tuned(
            lambda h: samplers.with_scales(
                target, lambda U: samplers.function_space_hmc(U, h, num_steps=8)
            ),
            target_acceptance=0.8,
        )

    Parameters
    ----------
    target
        `widebnn.targets.scaled`.
    make
        Function from a potential of the network's position to a sampler of it.

    Raises
    ------
    TypeError
        If the target has no scales, or `make` is not callable.
    """
    if not isinstance(target, HasReadoutScales):
        raise TypeError(f"target must be made by targets.scaled; got {type(target).__name__}")
    sampler = conditional(target.potential, "network", make)
    for part in ("scales", "readout_scales"):
        if not getattr(target.template, part):
            continue
        is_exact = part == "readout_scales" and target.has_exact_scales
        slices = readout_scales(target) if is_exact else conditional(target.potential, part, elliptical_slice)
        sampler = alternate(sampler, slices)
    return sampler
