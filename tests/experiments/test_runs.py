"""One small run of every experiment: rows that can be saved, and numbers as exact answers have them."""

import importlib
import json
import math
from itertools import product
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy.stats import norm

import widebnn as wb
from book.experiments.convergence import PRIOR
from book.experiments.langevin_gain import worth_where_flat
from book.experiments.registry import EXPERIMENTS
from widebnn import vi
from widebnn.models import Conv, Dense
from widebnn.tables import Rows

RUNS = {}
"""By experiment: settings, what is patched to compile less, and what must hold of the rows."""
SAME = {
    "mixing_over_width": "over_width",
    "gain_over_data": "gain_over_width",
    "gain_dense": "gain_over_width",
    "gain_resnet": "gain_over_width",
    "softmax_gain": "laplace_map",
    "reg_of_t": "over_reg",
    "other_steps": "convergence",
    "published_temperature": "tempering",
}
"""Experiments that are the function of another on other grids."""
COLD = importlib.import_module("book.experiments.cold_posteriors")
LOOSE = ("approximations", "plain_training", "rivals")  # BlackJAX and Optax broadcast freely and mix types


def small(patched=None, **changes):
    """Run the experiment that has the name of the decorated check, at smoke scale with these changes."""

    def register(check):
        RUNS[check.__name__] = EXPERIMENTS[check.__name__].settings("smoke", **changes), patched, check
        return check

    return register


DEAR = (
    *("learned_scales", "published_pcnl", "iterated_maps", "evidence_over_width", "cold_posteriors"),
    *("landscape", "suprema", "architectures", "efficiency"),
)
"""Each compiles for ten seconds or more; what they share with the others runs with every change."""
CASES = [
    pytest.param(name, marks=pytest.mark.nightly if name in DEAR else pytest.mark.slow)
    for name in EXPERIMENTS
    if name not in SAME
]


@pytest.mark.parametrize("name", CASES)
def test_a_small_run_has_the_rows_that_it_should(name, monkeypatch):
    settings, patched, check = RUNS[name]
    for module, attribute, value in patched or ():
        monkeypatch.setattr(module, attribute, value)
    rank, dtype = jax.config.jax_numpy_rank_promotion, jax.config.jax_numpy_dtype_promotion
    is_double, rows = jax.config.jax_enable_x64, Rows()
    rank, dtype = ("allow", "standard") if name in LOOSE else (rank, dtype)
    with jax.numpy_rank_promotion(rank), jax.numpy_dtype_promotion(dtype):
        for row in EXPERIMENTS[name](**settings):
            assert jax.config.jax_enable_x64 == is_double  # float64 is not for who takes a row
            rows.append(row)
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    check(SimpleNamespace(**settings), rows)


@small()
def learned_scales(at, rows):
    assert [row["quantity"] for row in rows] == ["noise_std", "readout_std", "weight_std", "f"]
    assert all(sum(row["ranks"]) == at.num_sets and len(row["ranks"]) == at.num_draws + 1 for row in rows)


@small()
def evidence_over_width(at, rows):
    """Particles and prior draws have the same evidence."""
    assert [row["width"] for row in rows] == list(at.widths)
    for row in rows:
        assert len(row["log_evidences"]) == len(row["num_temperatures"]) == len(at.repeats)
        assert row["source"] == "prior draws" and row["difference_error"] > 0
        assert abs(np.mean(row["log_evidences"]) - row["limit"] - row["difference"]) < 0.5
    assert rows[-1]["effective"] > rows[0]["effective"]


@small()
def evidence_sign(at, rows):
    assert [row["split"] for row in rows] == list(at.splits)
    for row in rows:
        assert row["slope_error"] > 0 and row["num_temperatures"] > 0 and row["ess"] > 0
        assert abs(row["log_evidence"] - row["limit"]) < 5
        assert abs(row["nll_network"] - row["nll_limit"]) < 1  # on standardised targets


@small()
def cold_posteriors(at, rows):
    assert [row["beta"] for row in rows] == [beta for of in at.betas for _ in at.splits for beta in of]
    for row in rows:
        assert 0 < row["nll"] < 3 and row["num_temperatures"] > 0 and row["ess"] > 0


