"""Other maps and another likelihood: effective samples per step (Hron et al. 2022, Figures 10 and 11)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Float

from widebnn import data, samplers, targets
from widebnn._check import at_least, one_of, positive
from widebnn.diagnostics import effective_sample_size, random_projections
from widebnn.models import BNN, FCN
from widebnn.sampling import Collector, sample
from widebnn.tree import inner_product

__all__ = ["OVER_MAPS", "OVER_REG", "SOFTMAX_MAPS", "OverMaps", "OverReg", "over_maps", "over_reg"]

SOFTMAX_MAPS: Mapping[str, Mapping[str, Any]] = {
    "identity": {"map": "identity"},
    "Gaussian, λ = σ²": {"map": "gaussian"},
    "Gaussian, λ = k": {"map": "gaussian", "reg": 2.0},
    "Laplace": {"map": "laplace"},
}
"""Options of `targets.categorical` for two classes, by name."""


@dataclass(frozen=True)
class _Chains:
    """How chains are run: all by Langevin, its step size tuned to one mean acceptance rate.

    Attributes
    ----------
    num_chains, num_steps
        Chains from prior draws, and steps of each that count.
    burn_in
        Steps before them, during which the step size is tuned.
    thin
        Steps from one draw to the next.
    target_acceptance
        The rate that the step size is tuned to.
    damping
        γ of the Langevin sampler.
    num_projections
        Random directions in the space of θ.
    noise_std
        σ.
    seed
        Of everything.
    """

    num_chains: int = 8
    num_steps: int = 20_000
    burn_in: int = 5_000
    thin: int = 10
    target_acceptance: float = 0.98
    damping: float = 0.1
    num_projections: int = 100
    noise_std: float = 0.1
    seed: int = 0


@dataclass(frozen=True)
class OverReg(_Chains):
    """T and R over λ, on two measurements (body mass, triglycerides) of the diabetes data.

    Attributes
    ----------
    num_train, width
        Patients, and hidden units of the one hidden layer.
    regs
        λ.
    num_prior
        Prior draws at which the sign of det ∂R/∂φ is looked at.
    """

    num_train: int = 8
    width: int = 8
    regs: tuple[float, ...] = (1e-2, 1e-1, 1.0, 10.0, 100.0)
    num_prior: int = 2_000


@dataclass(frozen=True)
class OverMaps(_Chains):
    """The softmax likelihood under several maps over width, on the digits 3 and 8.

    Attributes
    ----------
    num_train, num_inputs
        Images, and their leading principal components that the network sees.
    widths, maps
        The grid.
    num_prior
        Prior draws over which the deviation of U is taken.
    """

    thin: int = 2  # effective samples per step cannot exceed 1/thin
    target_acceptance: float = 0.9
    num_train: int = 64
    num_inputs: int = 4
    widths: tuple[int, ...] = (8, 32, 128, 512)
    maps: tuple[str, ...] = tuple(SOFTMAX_MAPS)
    num_prior: int = 2_000


OVER_REG = {
    "smoke": OverReg(num_chains=4, num_steps=300, burn_in=200, regs=(1e-2, 100.0), num_prior=200),
    "laptop": OverReg(num_steps=30_000),
    "colab": OverReg(num_steps=300_000),
    "paper": OverReg(num_steps=3_000_000, regs=(1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)),
}
OVER_MAPS = {
    "smoke": OverMaps(num_chains=4, num_steps=300, burn_in=300, num_train=16, widths=(8, 32), num_prior=200),
    "laptop": OverMaps(num_steps=10_000),
    "colab": OverMaps(num_steps=100_000),
    "paper": OverMaps(num_steps=100_000, widths=(8, 32, 128, 512, 2_048)),
}
"""The configuration of each experiment at each scale; "paper" has λ (Figure 10, with λ = 10² more) and the
number of steps (Figure 11) of Hron et al., who state no steps for the first."""


def over_reg(config: OverReg, on_row: Callable[[dict[str, Any]], None] = lambda row: None) -> list[dict]:
    """Langevin on the standard parametrisation, and on those by T and by R (exact determinant) over λ.

    Parameters
    ----------
    config
        What to run.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with map ("identity", "T" or "R") and reg (None for the identity); acceptance; step_size as tuned;
    effective samples per step of projections of θ (their mean) and of ‖θ‖², each with the standard error from
    the scatter over chains; for R the share of prior draws with det ∂R/∂φ < 0, where R is no bijection and
    its chain does not sample the posterior.

    Raises
    ------
    ValueError
        If there are fewer than two chains, or a λ is not positive.
    """
    at_least(2, num_chains=config.num_chains)
    for reg in config.regs:
        positive(reg=reg)
    x, y = _diabetes(config.num_train)
    bnn = BNN(FCN(x.shape[1], config.width, rngs=nnx.Rngs(config.seed)), 1, config.noise_std)
    keys = jax.random.split(jax.random.key(config.seed), 3)
    project = random_projections(keys[0], bnn.template(x), num=config.num_projections)
    quantities = {"projections": project, "norm": lambda theta: inner_product(theta, theta)}
    make = {
        "identity": lambda reg: targets.standard(bnn, x, y),
        "T": lambda reg: targets.repriorised(bnn, x, y, reg),
        "R": lambda reg: targets.jacobian(bnn, x, y, reg),
    }
    rows = []
    for name, reg in [("identity", None), *((name, reg) for name in "TR" for reg in config.regs)]:
        target = make[name](reg)
        row = {"map": name, "reg": reg} | _run(keys[1], target, config, quantities)
        if name == "R":
            draws = jax.vmap(target.draw_prior)(jax.random.split(keys[2], config.num_prior))
            signs = jax.jit(lambda u, target=target: jax.lax.map(target.orientation, u, batch_size=100))(
                draws
            )
            row["folded"] = float((signs < 0).mean())
        rows.append(row)
        on_row(row)
    return rows


def over_maps(config: OverMaps, on_row: Callable[[dict[str, Any]], None] = lambda row: None) -> list[dict]:
    """Langevin on the posterior of a classifier under each map of `SOFTMAX_MAPS`, over width.

    Parameters
    ----------
    config
        What to run.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with width, map; acceptance; step_size as tuned; effective samples per step of projections of θ and
    of class probabilities at 20 new images (means), each with its standard error from the scatter over
    chains; the standard deviation of U over prior draws and its standard error.

    Raises
    ------
    ValueError
        If there are fewer than two chains, or a name is not in `SOFTMAX_MAPS`.
    """
    at_least(2, num_chains=config.num_chains)
    for name in config.maps:
        one_of(SOFTMAX_MAPS, maps=name)
    x, labels, x_new = _two_digits(config.num_train, config.num_inputs)
    rows = []
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
            row = {"width": width, "map": name} | _run(keys[1], target, config, quantities)
            prior = jax.vmap(target.draw_prior)(jax.random.split(keys[2], config.num_prior))
            potentials = jax.jit(lambda prior, target=target: jax.lax.map(target.potential, prior))(prior)
            row["potential_std"], row["potential_std_error"] = _std(np.asarray(potentials, np.float64))
            rows.append(row)
            on_row(row)
    return rows


def _run(rng_key, target, config: _Chains, quantities: Mapping[str, Collector]) -> dict[str, Any]:
    """One target's row: functions of θ and what a step of the tuned sampler is worth for them."""

    def of_parameters(function):
        return lambda position: function(target.to_parameters(position))

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
        collect={name: of_parameters(function) for name, function in quantities.items()},
    )
    row = {
        "acceptance": draws.acceptance_rate,
        "step_size": draws.step_size,
        "ms_per_step": 1e3 * draws.seconds / (config.num_chains * (config.num_steps + config.burn_in)),
    }
    for name in quantities:
        per_chain = np.array([effective_sample_size(chain[None]).mean() for chain in draws[name]])
        per_chain /= config.num_steps
        row[f"ess_{name}"] = float(per_chain.mean())
        row[f"ess_{name}_error"] = float(per_chain.std(ddof=1) / np.sqrt(config.num_chains))
    return row


