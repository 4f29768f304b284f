"""Other maps and another likelihood: effective samples per step (Hron et al. 2022, Figures 10 and 11)."""

from collections.abc import Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Float

from widebnn import data, samplers, targets
from widebnn._check import one_of, proper_fraction
from widebnn.diagnostics import random_projections, rhat
from widebnn.experiments.settings.chain_summaries import ess_per_step, finite, is_resolved
from widebnn.experiments.settings.fields import Noise, NumChains, Seed, Thin, Widths
from widebnn.experiments.settings.posterior import of_parameters
from widebnn.models import BNN, FCN
from widebnn.sampling import Collector, sample
from widebnn.study import Cost, Finding, Measure, Results, Row, Rows, experiment
from widebnn.study.configuration import Configuration, Count, Fraction, Positives, Several
from widebnn.tree import inner_product

__all__ = [
    "SOFTMAX_MAPS",
    "OverMaps",
    "OverReg",
    "TunedChains",
    "diabetes_patients",
    "effective_samples",
    "over_maps",
    "over_reg",
]

SOFTMAX_MAPS: Mapping[str, Mapping[str, Any]] = {
    "identity": {"map": "identity"},
    "Gaussian, λ = σ²": {"map": "gaussian"},
    "Gaussian, λ = k": {"map": "gaussian", "reg": 2.0},
    "Laplace": {"map": "laplace"},
}
"""Options of `widebnn.targets.categorical` for two classes, by name."""
NUM_NEW = 20
"""Images that are predicted."""
NUM_PIXELS = 64
BODY_MASS, TRIGLYCERIDES = 2, 8


class TunedChains(Configuration):
    """How chains are run: all by Langevin, its step size tuned to one mean acceptance rate."""

    num_chains: NumChains = 8
    num_steps: Annotated[Count, "Steps of each chain that count."] = 20_000
    burn_in: Annotated[Count, "Steps before those, during which the step size is tuned."] = 5_000
    thin: Thin = 10
    target_acceptance: Annotated[float, proper_fraction, "What the step size is tuned to."] = 0.98
    damping: Annotated[Fraction, "γ of the Langevin sampler."] = 0.1
    num_projections: Annotated[Count, "Random directions in the space of θ."] = 100
    noise_std: Noise = 0.1
    seed: Seed = 0

    def check(self):
        """`num_steps` is 2 · `thin` or more."""
        if self.num_steps < 2 * self.thin:
            raise ValueError(f"num_steps must be at least 2 · thin = {2 * self.thin}; got {self.num_steps}")


class OverReg(TunedChains):
    """T and R over λ, on two measurements (body mass, triglycerides) of the diabetes data."""

    num_train: Annotated[Count, "Patients."] = 8
    width: Annotated[Count, "Units of the one hidden layer."] = 8
    regs: Annotated[Positives, "λ."] = (1e-2, 1e-1, 1.0, 10.0, 100.0)
    num_prior: Annotated[Count, "Prior draws at which the sign of det ∂R/∂φ is computed."] = 2_000


class OverMaps(TunedChains):
    """The softmax likelihood under several maps over width, on the digits 3 and 8."""

    thin: int = 2  # effective samples per step cannot exceed 1/thin
    target_acceptance: float = 0.9
    num_train: Annotated[Several, "Images."] = 64
    num_inputs: Annotated[Count, "How many of their leading principal components the network sees."] = 4
    widths: Widths = (8, 32, 128, 512)
    maps: Annotated[tuple[str, ...], partial(one_of, SOFTMAX_MAPS), "Part of the grid."] = tuple(SOFTMAX_MAPS)
    num_prior: Annotated[Several, "Prior draws over which the deviation of U is taken."] = 2_000

    def check(self):
        """`num_steps` is 2 · `thin` or more and there are `num_inputs` principal components."""
        super().check()
        if self.num_inputs > (most := min(self.num_train, NUM_PIXELS)):
            raise ValueError(
                f"num_inputs must be 1 to {most}, the principal components that there are; "
                f"got {self.num_inputs}"
            )