def test_a_tempered_gaussian_likelihood_is_that_of_less_noise_with_a_normaliser_of_its_own():
    """Of a network of two weights, the readout integrated out on a grid."""
    x, y = np.array([[0.5], [-1.0], [2.0]], np.float32), np.array([[0.3], [-0.7], [0.9]], np.float32)
    bnn = wb.BNN(wb.models.FCN(1, 1, bias_std=0.0, rngs=nnx.Rngs(0)), 1, noise_std=1.0, bias_std=0.0)
    noise = {"noise_std": wb.targets.LogNormal(0.5, 0.7)}
    inside, beta = wb.targets.scaled(wb.targets.marginal(bnn, x, y), **noise), 2.5
    target = COLD.TemperedNoise(inside, jnp.float32(beta))
    grid = np.linspace(-8, 8, 4_001)
    off = []
    for key in jax.random.split(jax.random.key(0), 4):
        position = target.draw_prior(key)
        psi = np.asarray(inside.at(position).embedding(position.network), float)
        sigma = float(inside.scales(position)["noise_std"])
        log_prob = norm.logpdf(y, psi * grid, sigma).sum(axis=0)  # (n, weight) to (weight,)
        density = np.exp(beta * log_prob) * norm.pdf(grid)
        off.append(float(target.potential(position)) + np.log(np.trapezoid(density, grid)))
    assert np.ptp(off) < 1e-3  # a constant in weights and σ


APPROXIMATIONS = importlib.import_module("book.experiments.approximations")


def two_methods(*options, methods=APPROXIMATIONS._methods):
    """Chapter 19 runs them all."""
    return [(name, of) for name, of in methods(*options) if name in ("MCMC", "NNGP")]


@small(
    [(APPROXIMATIONS, "_methods", two_methods)],
    num_train=25,
    num_test=60,
    width=16,
    num_draws=16,
    num_sweeps=1,
    burn_in=2,
)
def approximations(at, rows):
    assert [row["method"] for row in rows] == ["MCMC", "NNGP"]
    assert [rows[0][key] for key in ("total_variation", "distance", "deviation_ratio")] == [0, 0, 1]
    for row in rows[1:]:
        assert row["total_variation"] > 0 and row["distance"] > 0 and row["seconds"] > 0
    assert rows[0]["rhat"] <= rows[0]["rhat_high"] and rows[0]["ess_bulk"] > 0 and "rhat" not in rows[1]


ARCHITECTURES = importlib.import_module("book.experiments.architectures")
ONE_SAMPLER = {"pCN": ARCHITECTURES.SAMPLERS["pCN"]}


@small(
    [(ARCHITECTURES, "SAMPLERS", ONE_SAMPLER)],
    cases=((("dense", "digits", 1, 2, 8), 0.5, 240),),
    num_test=2,
    num_kicks=2,
    thin=4,
    noise_std=0.3,
)
def architectures(at, rows):
    assert [row["sampler"] for row in rows] == ["pCN", "HMC"]
    for row in rows:
        assert row["dimension"] == 64 * 8 + 8 + 9 * 10  # all of φ
        assert 0 < row["acceptance"] < 1 and row["ess_potential"] > 0 and row["ms_per_step"] > 0
    pcn, hmc = rows
    error = math.hypot(pcn["potential_error"], hmc["potential_error"])
    assert abs(pcn["potential"] - hmc["potential"]) < 5 * error


@small(widths=(400,), scalings=("mean-field",), num_points=6, num_digits=10, num_steps=60)
def collapse(at, rows):
    square, classes = rows
    # the divergence is that of a readout that moves alone
    np.testing.assert_allclose(square["kl_divergence"], square["predicted"], rtol=0.05)
    assert classes["predicted"] / 2 < classes["kl_divergence"] < 4 * classes["predicted"]


@small(num_train=(10, 40))
def concentration(at, rows):
    for row in rows:
        assert abs(row["rms"] - row["std"] / np.sqrt(row["num_train"])) < 5 * row["rms_error"]
        allowed = row["delta"] + 4 * np.sqrt(row["delta"] / at.num_replicates)
        assert row["exceedance"] <= allowed
        assert 0 < row["quantile"] < row["bound"]
        assert (row["exceedance_short"] > row["delta"]) == (row["losses"] == "coin")


