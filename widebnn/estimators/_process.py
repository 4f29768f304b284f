"""The regressor at infinite width: a Gaussian process whose scales, one per column too, the evidence chooses.

The scale of column j is log σ_W,j = log σ_W + τ z_j with z ~ N(0, I). Laplace's evidence
chooses τ, and τ = 0, one scale for all columns, is among the candidates. JAX computes the kernel and pulls a
gradient back through it, whatever the number of scales; LAPACK factorises, all in float64.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.optimize
from jaxtyping import Float64

from widebnn import targets
from widebnn.estimators._network import Architecture
from widebnn.estimators._noise import REACH
from widebnn.models import BNN
from widebnn.targets import LogNormal
from widebnn.targets._limit import Conditioned, Evidence, Vector, on_one_thread
from widebnn.targets._readout import ROUNDING

__all__ = ["Process"]

SPREADS = 0.5, 1.0
"""τ, besides 0. With a larger one, thousands of columns fit noise, and Laplace's evidence does not see it."""
NOISE_SPREAD = 1.0
"""Prior deviation of log σ(x) over inputs of variance 1, where σ depends on them."""
OVERALL_SPREAD = 1.5
"""Of log σ_W beside z: where few columns matter, the others pull it down."""
FIRST_ROWS, MAX_ROWS = 512, 1_024
"""Rows whose evidence chooses τ, and then those that make the scales precise."""
CURVATURE_WORK, MIN_CURVATURE_ROWS = 1e9, 64
"""Scales times rows cubed that curvature may take, and its least number of rows."""
MAX_CROSS = 500
"""Scales whose curvature is a full matrix; of more, only the diagonal is used."""
LEAST = ROUNDING * np.finfo(np.float64).eps
"""Least σ² in units of tr K."""
LEAST_GAIN = 5.0
"""Nats of evidence that a scale per column takes: "very strong" for Kass & Raftery (1995)."""
NUM_DRAWS, MAX_DRAWN_ROWS = 8, 1_500
"""Draws of the scales over which predictions are averaged where columns have scales, up to so many rows, and
not where columns outnumber rows that are too many for moves, which leaves no Gaussian."""
MAX_MOVED_ROWS, NUM_MOVES, NUM_KICKS = 512, 2, 3
"""Rows up to which these draws are of the posterior itself, by so many moves from its Gaussian."""
PRECISION = 1e-6
"""Relative change of the loss, of some hundred nats, at which the most probable scales are found."""


class Setting(NamedTuple):
    """A function from coordinates u = (z, u of the scales, u of a) and inputs to a network.

    `groups` is the z of each input. log σ(x) = log σ + aᵀx, where there is an a, is that of `noise_spread`
    times its u.
    """

    bnn: BNN
    groups: np.ndarray
    priors: dict[str, LogNormal]
    weight_std: Any
    tau: float
    noise_spread: np.ndarray

    def __call__(self, u: Any, x: Any) -> BNN:
        scales, factors = self.scales(u)
        bnn = self.bnn.at_scales(**scales, **{"layers.0.weight_std": scales["weight_std"] * factors})
        if not len(self.noise_spread):
            return bnn
        log_std = jnp.clip(x @ self.coefficients(u), -REACH, REACH)
        return bnn.at_scales(noise_std=bnn.noise_std * jnp.exp(log_std)[:, None])

    def coefficients(self, u: Any) -> Any:
        """a, (d,), or (0,) where σ is one number."""
        return self.noise_spread * u[len(u) - len(self.noise_spread) :]

    def scales(self, u: Any) -> tuple[dict[str, Any], Any]:
        """The scales that are learned and `weight_std`, and the factors of the inputs' weights.

        The mean square of the factors is 1.
        """
        num_groups = len(u) - len(self.priors) - len(self.noise_spread)
        factors = jnp.exp(self.tau * u[:num_groups])[self.groups]
        size = jnp.sqrt(jnp.mean(factors**2))
        learned: dict[str, Any] = {
            name: prior.at(u[num_groups + i]) for i, (name, prior) in enumerate(self.priors.items())
        }
        return learned | {"weight_std": learned.get("weight_std", self.weight_std) * size}, factors / size


