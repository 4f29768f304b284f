"""All experiments by name, and what is stored of them."""

import os
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from book.experiments.claims import CLAIMS
from book.experiments.experiment import Experiment
from widebnn._check import one_of
from widebnn.scale import SCALES

__all__ = ["EXPERIMENTS", "GPU", "find", "on_gpu", "stored"]

MODULES = """
theorems deep_limit precision unitwise whitening rivals
learned_scales efficiency over_width gradient_gain convergence langevin_gain architectures step_cost
published_pcnl landscape over_reg shortcuts iterated_maps softmax_maps collapse mean_field_gap suprema
concentration elbo_ratio resnet tempering plain_training approximations evidence_over_width evidence_sign
cold_posteriors
"""


def _found() -> Iterable[Experiment]:
    for name in MODULES.split():
        for value in vars(import_module(f"book.experiments.{name}")).values():
            if isinstance(value, Experiment):
                yield value


EXPERIMENTS = {one.name: one for one in _found()}
"""By name."""


GPU = ["gain_over_width", "gain_dense", "gradient_gain", "step_cost", "resnet"]
"""What is to run first where there is a GPU, the most valuable first; at scale "colab" each takes minutes."""


def on_gpu(name: str) -> str:
    """The command that runs an experiment of `GPU`, with matrix products in full; of others the empty one."""
    command = f"python -m book.experiments run {name} --scale colab"
    return f"JAX_DEFAULT_MATMUL_PRECISION=highest {command}" if name in GPU else ""


def find(name: str) -> Experiment:
    """The experiment of this name, or the one that serves the row of the ledger with this id."""
    known = EXPERIMENTS | {
        id: EXPERIMENTS[claim.experiment] for id, claim in CLAIMS.items() if claim.experiment
    }
    return known[one_of(known, name=name)]


def stored(experiment: Experiment, folder: str | os.PathLike) -> dict[str, Path]:
    """Files with its results in a folder, by scale, the smallest first."""
    paths = {scale: Path(folder) / f"{experiment.name}_{scale}.json" for scale in SCALES}
    return {scale: path for scale, path in paths.items() if path.exists()}