@small(
    num_train=8,
    num_test=2,
    widths=(4,),
    samplers=("pCN", PRIOR),
    num_steps=(80,) * 2,
    thin=2,
    num_projections=3,
    repeats=(0,),
)
def convergence(at, rows):
    grid = product(at.samplers, (20, 40, 60, 80))
    assert [(row["sampler"], row["step"]) for row in rows] == list(grid)
    for row in rows:
        assert 0 <= row["acceptance"] <= 1 and row["ms_per_step"] > 0
        for quantity in ("potential", "weights", "predictions"):
            assert row[f"rhat_squared_{quantity}"] is None or row[f"rhat_squared_{quantity}"] > 0
        assert ("pc_between" in row) == (row["step"] == 80)
        assert row["acceptance"] == 1 or row["sampler"] != PRIOR
    assert np.shape(rows[3]["pc_traces"]) == (2, at.num_chains, 40)


EFFICIENCY = importlib.import_module("book.experiments.efficiency")


@small(
    [(EFFICIENCY, "TARGETS", ())],
    num_train=4,
    widths=(8,),
    compared_width=8,
    samplers=("unit-wise",),
    work=30_000,
    burn_in=20,
)
def efficiency(at, rows):
    assert [row["sampler"] for row in rows] == ["unit-wise"]
    for row in rows:
        np.testing.assert_allclose(row["ess_per_second"], 1e3 * row["ess_per_step"] / row["ms_per_step"])
        assert 0 < row["acceptance"] <= 1 and row["worst"] in ("potential", "weights", "predictions")
    assert rows[0]["dimension"] == (4 + 1) * 8


@small(num_train=(20, 20), widths=(4, 40), num_samples=2)
def elbo_ratio(at, rows):
    assert len(rows) == 2 * 2 * 2 * 2 * (1 + len(at.taus))
    for row in rows:
        num_weights = row["width"] * {"digits": 64 + 10, "diabetes": 10 + 1}[row["dataset"]]
        v, s2 = row["prior_variance"], at.initial_std**2
        each = (s2 / v - 1 - np.log(s2 / v)) / 2
        # means add (0.01)²/(2v) each, known to the scatter of so many squares
        means = 1e-4 / (2 * v) * (1 + 6 * np.sqrt(2 / num_weights))
        assert 0 < row["kl_divergence"] / num_weights - each < means
        if row["dataset"] == "digits":
            np.testing.assert_allclose(row["log_likelihood"], -20 * np.log(10), rtol=1e-2)
        eta = 1 if row["tau"] is None else row["tau"] * 20 / row["width"]
        np.testing.assert_allclose(row["ratio"] * eta * row["kl_divergence"], -row["log_likelihood"])
    mean_field = rows.where(prior_variance=0.2, scaling="mean-field")
    for dataset, (tau, ratio) in product(at.datasets, ((None, 10), (1.0, 1))):
        narrow, wide = mean_field.where(dataset=dataset, tau=tau).column("ratio")
        np.testing.assert_allclose(narrow / wide, ratio, rtol=0.01)  # cooling takes the width out


GRADIENT_GAIN = importlib.import_module("book.experiments.gradient_gain")


@small(
    [(GRADIENT_GAIN, "COMPARED", ("pCN",))],
    num_train=4,
    width=8,
    num_steps=80,
    num_tuned_steps=40,
    burn_in=20,
    num_chains=2,
)
def gradient_gain(at, rows):
    assert [row["is_tuned"] for row in rows] == [False, True]
    for row in rows:
        assert (row["step_size"] == at.step_size) == (not row["is_tuned"])
        steps = at.num_chains * (at.num_tuned_steps if row["is_tuned"] else at.num_steps)
        np.testing.assert_allclose(row["ess_bulk"], row["ess_per_step"] * steps)
        assert row["ess_per_step_error"] > 0 and row["ms_per_step"] > 0
        assert (row["relative_time"], row["relative_time_error"]) == (1, 0)


@small(
    iterations=(2,),
    regs=(),
    rates=(0.003,),
    num_steps=20,
    burn_in=10,
    thin=2,
    num_chains=2,
    width=2,
    num_train=3,
    num_projections=3,
    num_prior=10,
)
def iterated_maps(at, rows):
    assert [(r["map"], r["iterations"], r["size"]) for r in rows] == [("gradient descent", 2, 0.003)]
    assert all(0 <= row["folded"] <= 1 and 0 < row["ess_projections"] <= 1 / 2 for row in rows)