def _std(values: Float[np.ndarray, " draw"]) -> tuple[float, float]:
    """Standard deviation of independent values, and its standard error by the delta method."""
    square = (values - values.mean()) ** 2
    std = np.sqrt(square.mean())
    return float(std), float(square.std() / (2 * std * np.sqrt(len(values))))


BODY_MASS, TRIGLYCERIDES = 2, 8


def _diabetes(num_train: int):
    dataset = data.diabetes()
    x = dataset.x_train[:num_train, (BODY_MASS, TRIGLYCERIDES)]
    return jnp.asarray(x), jnp.asarray(dataset.y_train[:num_train])


def _two_digits(num_train: int, num_inputs: int):
    """Images of 3 and 8 by their leading principal components, in units of one common deviation."""
    dataset = data.digits(num_train=1_000, num_test=200)
    train, test = (y.argmax(axis=1) for y in (dataset.y_train, dataset.y_test))
    x, labels = (a[np.isin(train, (3, 8))][:num_train] for a in (dataset.x_train, train))
    new = dataset.x_test[np.isin(test, (3, 8))][:20]
    mean = x.mean(axis=0)
    components = np.linalg.svd(x - mean, full_matrices=False)[2][:num_inputs]
    scale = ((x - mean) @ components.T).std()
    x, new = (jnp.asarray((a - mean) @ components.T / scale, jnp.float32) for a in (x, new))
    return x, (labels == 8).astype(int), new
