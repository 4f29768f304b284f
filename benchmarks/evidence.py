"""Seconds to predictions of the same accuracy, and to the evidence: particles, chains, and others.

`python -m benchmarks.evidence` measures every case that `_build/evidence.jsonl` does not have yet, each in a
process of its own. Tuning counts, importing and reading data do not. Each method runs twice, and compiles the
first time. They are seconds of one core (`time.process_time`), so that a busy machine costs little.

Particles run first, 64 in each of four islands. Chains, in the same coordinates and by the same kernel, run
until the least effective sample size of the same predictions is that of the particles. BlackJAX's adaptive
tempered SMC has four times 64 particles in the same coordinates, temperatures by the same rule, and as many
moves of HMC at each as ours makes in the mean. NumPyro's NUTS moves all weights, until the same predictions,
those given the features, have as many effective samples as by particles. BlackJAX's nested sampling has as
many live points as there are particles, in the same coordinates. These two run on one small network each.
Where the two runs of a method take longer than the limit, its row says so.
"""

import argparse
import contextlib
import importlib
import math
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from flax import nnx
from jax.flatten_util import ravel_pytree

import widebnn as wb
from benchmarks.timing import has, measured
from book.experiments.blackjax_samplers import blackjax
from book.experiments.regression_tables import split
from widebnn.tree import normal_like
from widebnn.versions import device

ROWS = Path("_build/evidence.jsonl")
NUM_PARTICLES, NUM_ISLANDS, ESS = 64, 4, 0.7
NUM_NEW = 50
MOST_DRAWS, RHAT = 20_000, 1.05
"""Of each chain, where chains stop that do not get there, and the largest R̂ with which they have."""
LENGTH, STEP_SIZE = 1.2, 1.1
"""Of BlackJAX's HMC: trajectories in radians, and step size times the fourth root of the dimension (Beskos et
al. 2013), by which it accepts some 0.8 of them at width 16."""
NUM_WARMUP, NUM_DRAWS = 300, 100
"""Of each of NumPyro's chains: what adapts it, and after how many draws it is looked at again."""
NUM_LIVE, NUM_DEAD, PATHS, LEFT = NUM_PARTICLES * NUM_ISLANDS, 32, 100, -3.0
"""Of nested sampling: live points, how many of them are replaced at once, paths of shrinkage for the error,
and the logarithm of what live points may have of the evidence at its end."""
NESTED_WIDTH, NUTS_WIDTH = 4, 16
"""Where nested sampling and NumPyro's NUTS run."""
LIMIT_S = 180
"""Processor seconds that both runs of a method may take, unless the command says another number."""
DIABETES = "diabetes"
SIZES = (
    (4, 1, 100, DIABETES),
    (16, 1, 100, DIABETES),
    (256, 1, 32, DIABETES),
    (256, 1, 100, DIABETES),
    (1_024, 1, 100, DIABETES),
    (4_096, 1, 100, DIABETES),
    (64, 3, 100, DIABETES),
    (64, 1, 1_000, "digits"),
)
"""Width, depth, rows, and the table that they are of."""


class Case(NamedTuple):
    """A network and how many rows of which table it observes."""

    width: int
    depth: int
    num_data: int
    table: str


class Found(NamedTuple):
    """Predictions (run, draw, new) and the log evidences of independent runs, with what a method says.

    The error is that of a single run, if it has one.
    """

    predictions: Any = None
    log_evidences: Any = None
    said: str = ""
    log_evidence_error: Any = None


def measure(case: Case, limit_s: float = LIMIT_S) -> list[dict]:
    """A row for each method."""
    data = split(case.table, case.num_data, NUM_NEW, seed=0)
    d_in = data.x.shape[1]
    features = wb.models.FCN(d_in, case.width, case.depth, bias_std=0.5, rngs=nnx.Rngs(0))
    bnn = wb.BNN(features, 1, noise_std=0.7)
    posterior = wb.targets.marginal(bnn, data.x, data.y)
    jax.block_until_ready(posterior.x)
    rows: list[dict] = []

    def timed(method: str, make: Callable[[], Callable[[Any], Found]]) -> Found:
        row: dict[str, Any] = case._asdict() | {"method": method}
        found, start = Found(), time.process_time()
        try:
            with limited(limit_s):
                run = make()
                found = run(jax.random.key(0))
                row["first"] = round(time.process_time() - start, 2)
                again = run(jax.random.key(1))
                row["again"] = round(time.process_time() - start - row["first"], 2)
            row |= told(again)
        except TimeoutError:
            row |= told(found) | {"said": f"not within {limit_s:g} s"}
        rows.append(row | {"device": device()})
        return found

    moves: list[int] = []
    particles = timed("particles", lambda: by_particles(posterior, data.x_test, moves))
    if particles.predictions is None:  # of which the others are to have as many
        return rows
    enough = least_ess(particles.predictions)
    timed("chains", lambda: by_chains(posterior, data.x_test, enough))
    number = round(float(np.mean(moves)))
    timed("BlackJAX tempered SMC", lambda: by_blackjax(posterior, data.x_test, number))
    standard = wb.targets.standard(bnn, data.x, data.y)
    timed("Laplace", lambda: by_laplace(standard))
    if case.width == NESTED_WIDTH:
        timed("nested sampling", lambda: by_nested(posterior))
    if case.width == NUTS_WIDTH and has(sys.executable, "numpyro"):
        timed("NumPyro NUTS", lambda: by_nuts(standard, posterior, data.x_test, enough))
    elif case.width == NUTS_WIDTH:
        print("skipped NumPyro NUTS: install the extra `bench`", flush=True)
    return rows


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after so many processor seconds, once the program that is running returns."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def told(found: Found) -> dict:
    """The least effective sample size of predictions, and log Z with its error over runs."""
    row: dict[str, Any] = {"said": found.said}
    if found.predictions is not None:
        row["ess"] = round(least_ess(found.predictions), 1)
    if found.log_evidences is not None:
        each = np.atleast_1d(np.asarray(found.log_evidences, np.float64))
        row["log_evidence"] = round(float(np.logaddexp.reduce(each) - math.log(len(each))), 3)
        if len(each) > 1:
            row["log_evidence_error"] = round(float(each.std(ddof=1) / math.sqrt(len(each))), 3)
        elif found.log_evidence_error is not None:
            row["log_evidence_error"] = round(float(found.log_evidence_error), 3)
    return row