@small(problems=((64, 6),), training_time=0.02, resolution=4, num_products=8, repeats=(0,))
def landscape(at, rows):
    assert [(r["width"], r["num_train"], r["parametrisation"]) for r in rows] == [
        (w, n, p) for w, n in at.problems for p in "θφ"
    ]
    for row in rows:
        assert len(row["potential"]) == 15 and min(row["potential"]) == 0
        assert row["spread_potential"] == pytest.approx(np.std(row["potential"]), rel=1e-3, abs=0.01)
        assert 0 < row["curvature_residual"] < 0.2 * row["curvature_high"]
    theta, phi = rows  # of the same trained networks
    assert (theta["misfit"], theta["norm"]) == (phi["misfit"], phi["norm"])
    assert phi["curvature"] < theta["curvature"]
    assert phi["barrier_potential"] < theta["barrier_potential"]


@small(
    depth=1,
    widths=(2,),
    num_train=(3,),
    parametrisations=("φ",),
    num_test=2,
    noise_std=1e3,  # so that the posterior is N(0, I), and a step a linear map plus noise
    burn_in=1_000,
    num_steps=15_000,
    thin=2,
    num_projections=20,
)
def gain_over_width(at, rows):
    assert [row["step"] for row in rows] == [7_500, 15_000]
    for row in rows:
        assert row["acceptance"] == pytest.approx(at.target_acceptance, abs=0.006)
        assert row["damping"] == pytest.approx(2 * row["step_size"]) and row["damping"] < 1
        exact = worth_where_flat(row["step_size"], row["damping"], at.thin) / at.thin
        for column, error in (("ess", "ess_error"), ("pooled", "pooled_error")):
            assert row[f"{column}_projections"] == pytest.approx(exact, rel=0.1)
            assert 0 < row[f"{error}_projections"] < 0.1 * exact
        assert row["rhat_squared_projections"] == pytest.approx(1, abs=0.05)


@small(widths=(8, 128), losses=("square",), num_train=(20,), num_posteriors=3, num_samples=400)
def mean_field_gap(at, rows):
    for loss, (scaling, ratio) in product(at.losses, (("mean-field", 16), ("ntk", 1))):
        found = rows.where(loss=loss, scaling=scaling, num_train=20)
        assert all(row["gap"] > 5 * row["gap_error"] for row in found)
        narrow, wide = (found.where(width=width).column("gap").mean() for width in at.widths)
        assert ratio / 2 < narrow / wide < 2 * ratio  # 1/N in one scaling alone


def assert_are_sane(at, rows, quantities):
    for row in rows:
        assert 0 <= row["acceptance"] <= 1 and row["step_size"] > 0
        for quantity in quantities:
            assert 1 / at.num_steps <= row[f"ess_{quantity}"] <= 1 / at.thin
            assert row[f"ess_{quantity}_error"] >= 0 and row[f"rhat_{quantity}"] > 0.9


OVER_REG = importlib.import_module("book.experiments.over_reg")
T_FOR_R = (  # which compiles for long, and has tests of its own
    (wb.targets, "jacobian", wb.targets.repriorised),
    (OVER_REG, "share_folded", lambda rng_key, target, num_prior: 0.0),
)


@small(
    T_FOR_R,
    regs=(1.0,),
    width=2,
    num_train=3,
    num_steps=20,
    burn_in=10,
    thin=2,
    num_chains=2,
    num_prior=10,
    num_projections=3,
)
def over_reg(at, rows):
    assert [(r["map"], r["reg"]) for r in rows] == [("identity", None), ("T", 1.0), ("R", 1.0)]
    assert_are_sane(at, rows, ("projections", "norm"))
    assert [r["folded"] for r in rows if r["map"] == "R"] == [0.0]


@small(num_train=8, num_test=4, widths=(4,), samplers=("pCN",), num_steps=(50,), burn_in=5)
def over_width(at, rows):
    assert [(r["width"], r["sampler"]) for r in rows] == [(4, s) for s in at.samplers]
    for row in rows:
        assert 0 <= row["acceptance"] <= 1 and row["ms_per_step"] > 0
        assert row["dimension"] == 9 * row["width"]  # rotated: rank 8, and the bias
        assert row["ess_weights"] is None or 0 < row["ess_low_weights"] <= row["ess_weights"]


