"""The methods: each fits a table and returns how it predicts.

Ours and those of scikit-learn have their defaults, but for two restarts of a Gaussian process of numbers, and
five rows or more in a leaf of a tree of numbers.
"""

import math
import subprocess
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import widebnn as wb
from benchmarks.tabular.data_sets import Table
from benchmarks.tabular.ensemble import DeepEnsemble
from benchmarks.tabular.scores import LEVELS, Mixture, Probabilities, Quantiles
from benchmarks.tabular.units import Units

__all__ = ["CLASSIFIERS", "METHODS", "REGRESSORS", "Fitted", "Method", "process"]

Prediction = Mixture | Quantiles | Probabilities
LEAF = 5
"""Rows in a leaf of a tree, at least."""
NUM_RESTARTS = 2
"""Of the Gaussian process, besides the start at unit scales."""


class Fitted(NamedTuple):
    """Predictions at inputs (m, d), and what the fit says of itself."""

    predict: Callable[[np.ndarray], Prediction]
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


def bnn(table: Table, seed: int, **options: Any) -> Fitted:
    """`BNNRegressor`, of the width that it chooses unless given."""
    model = wb.BNNRegressor(random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wb.ChainWarning)  # `said` tells of it
        model.fit(*table)
    said = f"{model.stopped_}, width {model.width_}"
    if model.width == "auto" and model.noise == "constant":
        found = model.evidence_slope_
        said += f", c₁ {found.slope:.4g} ± {found.error:.2g}"
    return Fitted(lambda x: Mixture(*model._mixture(x)).thinned(), said)


def bnn_classifier(table: Table, seed: int) -> Fitted:
    """`BNNClassifier`."""
    model = wb.BNNClassifier(random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wb.ChainWarning)
        model.fit(*table)
    return Fitted(lambda x: Probabilities(model.predict_proba(x)), model.stopped_)


def process(scales: Any, num_restarts: int, seed: int) -> GaussianProcessRegressor:
    """With one length scale of standardised inputs, or one for each."""
    kernel = ConstantKernel() * RBF(scales) + WhiteKernel()
    return GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=num_restarts, random_state=seed
    )


def gpr(table: Table, seed: int, has_columns: bool = True) -> Fitted:
    """scikit-learn's Gaussian process with a squared exponential of one length scale, or of one per input."""
    units = Units.of(table)
    model = process(np.ones(table.x.shape[1]) if has_columns else 1.0, NUM_RESTARTS, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # length scales at their bounds
        model.fit(units.inputs(table.x), table.y)

    def predict(x: np.ndarray) -> Mixture:
        mean, std = model.predict(units.inputs(x), return_std=True)
        return Mixture(np.asarray(mean)[None], np.asarray(std)[None])

    return Fitted(predict)


def boosting(table: Table, seed: int) -> Fitted:
    """Gradient boosting of trees: one model for the mean, and one for each of ten quantiles."""
    losses: list[dict[str, Any]] = [{}, *({"loss": "quantile", "alpha": level} for level in LEVELS)]
    models = [
        GradientBoostingRegressor(**loss, min_samples_leaf=LEAF, random_state=seed).fit(*table)
        for loss in losses
    ]

    def predict(x: np.ndarray) -> Quantiles:
        mean, *quantiles = (model.predict(x) for model in models)
        return Quantiles(mean, np.array(quantiles))

    return Fitted(predict)


def forest(table: Table, seed: int) -> Fitted:
    """A random forest, with the quantiles of the rows that share a leaf (Meinshausen 2006)."""
    model = RandomForestRegressor(min_samples_leaf=LEAF, random_state=seed).fit(*table)
    leaves, order = model.apply(table.x), np.argsort(table.y)

    def predict(x: np.ndarray) -> Quantiles:
        is_near = model.apply(x)[:, None] == leaves[order]  # (input, row, tree)
        weights = (is_near / is_near.sum(axis=1, keepdims=True)).mean(axis=2)
        places = [np.searchsorted(of, LEVELS) for of in weights.cumsum(axis=1)]
        return Quantiles(model.predict(x), table.y[order][np.array(places)].T)

    return Fitted(predict)


def classifier(model: Any, table: Table) -> Fitted:
    """One of scikit-learn, on standardised inputs."""
    model = make_pipeline(StandardScaler(), model).fit(*table)
    return Fitted(lambda x: Probabilities(model.predict_proba(x)))


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


def laplace(table: Table, seed: int) -> Fitted:
    """Laplace's approximation in all weights (Daxberger et al. 2021), by their training (Immer et al. 2021).

    Precisions of the prior, one per layer, and the noise maximise its evidence as the network is trained;
    predictions are of the linearised network.
    """
    try:
        import torch  # pyright: ignore[reportMissingImports]
        from laplace import marglik_training  # pyright: ignore[reportMissingImports]
        from laplace.curvature import CurvlinopsGGN  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError("the method 'laplace-torch' needs laplace-torch and torch") from None
    units = Units.of(table)
    x, y = (torch.tensor(part, dtype=torch.float32) for part in units.table(table))
    rows = torch.utils.data.TensorDataset(x, y[:, None])
    torch.manual_seed(seed)
    layers = torch.nn.Linear(x.shape[1], 50), torch.nn.Tanh(), torch.nn.Linear(50, 1)
    found, *_ = marglik_training(
        torch.nn.Sequential(*layers),
        torch.utils.data.DataLoader(rows, batch_size=150, shuffle=True),
        "regression",
        "full",
        CurvlinopsGGN,
        optimizer_kwargs={"lr": 1e-2},
        marglik_frequency=10,
        n_epochs_burnin=50,
    )

    def predict(x: np.ndarray) -> Mixture:
        mean, variance = found(torch.tensor(units.inputs(x), dtype=torch.float32))
        std = torch.sqrt(variance.ravel() + found.sigma_noise**2)
        return units.mixture(mean.ravel()[None].detach().numpy(), std[None].detach().numpy())

    return Fitted(predict)


REGRESSORS: dict[str, Method] = {
    "BNNRegressor": Method(bnn, "widebnn"),
    "NNGP": Method(partial(bnn, width=math.inf), "widebnn"),
    "64 units": Method(partial(bnn, width=64), "widebnn"),
    "noise per input": Method(partial(bnn, noise="per input"), "widebnn"),
    "GaussianProcessRegressor": Method(gpr, "scikit-learn"),
    "GaussianProcessRegressor, one scale": Method(partial(gpr, has_columns=False), "scikit-learn"),
    "deep ensemble": Method(ensemble, "flax"),
    "gradient boosting": Method(boosting, "scikit-learn"),
    "random forest": Method(forest, "scikit-learn"),
    "bde": Method(bde, "sklearn-contrib-bde"),
    "laplace-torch": Method(laplace, "laplace-torch"),
}
CLASSIFIERS: dict[str, Method] = {
    "BNNClassifier": Method(bnn_classifier, "widebnn"),
    "GaussianProcessClassifier": Method(
        lambda table, seed: classifier(GaussianProcessClassifier(ConstantKernel() * RBF()), table),
        "scikit-learn",
    ),
    "logistic regression": Method(
        lambda table, seed: classifier(LogisticRegression(), table), "scikit-learn"
    ),
    "forest of classes": Method(
        lambda table, seed: classifier(RandomForestClassifier(random_state=seed), table), "scikit-learn"
    ),
}
METHODS = REGRESSORS | CLASSIFIERS
