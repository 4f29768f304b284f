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
from flax import nnx
from flax.traverse_util import flatten_dict, unflatten_dict
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Float, Key

from widebnn._arrays import NewInputs, Tabular
from widebnn._check import Number, positive_each
from widebnn._compile import jitted
from widebnn.models import BNN, Parameters
from widebnn.models._affine import Affine
from widebnn.models.bnn import scale_of
from widebnn.samplers._base import Potential
from widebnn.samplers._preconditioned import Gaussian
from widebnn.targets._base import Target
from widebnn.targets._likelihoods import StudentT
from widebnn.targets._limit import Evidence
from widebnn.targets._marginal import Marginal
from widebnn.targets._network import BNNTarget, NetworkTarget
from widebnn.targets._non_gaussian import NonGaussian
from widebnn.targets._readout import ROUNDING, least_noise
from widebnn.targets._rotated import Reduced, Rotated, layer_scale
from widebnn.targets._spectrum import spectrum
from widebnn.tree import Position, normal_like

READOUT_SCALES = ("noise_std", "readout_std")
"""The scales whose conditional is exact where the readout is integrated out."""

MULTIPLIED = {"weight_std": "kernel", "bias_std": "bias"}
"""What the scales of a layer multiply."""

FIRST_ROWS, MAX_ROWS = 256, 512
"""Observations whose evidence in the limit finds the scales, and then those that make them precise."""

REACH = 3.0
"""Largest |u|: a scale stays within m exp(±3τ), so that noiseless data do not drive σ to 0."""

SPREAD = 0.3
"""Standard deviation of the scales' coordinates at the start, where no limit is known."""

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


class ScaledPosition(NamedTuple):
    """A position of the network's target, and the coordinates $u$ of the scales.

    Attributes
    ----------
    network
        Position of the target at these scales.
    scales
        A dict of $u$ of each scale below the readout.
    readout_scales
        A dict of $u$ of "noise_std" and "readout_std".
    """

    network: Position
    scales: dict[str, Any]
    readout_scales: dict[str, Any]