@small(
    num_train=6, num_test=3, widths=(8,), num_samples=30, burn_in=20, leapfrog_steps=(5,), pcnl_steps=(600,)
)
def published_pcnl(at, rows):
    (row,) = rows
    assert row["width"] == 8
    assert all(isinstance(value, int | float) and math.isfinite(value) for value in row.values())
    # 6 images × 10 outputs: readouts that count the data twice fit them far better
    error = math.hypot(row["misfit_published_error"], row["misfit_exact_error"])
    assert row["misfit_published"] < row["misfit_exact"] - 3 * error


class OneLayer(nnx.Module):
    """Takes what ResNet-20 takes, and compiles in seconds."""

    def __init__(self, in_channels, out_features, *, norm, rngs):
        options = {"scale": 1, "bias_std": 0, "initial_std": 0.01, "rngs": rngs}
        self.conv = Conv(in_channels, 2, stride=8, padding="centred", **options)
        self.norm = nnx.BatchNorm(2, rngs=rngs) if norm == "batch" else None
        self.readout = Dense(32, out_features, **options)

    def __call__(self, x):
        h = self.conv(x)
        h = h if self.norm is None else self.norm(h)
        return self.readout(nnx.relu(h).reshape(len(x), -1)) / 64


@small(
    [(vi, "ResNet20", OneLayer)],
    num_train=40,
    num_test=20,
    taus=(1e-3, 100.0),
    norms=("batch",),
    num_epochs=40,
    batch_size=20,
    learning_rate=0.1,
    initial_std=0.2,
    augment=True,
)
def resnet(at, rows):
    cold, warm = rows
    assert warm["eta"] == pytest.approx(100 * 40 / 64)
    assert warm["std"] == pytest.approx(math.sqrt(0.2), rel=0.03)
    assert warm["kl"] < 0.01 * cold["kl"] and warm["mean_norm"] < cold["mean_norm"]


@small(contenders=("elliptical slice",), seconds=1e6)
def rivals(at, rows):  # those of BlackJAX run every night
    (row,) = rows
    assert row["contender"] == "elliptical slice" and row["stopped"] == "converged" and row["rhat"] < 1.1
    assert row["seconds"] > row["adapting_seconds"] + row["sampling_seconds"]
    assert row["step_size"] is None and row["num_draws"] > 0


@small(
    widths=(2,),
    maps=("Gaussian, λ = k",),
    num_train=6,
    num_steps=20,
    burn_in=10,
    num_chains=2,
    num_prior=10,
    num_projections=3,
)
def laplace_map(at, rows):
    assert [(r["width"], r["map"]) for r in rows] == [(2, "Gaussian, λ = k")]
    assert_are_sane(at, rows, ("projections", "predictions"))
    assert all(row["potential_std"] > row["potential_std_error"] > 0 for row in rows)


STEP_COST = importlib.import_module("book.experiments.step_cost")
TWO_TARGETS = {name: STEP_COST.TARGETS[name] for name in ("θ", "φ without the readout")}


@small(
    [(STEP_COST, "TARGETS", TWO_TARGETS)],
    networks=(("dense", "digits", 1, 4, 3),),
    num_rounds=3,
    timed_seconds=1e-4,
)
def step_cost(at, rows):
    assert [row["target"] for row in rows] == list(TWO_TARGETS)
    for row in rows:
        assert 0 < row["ms_least"] <= row["ms_per_step"]
        assert row["ratio"] > 0 and (row["ratio"] == 1) == (row["target"] == "θ")
    inner, readout = 64 * 3 + 3, 4 * 10
    assert [row["dimension"] for row in rows] == [inner + readout, inner]


@small(taus=(0.05,), widths=(4, 16), num_train=(5,), max_atoms=6)
def suprema(at, rows):
    for row in rows:  # ordered, and certified
        assert 0 <= row["certificate"] < 1e-4 * abs(row["best_limit"])
        assert -row["certificate"] <= row["gap"] < 2 * row["predicted"]
    assert rows[1]["gap"] < rows[0]["gap"]