class Rows(NamedTuple):
    """Inputs (n, d), targets (n, k), and known deviations of noise (n,), or ones."""

    x: np.ndarray
    y: np.ndarray
    units: np.ndarray

    def spaced(self, most: int) -> "Rows":
        rows = np.linspace(0, len(self.x) - 1, min(len(self.x), most)).astype(int)
        return Rows(*(each[rows] for each in self))

    def evidence(self, setting: Setting) -> Evidence:
        return Evidence(setting, self.x, self.y, LEAST, self.units)


class Approximation(NamedTuple):
    """The Gaussian about the most probable u, and Laplace's log evidence up to a constant, on some rows."""

    setting: Setting
    u: Vector
    information: Float64[np.ndarray, "scale scale"]
    log_evidence: float

    @classmethod
    def of(cls, setting: Setting, rows: Rows, start: Vector) -> "Approximation":
        found = _most_probable(rows.evidence(setting), start)
        few = rows.spaced(int(max(MIN_CURVATURE_ROWS, (CURVATURE_WORK / len(found.x)) ** (1 / 3))))
        ratio = rows.y.size / len(few.x)  # Fisher's information of one output is that of any other
        root = np.sqrt(ratio) * few.evidence(setting).information_root(found.x)
        if len(root) > MAX_CROSS:
            values = np.sum(root**2, axis=1)
            information = np.diag(values)
        else:
            information = root @ root.T
            values = np.linalg.eigvalsh(information)
        log_det = np.log1p(np.maximum(values, 0)).sum()
        return cls(setting, found.x, information, -found.fun - log_det / 2)

    def root(self, ratio: float) -> Float64[np.ndarray, "scale scale"]:
        """Root of the covariance, given so many times the rows."""
        factor = np.linalg.cholesky(np.eye(len(self.u)) + ratio * self.information)
        return scipy.linalg.solve_triangular(factor, np.eye(len(self.u)), lower=True).T


