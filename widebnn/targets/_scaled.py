"""Scales that the data choose: σ, the readout's scale and those of the layers are part of the position.

log s = log m + τ u with u ~ N(0, I) for every scale s: again a potential over N(0, I).
"""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, Key

from widebnn._arrays import NewInputs
from widebnn._check import Number, is_known_to_be, one_of, positive
from widebnn._compile import asked, jitted
from widebnn._pytree import Static, as_pytree
from widebnn.models import Parameters
from widebnn.samplers._base import Potential
from widebnn.samplers._preconditioned import Gaussian
from widebnn.targets._base import Target
from widebnn.targets._limit import Evidence
from widebnn.targets._marginal import Marginal
from widebnn.targets._network import BNNTarget, Function, NetworkTarget
from widebnn.targets._non_gaussian import NonGaussian
from widebnn.targets._readout import ROUNDING, least_noise
from widebnn.targets._rotated import Reduced
from widebnn.targets._spectrum import spectrum
from widebnn.tree import Position, normal_like

READOUT_SCALES = ("noise_std", "readout_std")
"""The scales whose conditional is exact where the readout is integrated out."""

FIRST_ROWS, MAX_ROWS = 256, 512
"""Observations whose evidence in the limit finds the scales, and then those that make them precise."""

REACH = 3.0
"""Largest |u|: a scale stays within m exp(±3τ), so that noiseless data do not drive σ to 0."""

SPREAD = 0.3
"""Standard deviation of the scales' coordinates at the start, where no limit is known."""

CURVATURE_STEP = 0.1
"""Half the difference of two u whose slopes give the evidence's curvature; a smaller one meets rounding."""


class LogNormal(NamedTuple):
    """The prior of a scale: $log s ~ N(log m, τ²)$, clipped at three $τ$ to either side.

    Attributes
    ----------
    median
        $m > 0$.
    spread
        $τ > 0$: two thirds of the prior lie between $m exp(−τ)$ and $m exp(τ)$.
    """

    median: Number
    spread: Number

    def at(self, u: Float[Array, ""]) -> Float[Array, ""]:
        """$s = m exp(τu)$; beyond $±3$, where one draw in 370 falls, $u$ counts as $±3$."""
        return self.median * jnp.exp(self.spread * jnp.clip(u, -REACH, REACH))