@experiment(
    "two maps of the weights over their regulariser",
    scales={  # "paper" has λ of Figure 10, with λ = 10² more; no steps are stated
        "smoke": OverReg(num_chains=4, num_steps=300, burn_in=200, regs=(1e-2, 100.0), num_prior=200),
        "laptop": OverReg(num_steps=150_000, seed=1),
        "colab": OverReg(num_steps=300_000),
        "paper": OverReg(num_steps=3_000_000, regs=(1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)),
    },
    # whole, for each part would run the chain of the identity again
    cost=lambda c: Cost(
        operations=(1 + 2 * len(c.regs)) * c.num_chains * (c.num_steps + c.burn_in),
        steps=(1 + 2 * len(c.regs)) * (c.num_steps + c.burn_in),
        floats=c.num_chains * (8 * c.width) ** 2 + 4 * c.num_prior * c.width,
    ),
)
def over_reg(config: OverReg) -> Iterator[Row]:
    """Langevin on the standard parametrisation, and on those by T and by R (exact determinant) over λ.

    Yields
    ------
    Rows with map ("identity", "T" or "R") and reg (None for the identity); acceptance; step_size as tuned;
    effective samples per step of projections of θ (their mean) and of ‖θ‖², each with the standard error from
    the scatter over chains, and `rhat_projections` and `rhat_norm` (means); for R the share of prior draws
    with det ∂R/∂φ < 0, where R is not a bijection and its chain does not sample the posterior.
    """
    bnn, x, y = diabetes_patients(config.num_train, config.width, config.noise_std, config.seed)
    keys = jax.random.split(jax.random.key(config.seed), 3)
    project = random_projections(keys[0], bnn.template(x), num=config.num_projections)
    quantities = {"projections": project, "norm": lambda theta: inner_product(theta, theta)}
    make = {
        "identity": lambda reg: targets.standard(bnn, x, y),
        "T": lambda reg: targets.repriorised(bnn, x, y, reg),
        "R": lambda reg: targets.jacobian(bnn, x, y, reg),
    }
    for name, reg in [("identity", None), *((name, reg) for name in "TR" for reg in config.regs)]:
        target = make[name](reg)
        row = {"map": name, "reg": reg} | effective_samples(keys[1], target, config, quantities)
        if name == "R":
            draws = jax.vmap(target.draw_prior)(jax.random.split(keys[2], config.num_prior))
            sign = jax.jit(partial(jax.lax.map, target.orientation, batch_size=100))
            row["folded"] = float((sign(draws) < 0).mean())
        yield row


@over_reg.claim(
    "H-F10",
    where="Figure 10",
    claim="The map T of the readout mixes better than the Jacobian map R over all regularisers.",
    paper="R is competitive at times, T clearly preferable; subsets of CIFAR-10",
    rule="The best T has more effective samples per step than the best R, of projections, which decides. "
    "Shown are the same of the squared norm, and against the identity. Resolved are 150 effective samples of "
    "all chains, which stand for a hundred. Errors are judged by Student's t. On eight diabetes patients and "
    "width 8, where determinants are exact.",
    would_change="Subsets of CIFAR-10, on which the paper compares the maps, with determinants by its Taylor "
    "series.",
    page="17-other-maps#fig-reg",
)
def readout_map_is_best(results: Results) -> Iterator[Finding]:
    total = results.config["num_chains"] * results.config["num_steps"]
    for column, name in (("ess_projections", "projections"), ("ess_norm", "‖θ‖²")):
        best = {of: max(_ess(found, column), key=attrgetter("value")) for of, found in results.rows.by("map")}
        for other, its_name in (("R", "best R"), ("identity", "identity")):
            yield Finding(
                f"ESS of {name}, best T ÷ {its_name}",
                best["T"] / best[other],
                above=1,
                degrees=results.config["num_chains"] - 1,
                decides=(name, other) == ("projections", "R"),
                resolved=is_resolved(*(best[of].value * total for of in ("T", other))),
            )


@experiment(
    "maps of the readout under a softmax likelihood, over width",
    scales={  # "paper" has the number of steps of Figure 11
        "smoke": OverMaps(
            num_chains=4, num_steps=300, burn_in=300, num_train=16, widths=(8, 32), num_prior=200
        ),
        "laptop": OverMaps(num_steps=10_000, seed=1),
        "colab": OverMaps(num_steps=100_000),
        "paper": OverMaps(num_steps=100_000, widths=(8, 32, 128, 512, 2_048)),
    },
    parts=("widths", "maps"),
    cost=lambda c: Cost(
        operations=sum(c.widths) * len(c.maps) * c.num_train * c.num_chains * (c.num_steps + c.burn_in),
        steps=len(c.widths) * len(c.maps) * (c.num_steps + c.burn_in),
        floats=max(c.widths)
        * (
            c.num_chains * (8 * c.num_inputs + 4 * c.num_train + c.num_projections)
            + c.num_prior * c.num_inputs
        ),
    ),
)
def over_maps(config: OverMaps) -> Iterator[Row]:
    """Langevin on the posterior of a classifier under each map of `SOFTMAX_MAPS`, over width.

    Yields
    ------
    Rows with width, map; acceptance; step_size as tuned; effective samples per step of projections of θ and
    of class probabilities at 20 new images (means), each with its standard error from the scatter over
    chains, and `rhat_projections` and `rhat_predictions` (means); the standard deviation of U over prior
    draws and its standard error.
    """
    x, labels, x_new = _two_digits(config.num_train, config.num_inputs)
    for width in config.widths:
        bnn = BNN(FCN(x.shape[1], width, rngs=nnx.Rngs(config.seed)), 2, config.noise_std)
        keys = jax.random.split(jax.random.key(config.seed), 3)
        project = random_projections(keys[0], bnn.template(x), num=config.num_projections)
        for name in config.maps:
            target = targets.categorical(bnn, x, labels, **SOFTMAX_MAPS[name])
            quantities = {
                "projections": project,
                "predictions": lambda theta, bnn=bnn: jax.nn.softmax(bnn(theta, x_new)),
            }
            row = {"width": width, "map": name} | effective_samples(keys[1], target, config, quantities)
            prior = jax.vmap(target.draw_prior)(jax.random.split(keys[2], config.num_prior))
            potentials = jax.jit(partial(jax.lax.map, target.potential))(prior)
            yield row | _std(np.asarray(potentials, np.float64)).columns("potential_std")