def least_ess(predictions: Any) -> float:
    """The least, over new inputs, of the effective samples that `wb.Until` looks at."""
    return float(wb.diagnostics.convergence(predictions).ess.min())


def by_particles(posterior: Any, new: Any, moves: list[int]) -> Callable[[Any], Found]:
    def run(key):
        particles = wb.smc(
            key,
            posterior,
            num_particles=NUM_PARTICLES,
            num_islands=NUM_ISLANDS,
            ess=ESS,
            collect={"mean": wb.predictive_mean(new)},
            progress=False,
        )
        moves.extend(particles.num_moves)
        said = f"{len(particles.temperatures)} temperatures"
        return Found(particles["mean"][..., 0], particles.log_evidences, said)

    return run


def by_chains(posterior: Any, new: Any, enough: float) -> Callable[[Any], Found]:
    target, sampler, _ = wb.auto(posterior)

    def run(key):
        draws = wb.sample(
            key,
            target,
            sampler,
            num_samples=MOST_DRAWS,
            burn_in=100,
            num_chains=NUM_ISLANDS,
            until=wb.Until(ess=enough, rhat=RHAT),
            collect={"mean": wb.predictive_mean(new)},
            progress=False,
        )
        return Found(draws["mean"][..., 0], None, f"{draws['mean'].shape[1]:,} draws, {draws.stopped}")

    return run


def by_blackjax(posterior: Any, new: Any, num_moves: int) -> Callable[[Any], Found]:
    library = blackjax()
    target: Any = wb.auto(posterior).target
    size = ravel_pytree(target.draw_prior(jax.random.key(0)))[0].size
    step_size = STEP_SIZE / size**0.25
    kicks = round(LENGTH / step_size)
    hmc = {"step_size": step_size, "inverse_mass_matrix": jnp.ones(size), "num_integration_steps": kicks}
    algorithm = library.adaptive_tempered_smc(
        lambda u: -sum(jnp.vdot(leaf, leaf) for leaf in jax.tree.leaves(u)) / 2,
        lambda u: -target.potential(u),
        library.hmc.build_kernel(),
        library.hmc.init,
        library.smc.extend_params(hmc),
        library.smc.resampling.systematic,
        ESS,
        num_mcmc_steps=num_moves,
    )
    mean = wb.collectors.prepared(wb.predictive_mean(new), target)
    normaliser = float(target.log_normaliser())

    @jax.jit
    def begin(key):
        return algorithm.init(jax.vmap(target.draw_prior)(jax.random.split(key, NUM_PARTICLES)))

    @jax.jit
    def step(key, state):
        state, info = algorithm.step(key, state)
        return state, info.log_likelihood_increment, info.update_info.acceptance_rate.mean()

    @jax.jit
    def at(key, particles):
        return jax.vmap(lambda u, key: mean(target, u, key))(particles, jax.random.split(key, NUM_PARTICLES))

    def island(key):
        start_key, run_key, draw_key = jax.random.split(key, 3)
        state, log_evidence, number, rate = begin(start_key), 0.0, 0, 0.0
        while state.tempering_param < 1:  # in Python, so that the limit ends it after any temperature
            run_key, step_key = jax.random.split(run_key)
            state, increment, rate = step(step_key, state)
            log_evidence, number = log_evidence + float(increment), number + 1
        return np.asarray(at(draw_key, state.particles)[..., 0]), log_evidence, number, float(rate)

    def run(key):
        found = [island(one) for one in jax.random.split(key, NUM_ISLANDS)]
        means, log_evidences, number, rate = map(np.array, zip(*found))
        said = f"{number.mean():.3g} temperatures, acceptance {rate.mean():.2f}"
        return Found(means, np.float64(log_evidences) - normaliser, said)

    return run


