"""The methods: each fits a table and returns how it predicts."""

import math
import subprocess
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import widebnn as wb
from benchmarks.tabular.data_sets import Table
from benchmarks.tabular.ensemble import DeepEnsemble
from benchmarks.tabular.scores import Mixture
from benchmarks.tabular.units import Units

__all__ = ["METHODS", "OURS", "UNTIL", "Fitted", "Method", "ard_process"]

UNTIL = wb.Until(ess=200, rhat=1.02)
"""When a run of ours ends."""
NUM_SAMPLES = 500
"""Of each chain, at most."""
NUM_RESTARTS = 2
"""Of the Gaussian process, besides the start at unit scales."""


class Fitted(NamedTuple):
    """Predictions at inputs (m, d), and what the fit says of itself."""

    predict: Callable[[np.ndarray], Mixture]
    said: str = ""


class Method(NamedTuple):
    """A fit of a table by a seed, and the package whose version counts."""

    fit: Callable[[Table, int], Fitted]
    package: str

    @property
    def version(self) -> str:
        """Of the package; of this one with the commit, where there is a checkout."""
        found = f"{self.package} {version(self.package)}"
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
        return f"{found} {commit.stdout.strip()}".strip() if self.package == "widebnn" else found


def bnn(table: Table, seed: int) -> Fitted:
    """`BNNRegressor` of 128 units, until 200 effective samples and R̂ ≤ 1.02, or 500 draws of each chain."""
    model = wb.BNNRegressor(width=128, num_samples=NUM_SAMPLES, until=UNTIL, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wb.ChainWarning)  # `said` tells of it
        model.fit(*table)
    said = f"{model.stopped_}, ESS {min(model.ess_.values()):.0f}, R̂ {max(model.rhat_.values()):.3f}"

    def predict(x: np.ndarray) -> Mixture:
        means, stds = model._mixture(x)
        return Mixture(means, stds).thinned()

    return Fitted(predict, said)


def ard_process(num_features: int, num_restarts: int, seed: int) -> GaussianProcessRegressor:
    """With a scale for each feature, of standardised inputs."""
    scales: Any = np.ones(num_features)
    kernel = ConstantKernel() * RBF(scales) + WhiteKernel()
    return GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=num_restarts, random_state=seed
    )


def gpr(table: Table, seed: int) -> Fitted:
    """scikit-learn's Gaussian process with a squared exponential of one length scale for each input."""
    units = Units.of(table)
    process = ard_process(table.x.shape[1], NUM_RESTARTS, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # length scales at their bounds
        process.fit(units.inputs(table.x), table.y)

    def predict(x: np.ndarray) -> Mixture:
        mean, std = process.predict(units.inputs(x), return_std=True)
        return Mixture(np.asarray(mean)[None], np.asarray(std)[None])

    return Fitted(predict)


def nngp(table: Table, seed: int) -> Fitted:
    """The limit of our network: scales at the maximum of evidence times prior. In float64."""
    model = wb.BNNRegressor(width=math.inf).fit(*table)

    def predict(x: np.ndarray) -> Mixture:
        means, stds = model._mixture(x)
        return Mixture(means, stds)

    return Fitted(predict)


def ensemble(table: Table, seed: int) -> Fitted:
    """See `benchmarks.tabular.ensemble`."""
    return Fitted(DeepEnsemble().fit(table, seed).predict)


def bde(table: Table, seed: int) -> Fitted:
    """Bayesian deep ensembles by microcanonical Langevin (Sommer et al. 2025), set as in their README."""
    try:
        from bde import BdeRegressor  # pyright: ignore[reportMissingImports]
        from bde.loss import GaussianNLL  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(
            "the method 'bde' needs sklearn-contrib-bde, which asks for another BlackJAX than this project "
            "and so for an environment of its own"
        ) from None
    units = Units.of(table)
    model = BdeRegressor(
        hidden_layers=[16, 16],
        n_members=8,
        seed=seed,
        loss=GaussianNLL(),
        epochs=200,
        validation_split=0.15,
        lr=1e-3,
        weight_decay=1e-4,
        warmup_steps=5_000,
        n_samples=2_000,
        n_thinning=2,
        patience=10,
    )
    x, y = units.table(table)
    model.fit(x, y[:, None])

    def predict(x: np.ndarray) -> Mixture:
        raw = np.asarray(model.predict(units.inputs(x), raw=True), np.float64)
        mean, spread = np.moveaxis(raw.reshape(-1, *raw.shape[2:]), -1, 0)
        std = np.logaddexp(0, spread) + 1e-6  # their softplus
        return units.mixture(mean, std).thinned()

    return Fitted(predict)


METHODS: dict[str, Method] = {
    "BNNRegressor": Method(bnn, "widebnn"),
    "GaussianProcessRegressor": Method(gpr, "scikit-learn"),
    "NNGP": Method(nngp, "widebnn"),
    "deep ensemble": Method(ensemble, "flax"),
    "bde": Method(bde, "sklearn-contrib-bde"),
}
OURS = "BNNRegressor"
