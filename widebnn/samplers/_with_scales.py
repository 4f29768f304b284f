"""A network's sampler on a posterior whose scales are learned: what moves the network, then every scale."""

from collections.abc import Callable, Mapping

from widebnn.samplers._alternate import alternate
from widebnn.samplers._base import AnySampler, Potential, Sampler
from widebnn.samplers._conditional import conditional
from widebnn.samplers._elliptical_slice import elliptical_slice
from widebnn.samplers._preconditioned import Gaussian, preconditioned
from widebnn.samplers._readout_scales import HasScales, readout_scales
from widebnn.samplers._rescaled import rescaled

__all__ = ["with_scales"]


def with_scales(
    target: HasScales,
    make: Callable[[Potential], AnySampler],
    limit: Gaussian | None = None,
    multiplies: Mapping[str, str] | None = None,
) -> Sampler:
    """A step on the network at its scales, then updates of all scales at that network.

    Where the readout is integrated out, σ and the readout's scale are updated by their exact conditional
    (`readout_scales`). All other scales are updated by an elliptical slice. Given the `limit`, one elliptical
    slice about it comes first and moves all scales together: readout and layers compensate for one another,
    so that each alone mixes slowly. In a wide network that slice is nearly an independent draw. Given what
    each scale `multiplies`, scales also move with the weights themselves held fixed (`rescaled`), which helps
    where the data say much about them.

    The report is that of the network's step, so that its step size can be tuned::

        wb.samplers.tuned(
            lambda h: wb.samplers.with_scales(
                target, lambda U: wb.samplers.function_space_hmc(U, h, num_steps=8)
            ),
            target_acceptance=0.8,
        )

    Parameters
    ----------
    target
        `widebnn.targets.scaled`.
    make
        Function from a potential of the network's position to a sampler of it.
    limit
        The posterior of the scales at infinite width, what ``target.limiting_scales()`` returns.
    multiplies
        As in `rescaled`.

    Raises
    ------
    TypeError
        If `target` has no scales, or `make` is not callable.
    """
    if not isinstance(target, HasScales):
        raise TypeError(f"target must be made by targets.scaled; got {type(target).__name__}")
    sampler = conditional(target.potential, "network", make)
    if limit is not None:

        def about_limit(potential):
            return preconditioned(potential, limit, elliptical_slice)

        sampler = alternate(sampler, conditional(target.potential, tuple(limit.mean), about_limit))
    if multiplies:
        sampler = alternate(sampler, rescaled(target, multiplies))
    for part in ("scales", "readout_scales"):
        if not getattr(target.template, part):
            continue
        is_exact = part == "readout_scales" and target.has_exact_scales
        slices = readout_scales(target) if is_exact else conditional(target.potential, part, elliptical_slice)
        sampler = alternate(sampler, slices)
    return sampler
