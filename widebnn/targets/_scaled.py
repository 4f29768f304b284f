"""Scales that the data choose: σ, the readout's scale and those of the layers are part of the position.

log s = log m + τ u with u ~ N(0, I) for every scale s: again a potential over N(0, I).
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Float, Key

from widebnn._arrays import NewInputs, Tabular
from widebnn._check import Number, positive_each
from widebnn._compile import jitted
from widebnn.models import BNN, Parameters
from widebnn.models.bnn import scale_of
from widebnn.targets._base import Target
from widebnn.targets._likelihoods import StudentT
from widebnn.targets._limit import Evidence
from widebnn.targets._network import BNNTarget
from widebnn.targets._non_gaussian import NonGaussian
from widebnn.targets._readout import ROUNDING
from widebnn.targets._rotated import Rotated, layer_scale
from widebnn.tree import Position

READOUT_SCALES = ("noise_std", "readout_std")
"""The scales that are not of the layers below the readout."""

FIRST_ROWS, MAX_ROWS = 256, 512
"""Observations whose evidence in the limit finds the scales, and then those that make them precise."""

REACH = 3.0
"""Largest |u|: a scale stays within m exp(±3τ), so that noiseless data do not drive σ to 0."""

CURVATURE_STEP = 0.1
"""Half the difference of two u whose slopes give the evidence's curvature; a smaller one meets rounding."""


Scale = Number | Float[Array | np.ndarray, " d"]
"""A scale, or one for each of several inputs."""


