"""What the limit theorems say vanishes, estimated over width (Hron et al. 2022; Pezzetti et al. 2025)."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from book.experiments.configuration import Configuration, Count, Counts, Fraction, NonNegative
from book.experiments.experiment import experiment
from book.experiments.fields import Images, Noise, NumChains, NumTrain, Seed
from book.experiments.findings import Finding
from book.experiments.images import images
from book.experiments.trends import exponent, vanishing
from flax import nnx
from jaxtyping import Array, Float
from widebnn import estimates, nngp, samplers, targets
from widebnn._check import at_least
from widebnn.diagnostics import rhat
from widebnn.models import BNN, FCN
from widebnn.sampling import sample
from widebnn.tables import Measure, Row, Rows

__all__ = ["Theorems", "theorems"]

CHAINS = {
    "pCN": (targets.repriorised, samplers.pcn),
    "pCNL": (targets.repriorised, samplers.pcnl),
    "pCN, inner": (targets.marginal, samplers.pcn),
}
"""The chains of Pezzetti et al. (2025), Theorems 2.1, 2.2 and 3.1: the target and the sampler of each."""

QUANTILES = {"5 %": 0.05, "median": 0.5, "95 %": 0.95}
GROUPS = 20
"""Groups of draws that `estimates.by_groups` takes an error from, none of them empty."""


class Theorems(Configuration):
    """Networks, prior draws and chains; the output says whether the class of an image is even or odd."""

    dataset: Images = "cifar10"
    num_train: NumTrain = 16
    widths: Annotated[Counts, "Of one hidden layer, for all but functions."] = (128, 256, 512, 1_024, 2_048)
    num_draws: Annotated[int, partial(at_least, GROUPS), "Prior draws at each width."] = 10_000
    function_widths: Annotated[Counts, "Of three, for functions of one input."] = (16, 32, 64, 128, 256)
    num_functions: Annotated[int, partial(at_least, GROUPS), "Functions given three observations."] = 5_000
    step_size: Annotated[Fraction, "β of all chains."] = 0.5
    num_chains: NumChains = 4
    num_steps: Annotated[Count, "Steps of each chain that count."] = 2_000
    burn_in: Annotated[NonNegative, "Steps before them."] = 300
    noise_std: Noise = 0.1
    seed: Seed = 0


@experiment(
    "what vanishes in the limit theorems, over width",
    scales={  # theorems have no numbers, and "paper" is what a GPU makes of them
        "smoke": Theorems(
            dataset="digits",
            num_train=4,
            widths=(32, 64, 128),
            num_draws=1_000,
            function_widths=(8, 16, 32),
            num_functions=500,
            num_steps=200,
            burn_in=50,
        ),
        "laptop": Theorems(seed=1),
        "colab": Theorems(
            num_train=32,
            widths=(256, 512, 1_024, 2_048, 4_096, 8_192),
            num_draws=100_000,
            function_widths=(16, 32, 64, 128, 256, 512, 1_024),
            num_functions=50_000,
            num_chains=16,
            num_steps=10_000,
        ),
        "paper": Theorems(
            num_train=32,
            widths=(256, 512, 1_024, 2_048, 4_096, 8_192, 16_384),
            num_draws=1_000_000,
            function_widths=(16, 32, 64, 128, 256, 512, 1_024),
            num_functions=500_000,
            num_chains=64,
            num_steps=20_000,
        ),
    },
)
def theorems(config: Theorems) -> Iterator[Row]:
    """Divergences, gradients, distances and rejections over width, the numbers of the chapter on theorems.

    Yields
    ------
    Rows with quantity, width, value and its standard error:

    - "KL in φ", KL(N(0, I) ‖ P(φ | D)); "KL in θ", the same of θ less its limit, which is in the column
      limit (Tr K̂ replaced by its known mean);
    - "gradient, 5 %", "gradient, median", "gradient, 95 %": quantiles of ‖∇U‖ under the posterior;
    - "rejection, pCN", "rejection, pCNL", "rejection, pCN, inner": one less the mean acceptance, with R̂ of U
      in the column rhat;
    - "Kolmogorov": the distance of the law of f_{T(φ)}(x), φ ~ N(0, I), from the NNGP posterior at the worst
      x; "Wasserstein": a bound on that of second order, root mean square over x.
    """
    dataset = images(config.dataset, config.num_train, 1)
    x = dataset.x_train
    y = np.where(dataset.y_train.argmax(axis=1) % 2 == 0, 0.5, -0.5)[:, None].astype(x.dtype)
    for width in config.function_widths:
        yield from _functions(config, width)
    for width in config.widths:
        yield from _over_prior(config, x, y, width)
        yield from _rejections(config, x, y, width)


def vanish(*quantities: str) -> Callable[[Rows], Iterator[Finding]]:
    """What says that each of these quantities tends to 0."""

    def summary(rows: Rows) -> Iterator[Finding]:
        for name in quantities:
            found = rows.where(quantity=name)
            yield from vanishing(name, sorted(found.values("width")), found.over("width", "value", "error"))

    return summary


theorems.claim(
    "H-F3",
    where="Figure 3",
    claim="Functions of T(φ), φ from the prior, approach the NNGP posterior as the width grows.",
    paper="a picture: three hidden layers, one input, three observations",
    rule="The second Wasserstein distance of the law of f(x) from the NNGP posterior, root mean square over "
    "x, has a bound that falls as a power of the width (exponent below 0), to less than half from the "
    "narrowest network to the widest.",
    page="05-infinite-width#fig-approach",
)(vanish("Wasserstein"))


@theorems.claim(
    "H-F1",
    where="Figure 1",
    claim="In parameter space a wide Bayesian network is simple once it is reparametrised: the divergence of "
    "its prior from its posterior vanishes in φ, and in θ it does not.",
    paper="an entry in a table of central results, by Theorem 2.1",
    rule="Of both divergences, φ ÷ θ: its exponent in the width decides, below 0. Shown is that in θ, widest "
    "÷ narrowest: above a half.",
    page="06-theorems#fig-theorem-kl",
)
def simple_in_phi(rows: Rows) -> Iterator[Finding]:
    in_phi, in_theta = rows.where(quantity="KL in φ"), _in_theta(rows)
    each = zip(in_phi.over("width", "value", "error"), in_theta, strict=True)
    slope = exponent(sorted(in_phi.values("width")), [phi / theta for phi, theta in each])
    yield Finding("KL, φ ÷ θ: exponent in the width", slope, below=0, decides=True)
    yield Finding("KL in θ, widest ÷ narrowest", in_theta[-1] / in_theta[0], above=0.5)


theorems.claim(
    "H-T2.1",
    where="Theorem 2.1",
    claim="KL(N(0, I) ‖ P(φ | D)) tends to 0 as the width grows.",
    paper="→ 0, without a rate",
    rule="It falls as a power of the width (exponent below 0, with a first correction for finite width), to "
    "less than half from the narrowest network to the widest.",
    page="06-theorems#fig-theorem-kl",
)(vanish("KL in φ"))

theorems.claim(
    "H-P2.2",
    where="Proposition 2.2",
    claim="The law of the functions of T(φ), φ from the prior, tends to the NNGP posterior.",
    paper="→ 0, without a rate",
    rule="The Kolmogorov distance of the law of f(x) at the worst x falls as a power of the width (exponent "
    "below 0), to less than half from the narrowest network to the widest.",
    would_change="The divergence between two laws of one finite width, of which the proposition speaks: the "
    "row tests its corollary, the distance from the NNGP posterior.",
    page="06-theorems#fig-theorem-functions",
)(vanish("Kolmogorov"))


@theorems.claim(
    "H-P2.3",
    where="Proposition 2.3",
    claim="KL(N(0, I) ‖ P(θ | D)) tends to the divergence between NNGP prior and posterior.",
    paper="a closed form, above 0",
    rule="At the widest network it is within a hundredth of the closed form and ten times that of φ or more; "
    "the distance from the closed form falls to less than half from the narrowest.",
    page="06-theorems#fig-theorem-kl",
)
def divergence_in_theta(rows: Rows) -> Iterator[Finding]:
    of_theta = rows.where(quantity="KL in θ")
    limit = of_theta.where(width=max(of_theta.values("width")))[0]["limit"]
    gaps = of_theta.over("width", "value", "error")
    whole = _in_theta(rows)[-1]
    phi = rows.where(quantity="KL in φ").over("width", "value", "error")[-1]
    first, last = (Measure(abs(gap.value), gap.error) for gap in (gaps[0], gaps[-1]))
    yield Finding("KL at the widest ÷ closed form", whole / limit, above=0.99, below=1.01)
    yield Finding("distance from the closed form, widest ÷ narrowest", last / first, below=0.5)
    yield Finding("KL at the widest, θ ÷ φ", whole / phi, above=10)


def _in_theta(rows: Rows) -> list[Measure]:
    """KL(N(0, I) ‖ P(θ | D)) over width: rows have what it differs from its limit by."""
    found = rows.where(quantity="KL in θ")
    each = zip(found.over("width", "value", "error"), found.over("width", "limit"), strict=True)
    return [Measure(gap.value + limit.value, gap.error) for gap, limit in each]


theorems.claim(
    "H-P3.1",
    where="Proposition 3.1",
    claim="Under the posterior of φ the gradient of U vanishes as the width grows.",
    paper="→ 0 in probability",
    rule="Three quantiles of its norm fall as powers of the width (exponent below 0), to less than half from "
    "the narrowest network to the widest.",
    page="06-theorems#fig-theorem-gradient",
)(vanish(*(f"gradient, {name}" for name in QUANTILES)))

for _number, _chain, _words in (
    ("2.1", "pCN", "The acceptance of pCN on the posterior of φ tends to 1 with the width, at any fixed β."),
    (
        "2.2",
        "pCNL",
        "The acceptance of pCNL on the posterior of φ tends to 1 with the width, at any fixed δ.",
    ),
    (
        "3.1",
        "pCN, inner",
        "The acceptance of pCN on the inner parameters, with the readout drawn from its conditional, tends "
        "to 1 with the width, at any fixed β.",
    ),
):
    theorems.claim(
        f"P-T{_number}",
        where=f"Theorem {_number}",
        claim=_words,
        paper="→ 1, without a rate",
        rule="The share rejected, one minus the acceptance, falls as a power of the width (exponent below 0, "
        "with a first correction for finite width), to less than half from the narrowest network to the "
        "widest. At β = 0.5.",
        page="06-theorems#fig-theorem-acceptance",
    )(vanish(f"rejection, {_chain}"))


def _network(config: Theorems, in_features: int, width: int, depth: int) -> BNN:
    return BNN(FCN(in_features, width, depth, rngs=nnx.Rngs(config.seed)), 1, config.noise_std)


def _row(
    quantity: str, width: int, estimate: estimates.Estimate | estimates.Divergence, **more: float
) -> Row:
    value, error = float(estimate.value), float(estimate.error)
    return {"quantity": quantity, "width": width, "value": value, "error": error} | more


def _key(config: Theorems, width: int, number: int):
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(config.seed), width), number)


def _over_prior(
    config: Theorems, x: Float[np.ndarray, "n d_in"], y: Float[np.ndarray, "n 1"], width: int
) -> Iterator[Row]:
    """Theorem 2.1 and Propositions 2.3 and 3.1: prior draws, weighted by e^{−U} for the posterior."""
    bnn = _network(config, x.shape[1], width, 1)
    target = targets.rotated(targets.marginal(bnn, x, y))
    collect = {
        "potential": target.potential,
        "gradient": lambda u: optax.tree.norm(jax.grad(target.potential)(u)),
    }
    draws = estimates.prior_draws(_key(config, width, 0), target, collect, config.num_draws)
    u = draws["potential"].astype(np.float64)
    yield _row("KL in φ", width, estimates.kl_from_prior(u))

    gp = nngp.gaussian_process(nngp.nngp_kernel(bnn), x, y, config.noise_std)
    limit, trace = float(gp.kl_from_prior()), float(jnp.trace(gp.prior))
    energy = (float(np.sum(y.astype(np.float64) ** 2)) + trace) / (2 * config.noise_std**2)
    of_readout = energy - u + len(x) * np.log(config.noise_std)
    theta = estimates.kl_from_prior(u, of_readout)
    yield _row("KL in θ", width, estimates.Estimate(theta.value - limit, theta.error), limit=limit)

    weights = np.exp(u.min() - u)
    for name, prob in QUANTILES.items():

        def weighted(gradient, weights, prob=prob):
            return np.quantile(gradient, prob, weights=weights, method="inverted_cdf")

        yield _row(f"gradient, {name}", width, estimates.by_groups(weighted, draws["gradient"], weights))


def _rejections(
    config: Theorems, x: Float[np.ndarray, "n d_in"], y: Float[np.ndarray, "n 1"], width: int
) -> Iterator[Row]:
    for number, (name, (kind, sampler)) in enumerate(CHAINS.items(), start=1):
        target = targets.rotated(kind(_network(config, x.shape[1], width, 1), x, y))
        draws = sample(
            _key(config, width, number),
            sampler(target.potential, config.step_size),
            target,
            num_samples=config.num_steps,
            burn_in=config.burn_in,
            num_chains=config.num_chains,
        )
        missing = estimates.mean_and_mcse(1 - draws.stats["acceptance_rate"])
        yield _row(f"rejection, {name}", width, missing, rhat=float(rhat(draws["potential"])))


def _functions(config: Theorems, width: int) -> Iterator[Row]:
    """Proposition 2.2: f(x) is normal given the inner weights, and a mixture of normals over the prior."""
    x, y = (jnp.array([[-1.0], [0.2], [1.0]]), jnp.array([[-0.5], [0.4], [0.2]]))
    grid = jnp.linspace(-1.6, 1.6, 33)[:, None]
    bnn = _network(config, 1, width, 3)
    gp = nngp.gaussian_process(nngp.nngp_kernel(bnn), x, y, config.noise_std)
    limit = (np.asarray(gp.mean(grid)[:, 0]), np.asarray(jnp.diag(gp.covariance(grid))))

    target = targets.marginal(bnn, x, y)
    mean, covariance = (target.predictive_mean(grid), target.predictive_covariance(grid))
    collect: dict[str, Callable[[Any], Array]] = {
        "mean": lambda u: mean(u)[:, 0],
        "variance": lambda u: jnp.diag(covariance(u)),
    }
    found = estimates.prior_draws(_key(config, width, 0), target, collect, config.num_functions)
    m, v = (found[name].astype(np.float64) for name in ("mean", "variance"))
    yield _row("Kolmogorov", width, estimates.kolmogorov_distance(m, v, *limit, num_points=41))
    # W₂² is convex: that of the mixture is at most the mean of those of its parts, each of two normals.
    square = (m - limit[0]) ** 2 + (np.sqrt(v) - np.sqrt(limit[1])) ** 2
    yield _row("Wasserstein", width, estimates.by_groups(lambda square: np.sqrt(square.mean()), square))
