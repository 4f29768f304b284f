"""One posterior, many approximations: MCMC, φ ~ N(0, I), infinite width, an ensemble, mean-field VI (X-3).

A network observes images of some classes and predicts more of them, and images of classes that it has never
seen. Every method ends in draws of functions f_s, possibly with a variance left over, and so in a mixture of
Gaussians for y: all are judged by the same rule.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.tree_util import Partial
from jaxtyping import Array, Float, Int, Key
from scipy.special import logsumexp, softmax

from book.experiments.chain_summaries import behind
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.images import images
from book.experiments.trends import degrees_of_freedom
from widebnn import collectors, metrics, nngp, samplers, targets, vi
from widebnn.data import Dataset
from widebnn.diagnostics import convergence_summary
from widebnn.driver import sample
from widebnn.models import BNN, FCN
from widebnn.tables import Results, Row
from widebnn.tree import normal_like


class Predictions(NamedTuple):
    """y ~ (1/S) Σ_s N(m_s(x), v_s(x) I) at each of n inputs; the noise σ² is in v."""

    mean: Float[np.ndarray, "draw n k"]
    variance: Float[np.ndarray, "draw n"]

    def probabilities(self) -> Float[np.ndarray, "n k"]:
        """p(c) ∝ Σ_s N(y_c; m_s, v_s I), the k targets y_c = e_c − 1/k being all that y can be."""
        k = self.mean.shape[2]
        mean, variance = (self.mean.astype(np.float64), self.variance.astype(np.float64)[:, :, None])
        # ‖y_c − m‖² = ‖m‖² − 2 m_c + terms that are alike for all c, the mean of m among them
        centred = mean - mean.mean(axis=2, keepdims=True)
        misfit = np.sum(mean**2, axis=2, keepdims=True) - 2 * centred + 1 - 1 / k
        log_density = -misfit / (2 * variance) - k / 2 * np.log(variance)
        return softmax(logsumexp(log_density, axis=0), axis=1)

    def moments(self) -> tuple[Float[np.ndarray, "n k"], Float[np.ndarray, " n"]]:
        """Mean of y, and its variance averaged over outputs."""
        return self.mean.mean(axis=0), self.variance.mean(axis=0) + self.mean.var(axis=0).mean(axis=1)


class Problem(NamedTuple):
    """A network, what it observes, and what it predicts: first inputs of classes that it saw, then others."""

    bnn: BNN
    x: Float[np.ndarray, "n d_in"]
    y: Float[np.ndarray, "n k"]
    x_test: Float[np.ndarray, "m d_in"]
    labels_test: Int[np.ndarray, " m_in"]


@experiment(SETTINGS["approximations"], parts="repeats")
def approximations(
    dataset,
    num_classes,
    num_train,
    num_test,
    width,
    noise_std,
    num_draws,
    num_chains,
    num_sweeps,
    burn_in,
    taus,
    num_epochs,
    learning_rate,
    initial_std,
    num_members,
    repeats,
    seed,
) -> Iterator[Row]:
    """One posterior and everything that approximates it, compared with MCMC on the marginal target.

    Yields
    ------
    Rows with repeat and method; accuracy, NLL and ECE on classes that were seen; mean predictive entropy
    there and on the others, AUROC and FPR95 of the entropy as a detector of those; total variation from the
    class probabilities of MCMC, root mean square distance from its mean relative to its predictive deviation,
    and the ratio of predictive deviations (all over both kinds of inputs); seconds, compilation included.
    Those of MCMC also have `rhat`, `rhat_high`, `ess_bulk` and `ess_tail` of all means m_s(x), as
    `widebnn.diagnostics.convergence_summary` has them.
    """
    for repeat in repeats:
        data = images(dataset, num_train * (repeat + 1), num_test)
        part = slice(repeat * num_train, (repeat + 1) * num_train)
        problem = _problem(data, part, num_classes, width, noise_std, repeat)
        chains = {"num_chains": num_chains, "num_samples": num_draws // num_chains}
        chains |= {"thin": num_sweeps, "burn_in": burn_in}
        fits = {"num_epochs": num_epochs, "learning_rate": learning_rate}
        temperatures = {f"τ = {tau:g}": float(vi.temperature(tau, len(problem.x), width)) for tau in taus}
        methods = _methods(chains, fits, temperatures, initial_std, num_draws, num_members)
        rng_key = jax.random.fold_in(jax.random.key(seed), repeat)
        reference = None
        for number, (name, method) in enumerate(methods):
            start = time.perf_counter()
            found = method(jax.random.fold_in(rng_key, number), problem)
            seconds = time.perf_counter() - start
            reference = found if reference is None else reference
            row = {"repeat": repeat, "method": name, **_row(problem, found, reference), "seconds": seconds}
            yield row | (_agreement(found, num_chains) if name.startswith("MCMC") else {})


@approximations.claim("X-3")
def distances(results: Results) -> Iterator[Finding]:
    rows, degrees = results.rows, degrees_of_freedom(results)
    distance = {name: of.measure("total_variation") for name, of in rows.by("method")}
    near = distance["φ ~ N(0, I)"]
    chains = rows.where(method="MCMC") + rows.where(method="MCMC again")
    mcmc = behind((row["ess_bulk"] for row in chains), (row["rhat"] for row in chains))
    others = [name for name in distance if name.startswith("VI") or name == "deep ensemble"]
    nearest = min(others, key=lambda name: distance[name].value)
    for name in others:
        ratio = distance[name] / near
        what, decides = f"{name} ÷ φ ~ N(0, I)", name == nearest
        yield Finding(what, ratio, above=3, degrees=degrees, decides=decides, chains=mcmc)
    limit, noise = distance["NNGP"] / near, near / distance["MCMC again"]
    yield Finding("NNGP ÷ φ ~ N(0, I)", limit, above=0.5, below=2, degrees=degrees)
    yield Finding("φ ~ N(0, I) ÷ a second chain", noise, above=1, degrees=degrees)
    spread = rows.where(method="deep ensemble").measure("deviation_ratio")
    yield Finding("predictive deviation, deep ensemble ÷ MCMC", spread, below=1, degrees=degrees)


Method = Callable[[Key[Array, ""], Problem], Predictions]


def _methods(chains, fits, temperatures, initial_std, num_draws, num_members) -> Iterator[tuple[str, Method]]:
    yield "MCMC", partial(_mcmc, **chains)
    yield "MCMC again", partial(_mcmc, **chains)
    yield "φ ~ N(0, I)", partial(_reparametrised_prior, num_draws=num_draws)
    yield "NNGP", _nngp
    yield "deep ensemble", partial(_ensemble, num_members=num_members, **fits)
    for name, eta in ({"η = 1": 1.0} | temperatures).items():
        options = {"temperature": eta, "initial_std": initial_std, "num_draws": num_draws}
        yield f"VI, {name}", partial(_variational, **options, **fits)


def _problem(data: Dataset, part: slice, k: int, width, noise_std, seed) -> Problem:
    """A network that observes images of k classes, among this part of those to fit."""
    assert data.labels_train is not None and data.labels_test is not None
    labels = data.labels_train[part]
    x, labels = data.x_train[part][labels < k], labels[labels < k]
    y = np.eye(k, dtype=x.dtype)[labels] - np.asarray(1 / k, x.dtype)
    inside = data.labels_test < k
    x_test = np.concatenate([data.x_test[inside], data.x_test[~inside]])
    features = FCN(x.shape[1], width, rngs=nnx.Rngs(seed))
    return Problem(BNN(features, k, noise_std), x, y, x_test, data.labels_test[inside])


def _row(problem: Problem, found: Predictions, reference: Predictions) -> dict[str, float]:
    p, labels = found.probabilities(), problem.labels_test
    (mean, variance), (their_mean, their_variance) = (found.moments(), reference.moments())
    summary = metrics.classification_summary(p[: len(labels)], labels, p[len(labels) :])
    values = {
        **{name: summary[name] for name in ("accuracy", "nll", "ece")},
        "entropy_inside": summary["entropy"],
        "entropy_outside": summary["entropy_outside"],
        **{name: summary[name] for name in ("auroc", "fpr95")},
        "total_variation": abs(p - reference.probabilities()).sum(axis=1).mean() / 2,
        "distance": np.sqrt(np.mean((mean - their_mean) ** 2 / their_variance[:, None])),
        "deviation_ratio": np.sqrt(variance.mean() / their_variance.mean()),
    }
    return {name: float(value) for name, value in values.items()}


def _agreement(found: Predictions, num_chains: int) -> dict[str, float | None]:
    """Of the chains behind draws that lie one chain after another."""
    summary = convergence_summary(found.mean.reshape(num_chains, -1, *found.mean.shape[1:]))
    return {name: summary[name] for name in ("rhat", "rhat_high", "ess_bulk", "ess_tail")}


def _mcmc(rng_key: Key[Array, ""], problem: Problem, **chains) -> Predictions:
    """The unit-wise sampler on the rotated marginal target; the readout is integrated out."""
    target = targets.rotated(targets.marginal(problem.bnn, problem.x, problem.y))
    sampler = samplers.unitwise()
    collect = {"predictions": _given_inner(problem)}
    draws = sample(rng_key, target, sampler, collect=collect, progress=False, **chains)
    return _unpacked(np.concatenate(draws["predictions"]))


def _reparametrised_prior(rng_key: Key[Array, ""], problem: Problem, num_draws: int) -> Predictions:
    """f_{T(φ)}, φ ~ N(0, I): inner weights from the prior, the readout's posterior given them."""
    target = targets.rotated(targets.marginal(problem.bnn, problem.x, problem.y))
    predict = collectors.prepared(_given_inner(problem), target)

    def draw(key):
        prior_key, key = jax.random.split(key)
        return predict(target, target.draw_prior(prior_key), key)

    draws = jax.jit(lambda keys: jax.lax.map(draw, keys))(jax.random.split(rng_key, num_draws))
    return _unpacked(np.asarray(draws))