class LogNormal(NamedTuple):
    """The prior of a scale: $log s ~ N(log m, τ²)$, clipped at three $τ$ to either side.

    Attributes
    ----------
    median
        $m > 0$; an array for a scale that is one, such as $σ_W$ of the first layer with one number per input,
        or $σ$ with one per output.
    spread
        $τ > 0$, a number or an array too: two thirds of the prior lie between $m exp(−τ)$ and $m exp(τ)$.
    """

    median: Scale
    spread: Scale

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the scale."""
        return np.broadcast_shapes(np.shape(self.median), np.shape(self.spread))

    def at(self, u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """$s = m exp(τu)$; beyond $±3$, where one draw in 370 falls, $u$ counts as $±3$."""
        median, spread = (jnp.asarray(part, u.dtype) for part in self)
        return median * jnp.exp(spread * jnp.clip(u, -REACH, REACH))


class Gaussian(NamedTuple):
    """$N(m, LLᵀ)$ over the coordinates $u$ of scales.

    Attributes
    ----------
    mean
        $m$, a dict of the coordinates of each scale.
    factor
        $L$, lower triangular, in the order of ``jax.flatten_util.ravel_pytree(mean)``.
    """

    mean: dict[str, Any]
    factor: Float[Array, "k k"]


class ScaledPosition(NamedTuple):
    """A position of the network's target, and the coordinates of the scales.

    Attributes
    ----------
    network
        Position of the target at these scales.
    scales
        A dict of the coordinates of each scale.
    """

    network: Position
    scales: dict[str, Any]


class Scaled(Target):
    """The posterior of a network and of its scales; see `scaled`.

    $U(u, φ) = U_s(φ) + c_s$: the potential of the target at the scales $s(u)$, plus its
    `NetworkTarget.log_normaliser`. In coordinates $v$ of the scales, $u = m + Lv$, it is
    $U(u, φ) + ½‖u‖² − ½‖v‖² − log det L$. Posterior and evidence are the same whatever $m$ and $L$ are.

    Attributes
    ----------
    base
        The target at scales that are known.
    priors
        A dict of the priors of scales that are not.
    reference
        $N(m, LLᵀ)$ in $u$, which is $N(0, I)$ in the coordinates of a position; without it these are $u$.
    """

    base: Any  # BNNTarget | NonGaussian
    priors: Mapping[str, LogNormal]
    reference: Gaussian | None = None

    @property
    def template(self) -> ScaledPosition:
        network = self.base.template
        dtype = jax.tree.leaves(network)[0].dtype
        shapes = {name: jax.ShapeDtypeStruct(prior.shape, dtype) for name, prior in self.priors.items()}
        return ScaledPosition(network, shapes)

    @property
    def num_observations(self) -> int | None:
        return self.base.num_observations

    def scales(self, position: ScaledPosition) -> dict[str, Float[Array, "..."]]:
        """A dict of the scales at a position."""
        return _scales(self.priors, self._coordinates(position))

    def at(self, position: ScaledPosition) -> BNNTarget | NonGaussian:
        """The network's target at the scales of a position; `position.network` is a position of it."""
        return _at_scales(self.base, self.scales(position))

    @jitted
    def potential(self, position: ScaledPosition) -> Float[Array, ""]:
        target = self.at(position)
        value = target.potential(position.network) + target.log_normaliser()
        if self.reference is None:
            return value
        u, v = (ravel_pytree(c)[0] for c in (self._coordinates(position), position.scales))
        return value + (u @ u - v @ v) / 2 - jnp.sum(jnp.log(jnp.diag(self.reference.factor)))

    def _coordinates(self, position: ScaledPosition) -> dict[str, Any]:
        """$u$."""
        if self.reference is None:
            return position.scales
        mean, unravel = ravel_pytree(self.reference.mean)
        return unravel(mean + self.reference.factor @ ravel_pytree(position.scales)[0])

    @jitted
    def to_parameters(self, position: ScaledPosition, rng_key: Key[Array, ""] | None = None) -> Parameters:
        """$θ$ of the network at the scales of the position, which is ``at(position).bnn``."""
        return self.at(position).to_parameters(position.network, rng_key)

    def given_scales(self, position: ScaledPosition) -> tuple[BNNTarget | NonGaussian, Position]:
        return self.at(position), position.network

    def prepared(self, x: NewInputs | Tabular) -> Any:
        return self.base.prepared(x)

    def about(self, reference: Gaussian) -> "Scaled":
        """The same posterior in coordinates in which a Gaussian of the scales is $N(0, I)$.

        A draw of the target's ``draw_prior`` then has its scales from that Gaussian. About the posterior in
        the limit of infinite width, where the scales of a wide network nearly are, samplers make long moves.

        Parameters
        ----------
        reference
            What `limiting_scales` returned, or any other Gaussian of $u$.
        """
        return replace(self, reference=reference)

    def limiting_scales(self) -> Gaussian:
        """Gaussian approximation, about its mode, to the posterior of the coordinates $u$ at infinite width.

        The mode maximises the evidence of the network's Gaussian process times the prior of the scales, on at
        most 512 observations, evenly spaced. The covariance is the inverse of the curvature on at most 256,
        scaled to all observations, and in no direction wider than the prior. Both are found in float64.

        Returns
        -------
        limit
            A Gaussian of the coordinates $u$, for `about`.

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

        evidence, num_data = self._evidence(FIRST_ROWS), len(self.base.x)
        prior = np.eye(sum(math.prod(scale.shape) for scale in self.priors.values()))
        mode = minimised(evidence, np.zeros(len(prior)), prior)
        slopes = [(evidence(mode + h)[1] - evidence(mode - h)[1]) / 2 for h in CURVATURE_STEP * prior]
        curvature = prior + np.array(slopes) / CURVATURE_STEP * num_data / len(evidence.x)
        values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
        root = vectors / np.sqrt(np.maximum(values, 1.0))
        if num_data > FIRST_ROWS:  # from there it is a few steps, in coordinates of about one deviation
            mode = minimised(self._evidence(MAX_ROWS), mode, root)
        dtype = jax.tree.leaves(self.template)[0].dtype
        factor = np.linalg.cholesky(root @ root.T)
        return Gaussian(_unflatten(self.priors, jnp.asarray(mode, dtype)), jnp.asarray(factor, dtype))

    def _evidence(self, max_rows: int | None = None) -> Evidence:
        """Minus the log evidence of the limit, on so many rows, evenly spaced; on all unless given."""
        if isinstance(self.base, NonGaussian):
            raise TypeError("target must have Gaussian noise, whose evidence is known")
        scale, held = self.priors.get("noise_std"), jnp.shape(self.base.bnn.noise_std)
        if (scale and scale.shape) or held[1:] not in ((), (1,)):
            raise ValueError(
                "target must have one noise_std for all of y's columns where scales have a limit"
            )
        num_data = len(self.base.x)
        rows = np.linspace(0, num_data - 1, min(num_data, max_rows or num_data)).astype(int)
        x, y = (np.asarray(a)[rows] for a in (self.base.x, self.base.y))
        least_noise = ROUNDING * float(jnp.finfo(self.base.x.dtype).eps)
        bnn, units = self.base.bnn, None
        if jnp.ndim(bnn.noise_std):
            units, bnn = np.asarray(bnn.noise_std)[rows, 0], bnn.at_scales(noise_std=1.0)
        return Evidence(Partial(_network_at, bnn, self.priors), x, y, least_noise, units)


def _unflatten(priors: Mapping[str, LogNormal], u: Array) -> dict[str, Array]:
    """The coordinates of all scales from a vector, in the order of `ravel_pytree`."""
    return ravel_pytree({name: jnp.zeros(prior.shape, u.dtype) for name, prior in priors.items()})[1](u)


def _scales(priors: Mapping[str, LogNormal], u: Mapping[str, Array]) -> dict[str, Array]:
    return {name: prior.at(u[name]) for name, prior in priors.items()}


def _at_scales(target: Any, scales: Mapping[str, Array]) -> Any:
    """The target with all networks in it, and a likelihood with a scale of its own, at these scales."""

    def changed(node):
        is_per_row = isinstance(node, BNN) and jnp.shape(node.noise_std)[1:] == (1,)
        if is_per_row and "noise_std" in scales:
            return node.at_scales(**{**scales, "noise_std": scales["noise_std"] * node.noise_std})
        if isinstance(node, BNN):
            return node.at_scales(**scales)
        if isinstance(node, StudentT) and "noise_std" in scales:
            return replace(node, scale=scales["noise_std"])
        return node

    return jax.tree.map(changed, target, is_leaf=lambda node: isinstance(node, BNN | StudentT))


def _network_at(bnn: BNN, priors: Mapping[str, LogNormal], u: Array, x: Any = None) -> BNN:
    return bnn.at_scales(**_scales(priors, _unflatten(priors, u)))


def scaled(target: BNNTarget | NonGaussian, **priors: LogNormal) -> Scaled:
    """A network's posterior together with that of its scales.

    The scales that have a prior are unknown, all others stay as `target` has them::

        bnn = wb.BNN(wb.models.FCN(d_in, 128, rngs=nnx.Rngs(0)), 1, noise_std=0.1)
        target = wb.targets.marginal(bnn, x, y)
        posterior = wb.targets.scaled(
            target,
            noise_std=wb.targets.LogNormal(0.3, 1.0),
            readout_std=wb.targets.LogNormal(1.0, 0.7),
            weight_std=wb.targets.LogNormal(1.4, 0.7),
        )

    "noise_std" is $σ$; where the network has one per observation, the factor of all of them. "readout_std"
    multiplies $Ψ$, weights and bias of the readout alike. Every other name is the end of a path in the layers
    below: "weight_std" and "bias_std" are $σ_W$ and $σ_b$ of all of them, while
    ``**{"layers.0.weight_std": prior}`` is of the first one alone. A scale of a layer of your own is a number
    that the module holds as ``nnx.data``, by the name of its attribute.

    `widebnn.sample` and `widebnn.smc` move weights and scales together, where `widebnn.automatic.auto` has
    put the scales in coordinates in which they start close to where they end.

    Parameters
    ----------
    target
        Posterior of a network, in any parametrisation of `widebnn.targets`.
    priors
        The `LogNormal` prior of each scale, by keyword.
    """
    if not isinstance(target, BNNTarget | NonGaussian):
        raise TypeError(f"target must be a target of a network's posterior; got {type(target).__name__}")
    if not priors:
        raise ValueError(
            "priors must hold at least one scale, such as noise_std=LogNormal(0.3, 1.0); got none"
        )
    for name, prior in priors.items():
        if not isinstance(prior, LogNormal):
            raise TypeError(f"{name} must be a LogNormal(median, spread); got {prior!r}")
    checked = {
        name: prior._replace(
            median=positive_each(None, **{f"{name}.median": prior.median}),
            spread=positive_each(None, **{f"{name}.spread": prior.spread}),
        )
        for name, prior in priors.items()
    }
    _check_names(target, checked)
    made = Scaled(target, checked)
    if any(prior.shape for prior in checked.values()):
        jax.eval_shape(made.potential, made.template)  # layers say which shapes they take
    return made


def _check_names(target: BNNTarget | NonGaussian, priors: Mapping[str, LogNormal]) -> None:
    if (
        "noise_std" in priors
        and isinstance(target, NonGaussian)
        and not isinstance(target.likelihood, StudentT)
    ):
        raise ValueError("noise_std must have no prior, as it is not part of the likelihood")
    paths = [path for path, _ in jax.tree.leaves_with_path(target.bnn.features)]
    found = {*READOUT_SCALES, *(scale_of(path, priors) for path in paths)}
    if unknown := sorted(priors.keys() - found):
        known = sorted({*READOUT_SCALES, *(str(getattr(path[-1], "key", "")) for path in paths)} - {""})
        raise ValueError(
            f"priors must be of scales of the network, {', '.join(known)}; got {', '.join(unknown)}"
        )
    for name, prior in priors.items():
        is_per_output = name == "noise_std" and prior.shape == (target.bnn.out_features,) != (1,)
        if prior.shape and not (is_per_output and isinstance(target, BNNTarget)):
            _check_vector(target, name, [path for path in paths if scale_of(path, priors) == name])


def _check_vector(target: BNNTarget | NonGaussian, name: str, paths: list[tuple]) -> None:
    # A scale that is an array is that of one layer, whose inputs are as they were.
    if name in READOUT_SCALES:
        outputs = f", or one per output, {target.bnn.out_features}" if name == "noise_std" else ""
        raise ValueError(f"{name}.median must be a number{outputs}; got an array of another shape")
    if len(paths) != 1:
        raise ValueError(
            f"{name}.median must be a number, as {len(paths)} layers have that scale: name one of them, such "
            "as 'layers.0.weight_std'"
        )
    weights = getattr(target, "weights", target)
    if isinstance(weights, Rotated) and scale_of(paths[0], [layer_scale(weights.kernel)]):
        raise ValueError(
            f"{name}.median must be a number where inputs are rotated; for one per input let the network "
            "have an array of them before targets.whitened, or take targets.marginal"
        )
