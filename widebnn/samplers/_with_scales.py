"""A network's sampler on a posterior whose scales are learned: network and scales together, then scales."""

from typing import ClassVar

from widebnn.samplers._alternate import alternate
from widebnn.samplers._base import Sampler, check_sampler
from widebnn.samplers._conditional import conditional
from widebnn.samplers._elliptical_slice import elliptical_slice
from widebnn.samplers._preconditioned import Gaussian, preconditioned
from widebnn.samplers._readout_scales import check_scales, readout_scales
from widebnn.samplers._rescaled import rescaled


class with_scales(Sampler):
    """A step on the network together with the scales of its layers, then updates of all scales.

    A network that the data determine leaves its scales little room, so that one step moves both. Where the
    readout is integrated out, $σ$ and the readout's scale are updated by their exact conditional
    (`readout_scales`), otherwise by an elliptical slice. Given the `limit`, an elliptical slice about it
    moves all scales together: readout and layers compensate for one another, so that each alone mixes
    slowly. In a wide network that slice is nearly an independent draw. Without it, an elliptical slice
    about the prior moves the scales of the layers. Scales also move with the weights that they multiply held
    fixed (`rescaled`), which helps where the data say much about these.

    The target is `widebnn.targets.scaled`. The report is that of the network's step, so that its step size
    can be tuned::

        hmc = wb.samplers.function_space_hmc(0.1, num_steps=8)
        wb.samplers.tuned(wb.samplers.with_scales(hmc), target_acceptance=0.8)

    Parameters
    ----------
    sampler
        Sampler of the network's position, or of a dict of it and the scales of its layers, by the potential.
    limit
        The posterior of the scales at infinite width, what ``target.limiting_scales()`` returns.
    """

    tunes: ClassVar[str] = "sampler"

    sampler: Sampler
    limit: Gaussian | None = None

    def __post_init__(self):
        check_sampler(sampler=self.sampler)

    def prepare(self, target):
        check_scales(target)
        return self._on(target).prepare(target)

    def init(self, target, position, rng_key=None):
        return self._on(target).init(target, position, rng_key)

    def step(self, target, rng_key, state):
        return self._on(target).step(target, rng_key, state)

    def _on(self, target) -> Sampler:
        """One after another, those that the target's scales need."""
        below = bool(target.template.scales)
        both = conditional(("network", "scales") if below else "network", self.sampler)
        if self.limit is not None:
            about_limit = preconditioned(self.limit, elliptical_slice())
            both = alternate(both, conditional(tuple(self.limit.mean), about_limit))
        elif below:
            both = alternate(both, conditional("scales", elliptical_slice()))
        if target.multiplied:
            both = alternate(both, rescaled())
        if target.template.readout_scales:
            exact = target.has_exact_scales
            both = alternate(
                both, readout_scales() if exact else conditional("readout_scales", elliptical_slice())
            )
        return both