class Scaled(Target):
    """The posterior of a network and of its scales; see `scaled`.

    $U(u, φ) = U_s(φ) + c_s$: the potential of the target at the scales $s(u)$, plus its
    `NetworkTarget.log_normaliser`.

    Attributes
    ----------
    base
        The target at scales that are known.
    priors
        A dict of the priors of scales that are not.
    """

    base: Any  # BNNTarget | NonGaussian
    priors: Mapping[str, LogNormal]

    @property
    def template(self) -> ScaledPosition:
        network = self.base.template
        dtype = jax.tree.leaves(network)[0].dtype
        return ScaledPosition(network, **_coordinates(self.priors, dtype))

    @property
    def num_observations(self) -> int | None:
        return self.base.num_observations

    def scales(self, position: ScaledPosition) -> dict[str, Float[Array, "..."]]:
        """A dict of the scales at a position."""
        return _scales(self.priors, position.scales | position.readout_scales)

    def at(self, position: ScaledPosition) -> BNNTarget | NonGaussian:
        """The network's target at the scales of a position; `position.network` is a position of it."""
        return _at_scales(self.base, self.scales(position))

    @jitted
    def potential(self, position: ScaledPosition) -> Float[Array, ""]:
        target = self.at(position)
        return target.potential(position.network) + target.log_normaliser()

    @property
    def has_exact_scales(self) -> bool:
        """Whether the readout is integrated out, so that `readout_conditional` is available."""
        return isinstance(self.base.base if isinstance(self.base, Reduced) else self.base, Marginal)

    def readout_conditional(self, position: ScaledPosition) -> Potential:
        """$U$ as a function of `position.readout_scales` alone, up to a constant.

        One eigendecomposition of $ΨΨᵀ$, or of $ΨᵀΨ$ where that is smaller, serves all values of them.
        """
        target = self.at(position)
        if not self.has_exact_scales or not isinstance(target, NetworkTarget):
            raise TypeError(
                f"target must have its readout integrated out, as marginal does; got {type(target).__name__}"
            )
        here = self.scales(position)
        psi, y, noise = target.divided(target.embedding(position.network))
        eigen = spectrum(psi, y)

        def potential(u: dict[str, Float[Array, ""]]) -> Float[Array, ""]:
            there = here | {name: self.priors[name].at(value) for name, value in u.items()}
            ratio = there["readout_std"] / here["readout_std"] if "readout_std" in here else 1.0
            # in units of what rows are divided by, where each has a σ of its own
            unit = here["noise_std"] if "noise_std" in here and target._is_per_row else 1.0
            variance = (there["noise_std"] / unit) ** 2 if "noise_std" in there else noise
            least = least_noise(ratio**2 * jnp.sum(eigen.values))  # as in the target's potential
            return eigen.potential(ratio, jnp.sqrt(jnp.maximum(variance, least)))

        return potential

    @property
    def multiplied(self) -> dict[str, list[tuple]]:
        """A dict from scales to the paths of the weights that they multiply, for `widebnn.samplers.rescaled`.

        They are kernels and biases of `widebnn.models.Dense` and `widebnn.models.Conv`. A scale that does
        anything else is left out.
        """
        features, names = self.base.bnn.features, self.template.scales
        if features.graph is None or not isinstance(self.base, NetworkTarget | NonGaussian):
            return {}
        found: dict[str, list[tuple]] = {}
        for path, layer in nnx.iter_modules(features.module):
            for scale, weights in MULTIPLIED.items():
                name = scale_of((*path, scale), names)
                if name and isinstance(layer, Affine) and getattr(layer, weights) is not None:
                    found.setdefault(name, []).append((*path, weights))
        everywhere = [scale_of(path, names) for path, _ in jax.tree.leaves_with_path(features)]
        return {name: paths for name, paths in found.items() if len(paths) == everywhere.count(name)}

    def weights(self, position: ScaledPosition, name: str) -> list[Array]:
        """Those that a scale multiplies."""
        inner: Any = flatten_dict(_inner(position.network))
        return [inner[path] for path in self.multiplied[name]]

    def with_weights(
        self, position: ScaledPosition, name: str, weights: list[Array], u: Array
    ) -> ScaledPosition:
        """The position with another coordinate of a scale, and other weights that it multiplies."""
        inner: Any = flatten_dict(_inner(position.network))
        inner |= zip(self.multiplied[name], weights, strict=True)
        network: Any = unflatten_dict(inner)
        if isinstance(position.network, Parameters):
            network = position.network._replace(inner=network)
        return position._replace(network=network, scales=position.scales | {name: u})

    @jitted
    def to_parameters(self, position: ScaledPosition, rng_key: Key[Array, ""] | None = None) -> Parameters:
        """$θ$ of the network at the scales of the position, which is ``at(position).bnn``."""
        return self.at(position).to_parameters(position.network, rng_key)

    def given_scales(self, position: ScaledPosition) -> tuple[BNNTarget | NonGaussian, Position]:
        return self.at(position), position.network

    def prepared(self, x: NewInputs | Tabular) -> Any:
        return self.base.prepared(x)

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


def _coordinates(priors: Mapping[str, LogNormal], dtype: Any) -> dict[str, dict[str, jax.ShapeDtypeStruct]]:
    """Shapes of the coordinates of all scales, as in a `ScaledPosition`."""
    shapes = {name: jax.ShapeDtypeStruct(prior.shape, dtype) for name, prior in priors.items()}
    parts = {"scales": {}, "readout_scales": {}}
    for name, shape in shapes.items():
        parts["readout_scales" if name in READOUT_SCALES else "scales"][name] = shape
    return parts


def _unflatten(priors: Mapping[str, LogNormal], u: Array) -> dict[str, dict[str, Array]]:
    """The coordinates of all scales from a vector, in the order of `ravel_pytree`."""
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, u.dtype), _coordinates(priors, u.dtype))
    return ravel_pytree(zeros)[1](u)


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
    parts = _unflatten(priors, u)
    return bnn.at_scales(**_scales(priors, parts["scales"] | parts["readout_scales"]))


def _inner(network: Position) -> Any:
    return network.inner if isinstance(network, Parameters) else network


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
    multiplies $Ψ$, weights and bias of the readout alike. Given the layers below, the exact conditional of
    these two costs one eigendecomposition; `widebnn.samplers.readout_scales` uses it. Every other name is the
    end of a path in the layers below: "weight_std" and "bias_std" are $σ_W$ and $σ_b$ of all of them,
    ``**{"layers.0.weight_std": prior}`` is of the first one alone. A scale of a layer of your own is a number
    that the module holds as ``nnx.data``, by the name of its attribute.

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