def by_laplace(target: Any) -> Callable[[Any], Found]:
    """At a mode over all weights, by the generalised Gauss–Newton matrix (Immer et al. 2021)."""
    _, unravel = ravel_pytree(normal_like(jax.random.key(0), target.template))
    bnn, variance = target.bnn, float(target.bnn.noise_std) ** 2

    def network(theta):
        return bnn(unravel(theta), target.x).ravel()

    @jax.jit
    @jax.value_and_grad
    def loss(theta):
        return (jnp.sum((target.y.ravel() - network(theta)) ** 2) / variance + theta @ theta) / 2

    jacobian = jax.jit(jax.jacrev(network))

    def run(key):
        start = np.asarray(ravel_pytree(normal_like(key, target.template))[0], np.float64)
        mode = scipy.optimize.minimize(
            lambda theta: tuple(np.asarray(part, np.float64) for part in loss(jnp.float32(theta))),
            start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 5_000, "maxfun": 10_000},
        )
        slopes = np.asarray(jacobian(jnp.float32(mode.x)), np.float64)
        n = len(slopes)
        log_det = np.linalg.slogdet(np.eye(n) + slopes @ slopes.T / variance)[1]
        log_evidence = -mode.fun - (log_det + n * math.log(2 * math.pi * variance)) / 2
        return Found(None, log_evidence, f"{mode.nit} steps to the mode")

    return run


def by_nested(posterior: Any) -> Callable[[Any], Found]:
    """Nested slice sampling with what its documentation advises: two slices a point for each dimension."""
    library = blackjax()
    target: Any = wb.auto(posterior).target
    utils = importlib.import_module("blackjax.ns.utils")
    size = ravel_pytree(target.draw_prior(jax.random.key(0)))[0].size
    algorithm = library.nss(
        lambda u: -sum(jnp.vdot(leaf, leaf) for leaf in jax.tree.leaves(u)) / 2,
        lambda u: -target.potential(u),
        num_inner_steps=max(5, 2 * size),
        num_delete=NUM_DEAD,
    )
    step = jax.jit(algorithm.step)
    normaliser = float(target.log_normaliser())

    def run(key):
        start_key, key, path_key = jax.random.split(key, 3)
        state, dead = algorithm.init(jax.vmap(target.draw_prior)(jax.random.split(start_key, NUM_LIVE))), []
        while state.integrator.logZ_live - state.integrator.logZ > LEFT:
            key, step_key = jax.random.split(key)
            state, info = step(step_key, state)
            dead.append(info)
        weights = utils.log_weights(path_key, utils.finalise(state, dead, update_info=False), PATHS)
        paths = np.logaddexp.reduce(np.asarray(weights, np.float64)) - normaliser
        said = f"{NUM_DEAD * len(dead):,} points in {size} dimensions"
        return Found(None, paths.mean(), said, paths.std(ddof=1))

    return run


def by_nuts(target: Any, posterior: Any, new: Any, enough: float) -> Callable[[Any], Found]:
    """All weights by NumPyro; predictions are those of `posterior`, the readout's given the features.

    Its kernel is run without its `MCMC`, which compiles every chain again.
    """
    infer = importlib.import_module("numpyro.infer")
    _, unravel = ravel_pytree(normal_like(jax.random.key(0), target.template))
    kernel = infer.NUTS(potential_fn=lambda theta: target.potential(unravel(theta)) + theta @ theta / 2)
    mean = wb.collectors.prepared(wb.predictive_mean(new), posterior)

    def step(state, _):
        state = kernel.sample(state, (), {})
        return state, state.z

    def moved(state, num_steps):
        return jax.lax.scan(step, state, length=num_steps)

    def warm(key):
        theta = ravel_pytree(normal_like(key, target.template))[0]
        return moved(kernel.init(key, NUM_WARMUP, theta, (), {}), NUM_WARMUP)[0]

    @jax.jit
    def start(keys):
        return jax.lax.map(warm, keys)

    @jax.jit
    def draw(states):
        def chain(state):
            state, thetas = moved(state, NUM_DRAWS)
            return state, jax.vmap(at)(thetas)

        return jax.lax.map(chain, states)

    def at(theta):  # without randomness, whatever the key
        return mean(posterior, unravel(theta).inner, jax.random.key(0))[..., 0]

    def has_enough(predictions):
        found = wb.diagnostics.convergence(predictions)
        return found.ess.min() >= enough and found.rhat.max() <= RHAT

    def run(key):
        states, predictions = draw(start(jax.random.split(key, NUM_ISLANDS)))
        while not has_enough(predictions) and predictions.shape[1] < MOST_DRAWS:
            states, more = draw(states)
            predictions = np.concatenate([predictions, more], axis=1)
        return Found(np.asarray(predictions), None, f"{predictions.shape[1]:,} draws after {NUM_WARMUP}")

    return run


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence", description=__doc__)
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="processor seconds of a method")
    limit_s = parser.parse_args().limit
    measured(ROWS, [Case(*size) for size in SIZES], partial(measure, limit_s=limit_s))