@over_maps.claim(
    "H-F11",
    where="Figure 11",
    claim="Repriorisation by the Gaussian map helps under a softmax likelihood too, more so at larger width.",
    paper="higher effective sample size than without; the Laplace map would likely do better still",
    rule="The better of two Gaussian maps has more effective samples per step than the identity at the "
    "widest network, of projections of θ, which decides. Shown are the same of predictions and at the "
    "narrowest, that the gain grows, and that the Laplace map beats it at the widest. Errors are judged by "
    "Student's t. On 64 digits of two classes, at an acceptance of 0.9.",
    would_change="The paper's setting: CIFAR-10 in ten classes, n = 256, three hidden layers, γ tuned and "
    "100,000 steps.",
    page="17-other-maps#fig-maps",
)
def gaussian_map_helps(results: Results) -> Iterator[Finding]:
    rows, degrees = results.rows, results.config["num_chains"] - 1
    widths = min(rows.values("width")), max(rows.values("width"))
    for column, name in (("ess_projections", "projections of θ"), ("ess_predictions", "predictions")):
        by_map = [
            {of: _ess(found, column)[0] for of, found in rows.where(width=width).by("map")}
            for width in widths
        ]
        best = [
            max((m for of, m in found.items() if "Gaussian" in of), key=attrgetter("value"))
            for found in by_map
        ]
        gains = [gaussian / found["identity"] for gaussian, found in zip(best, by_map)]
        for width, gain in zip(widths, gains):
            what = f"ESS of {name}, best Gaussian map ÷ identity, width {width:,}"
            decides = width == widths[-1] and column == "ess_projections"
            yield Finding(what, gain, above=1, decides=decides, degrees=degrees)
        grows = gains[1] - gains[0]
        yield Finding(
            f"ESS of {name}, best Gaussian map ÷ identity, widest less narrowest",
            grows,
            above=0,
            degrees=degrees,
        )
        laplace, what = by_map[1]["Laplace"] / best[1], f"ESS of {name}, Laplace map ÷ best Gaussian, widest"
        yield Finding(what, laplace, above=1, degrees=degrees)


def diabetes_patients(num_train: int, width: int, noise_std: float, seed: int):
    """A network with one hidden layer, and two measurements of patients to fit it to: x (n, 2), y (n, 1)."""
    patients = data.diabetes()
    x = jnp.asarray(patients.x_train[:num_train, (BODY_MASS, TRIGLYCERIDES)])
    y = jnp.asarray(patients.y_train[:num_train])
    return BNN(FCN(x.shape[1], width, rngs=nnx.Rngs(seed)), 1, noise_std), x, y


def _ess(rows: Rows, column: str) -> list[Measure]:
    return [Measure.of(row, column) for row in rows]


def effective_samples(rng_key, target, config: TunedChains, quantities: Mapping[str, Collector]) -> Row:
    """Effective samples per step of the tuned sampler on one target, for functions of θ, and R̂."""
    draws = sample(
        rng_key,
        samplers.tuned(
            partial(samplers.langevin, target.potential, damping=config.damping), config.target_acceptance
        ),
        target,
        num_samples=config.num_steps // config.thin,
        thin=config.thin,
        burn_in=config.burn_in,
        num_chains=config.num_chains,
        collect=of_parameters(target, quantities),
    )
    row: Row = {
        "acceptance": draws.acceptance_rate,
        "step_size": draws.step_size,
        "ms_per_step": 1e3 * draws.seconds / (config.num_chains * (config.num_steps + config.burn_in)),
    }
    for name in quantities:
        row |= ess_per_step(draws[name], config.num_steps).columns(f"ess_{name}")
        row[f"rhat_{name}"] = finite(np.mean(rhat(draws[name])))
    return row


def _std(values: Float[np.ndarray, " draw"]) -> Measure:
    """Standard deviation of independent values, and its standard error by the delta method."""
    square = (values - values.mean()) ** 2
    std = np.sqrt(square.mean())
    return Measure(float(std), float(square.std() / (2 * std * np.sqrt(len(values)))))


def _two_digits(num_train: int, num_inputs: int):
    """Images of 3 and 8 by their leading principal components, in units of one common deviation."""
    dataset = data.digits(num_train=1_000, num_test=200)
    train, test = (y.argmax(axis=1) for y in (dataset.y_train, dataset.y_test))
    x, labels = (a[np.isin(train, (3, 8))][:num_train] for a in (dataset.x_train, train))
    new = dataset.x_test[np.isin(test, (3, 8))][:NUM_NEW]
    mean = x.mean(axis=0)
    components = np.linalg.svd(x - mean, full_matrices=False)[2][:num_inputs]
    scale = ((x - mean) @ components.T).std()
    x, new = (jnp.asarray((a - mean) @ components.T / scale, jnp.float32) for a in (x, new))
    return x, (labels == 8).astype(int), new