@dataclass(frozen=True, eq=False)
class Process:
    """The process given all rows, in standardised units; several outputs share a kernel.

    Attributes
    ----------
    setting, mode, root
        A function from coordinates of scales to a kernel, the most probable ones, and a root of their
        covariance.
    gain
        Nats by which scales per column have the higher log evidence.
    evidence
        The rows.
    is_noise_known
        Whether rows came with deviations of their noise; predictions are then without it.
    """

    setting: Setting
    mode: Vector
    root: Float64[np.ndarray, "scale scale"]
    gain: float
    evidence: Evidence
    is_noise_known: bool

    @property
    def network(self) -> BNN:
        """At the most probable scales, with σ of each row where it varies."""
        bnn = _network(self.setting, self.mode, self.evidence.x)
        if not self.is_noise_known:
            return bnn
        return bnn.at_scales(noise_std=bnn.noise_std * jnp.asarray(self.evidence.units)[:, None])

    @classmethod
    def of(
        cls,
        network: Architecture,
        x: np.ndarray,
        y: np.ndarray,
        priors: dict[str, LogNormal],
        known: dict[str, float],
        groups: np.ndarray | None = None,
        noise: str = "constant",
        known_noise: np.ndarray | None = None,
    ) -> "Process":
        """The process whose scales suit the rows; inputs of a group share a scale, or all do."""
        index = np.zeros(x.shape[1], int) if groups is None else groups
        num_groups, num_data = int(index.max()) + 1, len(x)
        bnn = network.bnn(x.shape[1], **known)
        priors = dict(sorted(priors.items()))  # as a program sees a dict: the order of u
        noise_spread = np.full(x.shape[1] * (noise == "per input"), NOISE_SPREAD / math.sqrt(x.shape[1]))
        setting = Setting(bnn, index, priors, known.get("weight_std", 1.0), 0.0, noise_spread)
        rows = Rows(x, y, np.ones(num_data) if known_noise is None else known_noise)
        few = rows.spaced(FIRST_ROWS)
        start = np.zeros(num_groups + len(priors) + len(noise_spread))
        best = last = one = Approximation.of(setting, few, start)
        gain = math.nan
        for tau in SPREADS if num_groups > 1 and y.any() else ():
            overall = {"weight_std": priors["weight_std"]._replace(spread=OVERALL_SPREAD)}
            start = last.u.copy()
            start[:num_groups] *= last.setting.tau / tau
            last = Approximation.of(setting._replace(tau=tau, priors=priors | overall), few, start)
            gain = float(np.fmax(gain, last.log_evidence - one.log_evidence))
            if last.log_evidence > max(best.log_evidence, one.log_evidence + LEAST_GAIN):
                best = last
        setting, mode, root = best.setting, best.u, best.root(num_data / len(few.x))
        if num_data > FIRST_ROWS:
            mode = _most_probable(rows.spaced(MAX_ROWS).evidence(setting), mode).x
        return cls(setting, mode, root, gain, rows.evidence(setting), known_noise is not None)

    @functools.cached_property
    def members(self) -> list[tuple[Vector, Conditioned]]:
        """Coordinates, and the process given the rows: draws where columns have scales, else the mode."""
        return [(u, self.evidence.given_rows(u)) for u in self._draws()]

    @property
    def has_few_rows(self) -> bool:
        """Whether columns of scales of their own outnumber the rows, and there are draws of these scales."""
        num_groups = int(self.setting.groups.max()) + 1
        return bool(self.setting.tau) and len(self.evidence.x) < min(num_groups, MAX_MOVED_ROWS + 1)

    def _draws(self) -> list[Vector]:
        num_rows, num_groups = len(self.evidence.x), int(self.setting.groups.max()) + 1
        is_moved = num_rows <= MAX_MOVED_ROWS
        if not self.setting.tau or not (is_moved or num_groups <= num_rows <= MAX_DRAWN_ROWS):
            return [self.mode]
        random = np.random.default_rng(0)
        half = random.normal(size=(NUM_DRAWS // 2, len(self.mode)))
        starts = [*half, *-half]
        if is_moved:
            starts = [_moved(self._potential, v, random) for v in starts]
        return [self.mode + self.root @ v for v in starts]

    def _potential(self, v: Vector) -> tuple[float, Vector]:
        """Minus the log posterior of u = mode + root v relative to N(0, I) in v, and its gradient."""
        u = self.mode + self.root @ v
        value, gradient = self.evidence(u)
        return value + float(u @ u - v @ v) / 2, self.root.T @ (gradient + u) - v

    @property
    def log_evidence(self) -> float:
        """Laplace's approximation over the scales, given the factors of the columns, in nats."""
        mean, factor = self.gaussian(np.float64)
        u = np.array(jax.tree.leaves(mean))
        first, given = self.members[0]
        given = given if first is self.mode else self.evidence.given_rows(self.mode)
        given_scales = -given.loss - self.evidence.y.size / 2 * math.log(2 * math.pi)
        return given_scales - float(u @ u) / 2 + float(np.log(np.diag(factor)).sum())

    def gaussian(self, dtype: Any) -> targets.Gaussian:
        """That of the scales given the factors of the columns, as `targets.Scaled.limiting_scales` has it."""
        learned = self.setting.priors
        first = int(self.setting.groups.max()) + 1
        here = slice(first, first + len(learned))
        covariance = np.linalg.inv(np.linalg.inv(self.root @ self.root.T)[here, here])
        size = self.scales()[0].get("weight_std", 1.0)  # with that of the factors, which the prior has not
        u = dict(zip(learned, self.mode[here]))
        if "weight_std" in u:
            u["weight_std"] = math.log(size / learned["weight_std"].median) / learned["weight_std"].spread
        order = [list(learned).index(name) for name in sorted(u)]
        factor: Any = np.linalg.cholesky(covariance[np.ix_(order, order)]).astype(dtype)
        return targets.Gaussian({name: np.asarray(value, dtype) for name, value in u.items()}, factor)

    def scales(self, u: Vector | None = None) -> tuple[dict[str, float], np.ndarray]:
        """The scales, and the factors of the inputs' weights; the most probable ones unless given."""
        with jax.enable_x64(True):
            scales, factors = jax.device_get(_scales(self.setting, self.mode if u is None else u))
        return {name: float(scale) for name, scale in scales.items()}, np.asarray(factors, np.float64)

    def moments(self, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means (draw, m, k) and variances (draw, m) of observations."""
        parts = [self._moments(u, given, new) for u, given in self.members]
        mean, variance = (np.stack(each) for each in zip(*parts))
        return mean, variance

    def _moments(self, u: Vector, given: Conditioned, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        cross, own, noise = self.evidence.between(u, given.x, new)
        mean, less = given.given(cross)
        return mean, np.maximum(own - less, 0) + self._noise(given, noise)

    def fitted(self, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means (draw, m, k) and variances (draw, m) of f at some of the rows, and σ² (draw, m)."""
        parts = []
        for u, given in self.members:
            cross, own, noise = self.evidence.between(u, given.x, self.evidence.x[rows])
            mean, less = given.given(cross)
            if given.inner is not None:  # the rows are given by the kernel of inducing rows alone
                own = given._replace(inner=None).given(cross)[1]
            parts.append((mean, np.maximum(own - less, 0), self._noise(given, noise)))
        mean, variance, noise = (np.stack(each) for each in zip(*parts))
        return mean, variance, noise

    def _noise(self, given: Conditioned, noise: np.ndarray) -> np.ndarray:
        """σ² at new inputs; where only that of rows is known, so little that covariances have a factor."""
        return np.maximum(0 if self.is_noise_known else noise, given.least) * np.ones_like(noise)

    def covariances(self, new: np.ndarray) -> np.ndarray:
        """(draw, m, m), of observations."""
        return np.stack([self._jointly(u, given, new)[1] for u, given in self.members])

    def draws(self, new: np.ndarray, num_samples: int, random: np.random.RandomState) -> np.ndarray:
        """Observations (sample, m, 1), each jointly at all inputs."""
        found = []
        for k, (u, given) in enumerate(self.members[:num_samples]):
            mean, covariance = self._jointly(u, given, new)
            with on_one_thread():
                factor = np.linalg.cholesky(covariance)
                normal = random.normal(size=(len(range(k, num_samples, len(self.members))), len(mean)))
                found.append(mean + normal @ factor.T)
        return random.permutation(np.concatenate(found))[:, :, None]

    def _jointly(self, u: Vector, given: Conditioned, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means (m,) and covariance (m, m) of observations."""
        cross, *_ = self.evidence.between(u, given.x, new)
        prior, noise = self.evidence.within(u, new)
        mean, less = given.given(cross, jointly=True)
        covariance = prior - less
        diagonal = np.arange(len(new))
        own = np.maximum(covariance[diagonal, diagonal], 0)
        covariance[diagonal, diagonal] = own + self._noise(given, noise)
        return mean[:, 0], covariance


def _most_probable(evidence: Evidence, start: Vector) -> Any:
    """The least of minus log evidence plus ½‖u‖², by `scipy.optimize.minimize`."""

    def loss(u: Vector) -> tuple[float, Vector]:
        value, gradient = evidence(u)
        return value + float(u @ u) / 2, gradient + u

    return scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"ftol": PRECISION})


def _moved(
    potential: Callable[[Vector], tuple[float, Vector]], v: Vector, random: np.random.Generator
) -> Vector:
    """A draw by function-space HMC (Beskos et al. 2011), quarter turns from a draw of N(0, I).

    As `widebnn.samplers.function_space_hmc`, of a potential on the host.
    """
    value, gradient = potential(v)
    for _ in range(NUM_MOVES):
        m = random.normal(size=len(v))
        h = math.pi / 2 / NUM_KICKS * random.uniform(0.8, 1.2)
        there, momentum, value_there, slope = v, m, value, gradient
        for _ in range(NUM_KICKS):
            kicked = momentum - h / 2 * slope
            cos, sin = math.cos(h), math.sin(h)
            there, momentum = cos * there + sin * kicked, cos * kicked - sin * there
            value_there, slope = potential(there)
            momentum = momentum - h / 2 * slope
        change = value_there - value + float(there @ there + momentum @ momentum - v @ v - m @ m) / 2
        if random.uniform() < math.exp(-max(change, 0.0)):
            v, value, gradient = there, value_there, slope
    return v


@jax.jit
def _network(setting: Setting, u: Any, x: Any) -> BNN:
    return setting(u, x)


@jax.jit
def _scales(setting: Setting, u: Any) -> Any:
    return setting.scales(u)