@small(
    num_train=60,
    num_test=40,
    taus=(1e-3, 10.0),
    num_repeats=1,
    num_epochs=60,
    batch_size=20,
    learning_rate=0.05,
    width=16,
    num_draws=10,
)
def tempering(at, rows):
    cold, warm = rows
    assert [row["tau"] for row in rows] == [1e-3, 10.0]
    for row in rows:
        assert row["eta"] == pytest.approx(row["tau"] * 60 / 16)
        for name in ("mean", "std"):
            assert sum(row["weights"][name]) == pytest.approx(1, abs=1e-4)
        assert len(row["weights"]["unit_norm"]) == len(row["weights"]["unit_std"]) == 16
    assert warm["std"] == pytest.approx(math.sqrt(0.2), rel=0.01)
    assert warm["mean_norm"] < 0.01 < 0.1 < cold["mean_norm"] and warm["kl"] < 1e-3 * cold["kl"]
    assert cold["nll"] < 1 and warm["nll"] == pytest.approx(math.log(5), abs=0.1)
    assert cold["entropy"] < cold["entropy_outside"] and warm["entropy"] > 0.97 * math.log(5)


THEOREMS = importlib.import_module("book.experiments.theorems")


@small(
    [(THEOREMS, "CHAINS", {"pCN, inner": THEOREMS.CHAINS["pCN, inner"]})],
    num_train=2,
    widths=(16,),
    num_draws=300,
    function_widths=(16,),
    num_functions=200,
)
def theorems(at, rows):
    by = {row["quantity"]: row for row in rows}
    assert len(by) == len(rows) == 8
    assert all(row["error"] > 0 for row in rows)
    assert by["gradient, 5 %"]["value"] < by["gradient, median"]["value"] < by["gradient, 95 %"]["value"]
    assert 0 < by["KL in φ"]["value"] < by["KL in θ"]["limit"]
    assert 0 < by["rejection, pCN, inner"]["value"] < 1
    assert 0 < by["Kolmogorov"]["value"] < 1 and by["Wasserstein"]["value"] > 0


@small(widths=(256,), num_chains=2, num_projections=10)
def unitwise(at, rows):
    (row,) = rows
    assert 0 < row["rejection"] < 0.5
    for name in ("potential", "weights"):
        assert 0.3 < row[f"ess_{name}"] < 1.5 and 0.9 < row[f"rhat_{name}"] < 1.5


WHITENING = importlib.import_module("book.experiments.whitening")


@small(
    [(WHITENING, "TARGETS", {"whitened": wb.targets.whitened})],
    widths=(12,),
    depths=(2,),
    num_samples=30,
    burn_in=20,
)
def whitening(at, rows):
    assert [(row["depth"], row["target"], row["repeat"]) for row in rows] == [
        (2, "whitened", repeat) for repeat in (0, 1)
    ]
    for row in rows:
        assert 0 < row["step_size"] < 1.6 and 0 < row["acceptance"] <= 1
        assert row["kicks"] == min(32, max(1, round(1 / row["step_size"])))
        assert row["ess_per_gradient"] == pytest.approx(row["ess"] / (row["kicks"] * 2 * 30))


@small(architectures=("dense", "convolutional"), widths=((8,), (4,)), num_draws=300, noise_std=1.0)
def deep_limit(at, rows):
    assert [(row["architecture"], row["width"]) for row in rows] == [("dense", 8), ("convolutional", 4)]
    assert all(row["kl_error"] > 0 for row in rows)


@small(parametrisations=("φ",), step_sizes=(0.05,))
def precision(at, rows):
    assert len(rows) == at.num_candidates
    for row in rows:  # of so small a network both are exact enough
        assert row["whole"] == pytest.approx(row["exact"], abs=0.02)
        assert row["differenced"] == pytest.approx(row["exact"], abs=0.01) and 0 < row["exact"] <= 1


@small()
def log_determinants(at, rows):
    exact, approximate = rows.column("exact"), rows.column("approximate")
    assert len(rows) == at.num_draws and np.isfinite(approximate).all() and exact.std() > 0


@small()
def readout_cost(at, rows):
    assert len(rows) == 2 * 3 and all(row["seconds"] > 0 for row in rows)


@small(repeats=(0,))
def plain_training(at, rows):
    assert [row["method"] for row in rows] == ["variational", "empirical risk"]
    assert all(row["accuracy"] > 0.85 for row in rows)


@small(nums_train=(50,), repeats=(0,))
def more_observations(at, rows):
    assert [(row["num_train"], row["grows"]) for row in rows] == list(product(at.nums_train, (True, False)))
    for row in rows:
        assert row["eta"] == pytest.approx(1e-3 * row["num_train"] / at.width if row["grows"] else 0.01)
