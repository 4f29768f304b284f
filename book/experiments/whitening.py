"""How far chains move on whitened layers, and on weights, over depth and width."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from book.experiments.chain_summaries import behind, mean_of_chains
from book.experiments.configuration import Configuration, Count, Counts, Several
from book.experiments.experiment import experiment
from book.experiments.fields import Images, Noise, NumChains, NumTrain, Seed
from book.experiments.findings import Finding
from book.experiments.images import images
from book.experiments.repeats import degrees_of_freedom
from flax import nnx
from widebnn import samplers, targets
from widebnn._check import at_least
from widebnn.data import Dataset
from widebnn.diagnostics import convergence
from widebnn.models import BNN, FCN
from widebnn.sampling import sample
from widebnn.tables import Measure, Results, Row

__all__ = ["Whitening", "whitening"]

TARGETS = {"weights": targets.rotated, "whitened": targets.whitened}
"""By what a chain moves on. Inputs are rotated in both: where there is one layer they are the same."""
MAX_KICKS = 32
WATCHED = 4
"""Images between which the kernel is watched."""


class Whitening(Configuration):
    """The grid, and how long chains run."""

    dataset: Images = "cifar10"
    num_train: NumTrain = 32
    widths: Annotated[Counts, "Of every hidden layer; above the number of images."] = (128, 256, 512)
    depths: Annotated[Counts, "Numbers of hidden layers: 1 and at least one more."] = (1, 2, 3)
    num_repeats: Annotated[Several, "Runs of each case, each from a seed of its own."] = 5
    num_chains: NumChains = 4
    num_samples: Annotated[Count, "Proposals of each chain that count."] = 400
    burn_in: Annotated[Count, "Proposals before them, by which the angle is tuned."] = 300
    noise_std: Noise = 0.1
    seed: Seed = 0

    def __post_init__(self):
        super().__post_init__()
        at_least(self.num_train + 1, widths=min(self.widths))


@experiment(
    "whitened layers against weights, over depth and width",
    scales={
        "smoke": Whitening(
            dataset="digits",
            num_train=8,
            widths=(16, 32),
            depths=(1, 2),
            num_repeats=2,
            num_chains=2,
            num_samples=60,
            burn_in=40,
        ),
        "laptop": Whitening(num_repeats=8, seed=1),
        "colab": Whitening(num_train=256, widths=(512, 1_024, 2_048)),
        "paper": Whitening(num_train=256, widths=(512, 1_024, 2_048, 4_096), num_samples=2_000),
    },
    parts=("widths", "depths"),
)
def whitening(config: Whitening) -> Iterator[Row]:
    """Function-space HMC on weights and on whitened layers, with trajectories of one radian.

    Its angle is tuned to an acceptance of 0.8.

    No paper has it: the scale "paper" is a size chosen for a GPU.

    Yields
    ------
    Rows with depth, width, target ("weights" or "whitened"; with one hidden layer these are one target) and
    repeat; step_size as tuned, acceptance; kicks of a proposal; ess, the least over U and ten entries of ΨΨᵀ,
    and rhat, the largest; ess_per_gradient; the mean of the potential with its standard error, and its
    standard deviation.
    """
    dataset = images(config.dataset, config.num_train, 1)
    for width in config.widths:
        for depth in config.depths:
            for name in TARGETS if depth > 1 else ("whitened",):
                for repeat in range(config.num_repeats):
                    found = _run(config, dataset, width, depth, name, repeat)
                    yield {"depth": depth, "width": width, "target": name, "repeat": repeat} | found


def _run(config: Whitening, dataset: Dataset, width: int, depth: int, name: str, repeat: int) -> Row:
    features = FCN(dataset.x_train.shape[1], width, depth, rngs=nnx.Rngs(0))
    bnn = BNN(features, dataset.y_train.shape[1], config.noise_std)
    target = TARGETS[name](targets.marginal(bnn, dataset.x_train, dataset.y_train))
    pairs = jnp.triu_indices(WATCHED)

    def kernel(position):
        psi = target.embedding(position)[:WATCHED]
        return (psi @ psi.T)[pairs]

    hmc = partial(samplers.function_space_hmc, target.potential, jitter=0.2)
    rng_key = jax.random.fold_in(jax.random.key(config.seed), 1_000 * width + 100 * depth + repeat)
    draws = sample(
        rng_key,
        samplers.tuned(hmc, 0.8, max_step_size=math.pi / 2),
        target,
        num_samples=config.num_samples,
        burn_in=config.burn_in,
        num_chains=config.num_chains,
        collect={"potential": target.potential, "kernel": kernel},
        progress=False,
    )
    found = [convergence(values) for values in draws.collected.values()]
    step_size = float(draws.step_size or math.nan)
    kicks = int(np.clip(np.round(1 / step_size), 1, MAX_KICKS))
    ess = float(min(one.ess.min() for one in found))
    potential = draws["potential"].astype(np.float64)
    return {
        "step_size": step_size,
        "acceptance": float(draws.acceptance_rate),
        "kicks": kicks,
        "ess": ess,
        "rhat": float(max(one.rhat.max() for one in found)),
        "ess_per_gradient": ess / (kicks * potential.size),
        **mean_of_chains(potential).columns("potential"),
        "potential_std": float(potential.std()),
    }


@whitening.claim(
    "X-6",
    claim="Whitened layers leave the posterior as it is, let chains take longer steps, and make a gradient "
    "worth as much in a deep network as in one with a single hidden layer.",
    rule="Function-space HMC, over runs from seeds of their own. The headline: at the largest width, least "
    "effective samples per gradient on whitened layers in the deepest network ÷ those with one hidden "
    "layer, above 0.75. At each width, in the deepest network: the tuned angle on whitened layers ÷ that on "
    "weights is above 1.25, and the mean of U differs by less than a quarter of its deviation. Errors are "
    "judged by Student's t.",
    would_change="n = 256, at colab scale: with 32 images the widths are 4 to 16 times n.",
    page="16-depth#fig-depth-worth",
)
def as_easy(results: Results) -> Iterator[Finding]:
    rows, degrees = results.rows, degrees_of_freedom(results)
    deepest, widths = max(rows.values("depth")), sorted(rows.values("width"))

    def over_runs(column: str, **where) -> Measure:
        return Measure.mean([row[column] for row in rows.where(**where)])

    widest = {"width": widths[-1], "target": "whitened"}
    ratio = over_runs("ess_per_gradient", depth=deepest, **widest) / over_runs(
        "ess_per_gradient", depth=1, **widest
    )
    what = f"width {widths[-1]:,}: ESS per gradient, {deepest} layers ÷ 1"
    compared = [row for row in rows.where(**widest) if row["depth"] in (1, deepest)]
    chains = behind((row["ess"] for row in compared), (row["rhat"] for row in compared))
    yield Finding(what, ratio, above=0.75, degrees=degrees, chains=chains)
    for width in widths:
        here = {"width": width, "depth": deepest}
        angles = {name: over_runs("step_size", target=name, **here) for name in TARGETS}
        longer = angles["whitened"] / angles["weights"]
        yield Finding(f"width {width:,}: angle, whitened ÷ weights", longer, above=1.25, degrees=degrees)
        means = {name: over_runs("potential", target=name, **here) for name in TARGETS}
        deviation = over_runs("potential_std", target="weights", **here).value
        shift = (means["whitened"] - means["weights"]) / deviation
        what = f"width {width:,}: shift of U in its deviations"
        yield Finding(what, shift, above=-0.25, below=0.25, degrees=degrees)