class ScaledPosition(NamedTuple):
    """A position of the network's target, and the coordinates $u$ of the scales.

    Attributes
    ----------
    network
        Position of the target at these scales.
    scales
        By name, $u$ of each scale below the readout.
    readout_scales
        By name, $u$ of "noise_std" and "readout_std".
    """

    network: Position
    scales: dict[str, Any]
    readout_scales: dict[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Scaled(Target):
    """The posterior of a network and of its scales; see `scaled`.

    $U(u, φ) = U_s(φ) + c_s$: the potential of the target at the scales $s(u)$, plus its
    `NetworkTarget.log_normaliser`.

    Attributes
    ----------
    make
        Function from scales, by keyword, to the target at these scales.
    priors
        By name, the prior of each scale.
    """

    make: Callable[..., BNNTarget | NonGaussian]
    priors: Mapping[str, LogNormal]

    @functools.cached_property
    def median(self) -> Any:
        """The target at the medians of the scales."""
        return self.make(**{name: prior.median for name, prior in self.priors.items()})

    @property
    def template(self) -> ScaledPosition:
        network = self.median.template
        number = jax.ShapeDtypeStruct((), jax.tree.leaves(network)[0].dtype)
        return ScaledPosition(
            network,
            {name: number for name in self.priors if name not in READOUT_SCALES},
            {name: number for name in self.priors if name in READOUT_SCALES},
        )

    @property
    def num_observations(self) -> int | None:
        return self.median.num_observations

    def scales(self, position: ScaledPosition) -> dict[str, Float[Array, ""]]:
        """By name, the scales at a position."""
        u = position.scales | position.readout_scales
        return {name: prior.at(u[name]) for name, prior in self.priors.items()}

    def scale(self, name: str) -> Callable[[ScaledPosition], Float[Array, ""]]:
        """One scale as a function of a position, to be collected.

        Raises
        ------
        ValueError
            If there is no scale of this name.
        """
        return asked(_scale, (self, Static(one_of(self.priors, name=name))))

    def at(self, position: ScaledPosition) -> BNNTarget | NonGaussian:
        """The network's target at the scales of a position; `position.network` is a position of it."""
        return self.make(**self.scales(position))

    @jitted
    def potential(self, position: ScaledPosition) -> Float[Array, ""]:
        target = self.at(position)
        return target.potential(position.network) + target.log_normaliser()

    @property
    def has_exact_scales(self) -> bool:
        """Whether the readout is integrated out, so that `readout_conditional` is available."""
        return _is_marginal(self.median)

    def readout_conditional(self, position: ScaledPosition) -> Potential:
        """$U$ as a function of `position.readout_scales` alone, up to a constant.

        One eigendecomposition of $ΨΨᵀ$, or of $ΨᵀΨ$ where that is smaller, serves all values of them.

        Raises
        ------
        TypeError
            If the readout is not integrated out.
        """
        target = self.at(position)
        if not _is_marginal(target):
            raise TypeError(
                f"target must have its readout integrated out, as marginal does; got {type(target).__name__}"
            )
        here = self.scales(position)
        eigen = spectrum(target.embedding(position.network), target.y)

        def potential(u: dict[str, Float[Array, ""]]) -> Float[Array, ""]:
            there = here | {name: self.priors[name].at(value) for name, value in u.items()}
            ratio = there["readout_std"] / here["readout_std"] if "readout_std" in here else 1.0
            noise_std = there.get("noise_std", target.bnn.noise_std)
            least = least_noise(ratio**2 * jnp.sum(eigen.values))  # as in the target's potential
            return eigen.potential(ratio, jnp.sqrt(jnp.maximum(noise_std**2, least)))

        return potential

    @jitted
    def to_parameters(self, position: ScaledPosition, rng_key: Key[Array, ""] | None = None) -> Parameters:
        """$θ$ of the network at the scales of the position, which is ``at(position).bnn``."""
        return self.at(position).to_parameters(position.network, rng_key)

    def output(self, x: NewInputs) -> Function:
        """$f_θ(x)$, $(m, d_out)$, as a function of `(position, rng_key=None)`."""
        return self._at(self.median.output(x))

    def predictive_mean(self, x: NewInputs) -> Function:
        """$E[f(x) | θ^≤L, s, D]$, $(m, d_out)$, as a function of `(position, rng_key=None)`."""
        return self._at(self.median.predictive_mean(x))

    def predictive_covariance(self, x: NewInputs) -> Function:
        """$Cov[f_j(x) | θ^≤L, s, D]$, $(m, m)$, as a function of `(position, rng_key=None)`."""
        return self._at(self.median.predictive_covariance(x))

    def predictive_variance(self, x: NewInputs) -> Function:
        """$Var[f_j(x) | θ^≤L, s, D]$, $(m,)$, as a function of `(position, rng_key=None)`."""
        return self._at(self.median.predictive_variance(x))

    def predictive_moments(self, x: NewInputs) -> Function:
        """Mean $(m, d_out)$ and variance $(m,)$ of $y*$ given $θ^≤L$, $s$ and $D$, as `predictive_mean`."""
        return self._at(self.median.predictive_moments(x))

    @jitted
    def log_likelihood(self, position: ScaledPosition, rng_key: Key[Array, ""] | None = None) -> Array:
        """$log p(y_i | θ, s)$, $(n,)$, of the network at the scales of the position, for ArviZ."""
        return self.at(position).log_likelihood(position.network, rng_key)

    def predictive_draw(self, x: NewInputs) -> Function:
        """$y* = f_θ(x) + σ ε$, $(m, d_out)$, as a function of `(position, rng_key)`."""
        return self._at(self.median.predictive_draw(x))

    def predictive_probabilities(self, x: NewInputs) -> Function:
        """Probabilities of a classifier, $(m, d_out)$, as a function of `(position, rng_key=None)`."""
        return self._at(self.median.predictive_probabilities(x))

    def _at(self, of_median: asked) -> Function:
        """What is asked of the target at the medians, asked of the one at the scales of a position."""
        _, inputs = of_median.of
        return asked(_answer, (self, inputs, Static(of_median.question)))

    def limiting_scales(self) -> Gaussian:
        """Gaussian approximation, about its mode, to the posterior of the coordinates $u$ at infinite width.

        The mode maximises the evidence of the network's Gaussian process times the prior of the scales, on at
        most 512 observations, evenly spaced. The covariance is the inverse of the curvature on at most 256,
        scaled to all observations, and in no direction wider than the prior. Both are found in float64.

        Returns
        -------
        limit
            A `widebnn.samplers.Gaussian` whose mean is ``{"scales": ..., "readout_scales": ...}``, as in a
            `ScaledPosition`.

        Raises
        ------
        TypeError, ValueError
            If the likelihood is not Gaussian, or the network has no known limit; see
            `widebnn.nngp.nngp_kernel`.
        numpy.linalg.LinAlgError
            If the kernel is singular even in float64.
        """
        import scipy.optimize

        def minimised(evidence: Evidence, start: np.ndarray, root: np.ndarray) -> np.ndarray:
            def loss(v: np.ndarray) -> tuple[float, np.ndarray]:
                u = start + root @ v
                value, gradient = evidence(u)
                return value + float(u @ u) / 2, root.T @ (gradient + u)

            found = scipy.optimize.minimize(loss, np.zeros(len(start)), jac=True, method="L-BFGS-B")
            return start + root @ found.x

        evidence, num_data, prior = self._evidence(FIRST_ROWS), len(self.median.x), np.eye(len(self.priors))
        mode = minimised(evidence, np.zeros(len(prior)), prior)
        slopes = [(evidence(mode + h)[1] - evidence(mode - h)[1]) / 2 for h in CURVATURE_STEP * prior]
        curvature = prior + np.array(slopes) / CURVATURE_STEP * num_data / len(evidence.x)
        values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
        root = vectors / np.sqrt(np.maximum(values, 1.0))
        if num_data > FIRST_ROWS:  # from there it is a few steps, in coordinates of about one deviation
            mode = minimised(self._evidence(MAX_ROWS), mode, root)
        dtype = jax.tree.leaves(self.template)[0].dtype
        factor = np.linalg.cholesky(root @ root.T)
        return Gaussian(self._unflatten(np.asarray(mode, dtype)), jnp.asarray(factor, dtype))

    def _evidence(self, max_rows: int | None = None) -> Evidence:
        """Minus the log evidence of the limit, on so many rows, evenly spaced; on all unless given."""
        if isinstance(self.median, NonGaussian):
            raise TypeError("make must return a target with Gaussian noise, whose evidence is known")
        num_data = len(self.median.x)
        rows = np.linspace(0, num_data - 1, min(num_data, max_rows or num_data)).astype(int)
        x, y = (np.asarray(a)[rows] for a in (self.median.x, self.median.y))
        least_noise = ROUNDING * float(jnp.finfo(self.median.x.dtype).eps)
        return Evidence(Partial(_network_at, self), x, y, least_noise)

    def _unflatten(self, u: Any) -> dict[str, Any]:
        """The coordinates of all scales from a vector, in the order of their names."""
        template = self.template
        parts = {"scales": template.scales, "readout_scales": template.readout_scales}
        return jax.tree.structure(parts).unflatten([*jnp.asarray(u)])

    @jitted
    def draw_start(self, rng_key: Key[Array, ""], limit: Gaussian | None = None) -> ScaledPosition:
        """A position to start from: the network from its prior, the scales from the limit.

        Parameters
        ----------
        rng_key
            Key of the draw.
        limit
            What `limiting_scales` returned; without it, the scales start near their medians.
        """
        network_key, scales_key = jax.random.split(rng_key)
        start = normal_like(network_key, self.template)
        if limit is not None:
            return start._replace(**limit.draw(scales_key))
        near = jax.tree.map(lambda u: SPREAD * u, (start.scales, start.readout_scales))
        return ScaledPosition(start.network, *near)


def _network_at(target: Scaled, u: Array) -> Any:
    return target.at(ScaledPosition(None, **target._unflatten(u))).bnn


def _answer(target: Scaled, inputs: Array, question: Static, position: ScaledPosition, rng_key: Any) -> Any:
    return question.value(target.at(position), inputs, position.network, rng_key)


def _scale(target: Scaled, name: Static, position: ScaledPosition, rng_key: Any) -> Float[Array, ""]:
    return target.scales(position)[name.value]


def scaled(make: Callable[..., BNNTarget | NonGaussian], **priors: LogNormal) -> Scaled:
    """A network's posterior together with that of its scales.

    Two names have a meaning. "noise_std" is $σ$. "readout_std" multiplies $Ψ$, the weights and the bias of
    the readout alike. Given the layers below, the exact conditional of these two costs one
    eigendecomposition; `widebnn.samplers.readout_scales` uses it.

    `make` builds the network anew::

        def make(noise_std, readout_std, weight_std):
            rngs = nnx.Rngs(0)
            features = wb.models.FCN(d_in, 128, weight_std=weight_std, rngs=rngs)
            readout = {"weight_std": readout_std, "bias_std": 0.1 * readout_std}
            bnn = wb.BNN(features, 1, noise_std, **readout)
            return wb.targets.marginal(bnn, x, y)

    Parameters
    ----------
    make
        Function from the scales, by keyword, to a target; the scales are traced. Data that it closes over are
        constants of its programs; those of a ``jax.tree_util.Partial(make, x, y)`` are arguments, so that
        other data of the same shapes are no new program.
    priors
        By name, the `LogNormal` prior of each scale.

    Raises
    ------
    TypeError
        If `make` does not return a network's target, or a prior is not a `LogNormal`.
    ValueError
        If there is no prior, a median or spread is not positive, $σ$ of the target is not `noise_std`, or $Ψ$
        is not proportional to `readout_std`.
    """
    if not priors:
        raise ValueError(
            "priors must hold at least one scale, such as noise_std=LogNormal(0.3, 1.0); got none"
        )
    for name, prior in priors.items():
        if not isinstance(prior, LogNormal):
            raise TypeError(f"{name} must be a LogNormal(median, spread); got {prior!r}")
        positive(**{f"{name}.median": prior.median})
        positive(**{f"{name}.spread": prior.spread})
    target = Scaled(as_pytree(make), dict(priors))
    if not isinstance(median := target.median, BNNTarget | NonGaussian):
        raise TypeError(f"make must return a target of a network's posterior; got {type(median).__name__}")
    _check_readout_scales(target)
    return target


def _check_readout_scales(target: Scaled) -> None:
    medians = {name: prior.median for name, prior in target.priors.items()}
    named = [name for name in READOUT_SCALES if name in medians]
    if not named:
        return
    twice = target.make(**medians | {name: 2 * medians[name] for name in named})
    if "noise_std" in named:
        for made, wanted in ((target.median, medians["noise_std"]), (twice, 2 * medians["noise_std"])):
            if not math.isclose(found := float(made.bnn.noise_std), wanted, rel_tol=1e-6):
                raise ValueError(
                    f"noise_std must be σ of what make returns; given {wanted} it has σ = {found}"
                )
    if not _is_marginal(median := target.median) or not _is_marginal(twice):
        return
    is_same = _multiplies(2.0 if "readout_std" in named else 1.0, median, twice)
    if is_known_to_be(0, is_same):
        raise ValueError(
            "readout_std must multiply Ψ, and noise_std leave it alone: pass it as weight_std of the BNN and "
            "a multiple of it as bias_std; the embedding changed otherwise"
        )


@jax.jit
def _multiplies(factor: Number, target: NetworkTarget, other: NetworkTarget) -> Array:
    """Whether the embedding of the other is so many times this one's, at a draw from the prior."""
    network = normal_like(jax.random.key(0), target.template)
    one, two = target.embedding(network), other.embedding(network)
    if one.shape != two.shape:
        return jnp.zeros((), bool)
    return jnp.allclose(two, factor * one, rtol=1e-4, atol=1e-6)


def _is_marginal(target: Target) -> TypeGuard[NetworkTarget]:
    return isinstance(target.base if isinstance(target, Reduced) else target, Marginal)