def _given_inner(problem: Problem):
    """Mean and variance of y given the inner weights, side by side in one array (m, k + 1)."""
    return Partial(_side_by_side, collectors.predictive_moments(problem.x_test))


def _side_by_side(moments, target, position, rng_key):
    mean, variance = moments(target, position, rng_key)
    return jnp.concatenate([mean, variance[:, None]], axis=1)


def _unpacked(moments: Float[np.ndarray, "draw n k_and_1"]) -> Predictions:
    return Predictions(moments[:, :, :-1], moments[:, :, -1])


def _nngp(rng_key: Key[Array, ""], problem: Problem) -> Predictions:
    """The posterior of the network's limit, exactly."""

    @jax.jit
    def moments(x, y, x_test):
        kernel, noise_std = (nngp.nngp_kernel(problem.bnn), problem.bnn.noise_std)
        process = nngp.gaussian_process(kernel, x, y, noise_std)
        return process.mean(x_test), jnp.diag(process.covariance(x_test)) + noise_std**2

    mean, variance = moments(problem.x, problem.y, problem.x_test)
    return Predictions(np.asarray(mean)[None], np.asarray(variance)[None])


def _ensemble(
    rng_key: Key[Array, ""], problem: Problem, num_members: int, num_epochs: int, learning_rate: float
) -> Predictions:
    """Maxima of the posterior density of θ from different starts (Lakshminarayanan et al. 2017)."""
    target = targets.standard(problem.bnn, problem.x, problem.y)
    optimiser = _optimiser(learning_rate, num_epochs)

    def train(key):
        def step(carry, _):
            theta, state = carry
            gradient = jax.grad(lambda theta: -target.logdensity(theta) / len(problem.x))(theta)
            updates, state = optimiser.update(gradient, state, theta)
            return (jax.tree.map(jnp.add, theta, updates), state), None

        start = normal_like(key, target.template)
        (theta, _), _ = jax.lax.scan(step, (start, optimiser.init(start)), length=num_epochs)
        return problem.bnn(theta, problem.x_test)

    keys = jax.random.split(rng_key, num_members)
    return _of_functions(jax.jit(lambda keys: jax.lax.map(train, keys))(keys), problem)


def _variational(
    rng_key: Key[Array, ""], problem: Problem, temperature, initial_std, num_draws, num_epochs, learning_rate
) -> Predictions:
    """The mean-field Gaussian of the same weights θ, whose prior is N(0, 1)."""
    fit_key, draw_key = jax.random.split(rng_key)
    bnn, x, y, _, _ = problem
    loss, optimiser = vi.gaussian(bnn.noise_std), _optimiser(learning_rate, num_epochs)
    options = {"batch_size": len(x), "temperature": temperature, "initial_std": initial_std}
    options |= {"num_epochs": num_epochs, "prior_variance": 1, "progress": False}
    fitted = vi.fit(fit_key, bnn, x, y, loss, optimiser, **options)
    keys = jax.random.split(draw_key, num_draws)
    return _of_functions(_functions(bnn, fitted.posterior, problem.x_test, keys), problem)


@jax.jit
def _functions(bnn: BNN, q: vi.MeanField, x: Float[Array, "n d_in"], keys: Key[Array, " draw"]):
    """Draws of f(x) under q."""
    return jax.lax.map(lambda key: bnn(q.draw(key), x), keys)


def _optimiser(learning_rate: float, num_epochs: int) -> optax.GradientTransformation:
    return optax.adam(optax.cosine_decay_schedule(learning_rate, num_epochs))


def _of_functions(functions: Float[Array, "draw n k"], problem: Problem) -> Predictions:
    """Predictions from functions that are drawn whole: what is left is the noise."""
    mean = np.asarray(functions)
    return Predictions(mean, np.full(mean.shape[:2], problem.bnn.noise_std**2, mean.dtype))
