"""Calls that are right, and what their arguments must not be: another kind, NaN, out of range, misshapen."""

import functools
import inspect
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import widebnn as wb

from .networks import (
    NOWHERE,
    a_posterior,
    classified,
    evidence_slope,
    fit,
    fitted,
    gaussian_process,
    regressed,
    sample,
    smc,
    sum_of_weights,
)
from .rows import KEY, RNGS, X, Y, bnn, fcn, flat, named, position, target, tuned
from .studies import slice_through

DRAWS, ONES = np.arange(18.0).reshape(2, 9), np.ones(4)
HALVES, LABELS = np.full((3, 2), 0.5), np.array([0, 1, 1])
GIVEN = {"bnn": bnn(), "features": fcn(), "rngs": RNGS, "x": X, "y": Y, "labels": [0, 1, 1, 0], "psi": X}
GIVEN |= {"target": target(), "position": position(), "potential": flat, "template": X, "collect": {}}
GIVEN |= {"posterior": a_posterior(), "log_likelihood": sum_of_weights, "function": sum_of_weights}
GIVEN |= {"rng_key": KEY, "weights": jnp.ones(2), "optimiser": optax.sgd(0.1), "statistic": np.mean}
GIVEN |= {"ylabel": "U", "path": "a"}
"""What a function is given where it needs an argument of this name."""

OTHERS = {"bnn": fcn(), "rng_key": 0, "target": flat, "sampler": 3, "second": flat}
OTHERS |= {"checkpoint": "runs", "until": 400, "mesh": 8, "collect": [flat], "model": jnp.tanh, "features": 3}
OTHERS |= {"optimiser": 0.1}
"""What an argument of this name must not be: a thing of another kind."""

NON_NEGATIVE = {"bias_std", "temperature", "tau", "burn_in", "num_flat", "jitter"}
"""Numbers that may be 0."""
UNSHAPED = {"inside", "outside", "probabilities", "draws", "potential", "width", "lower", "stds"}
UNSHAPED |= {"targets.linear x", "nngp.gaussian_process x"}
"""Arrays that no other one is held to, or whose error names the other."""


def bad_values(of: str, name: str, good: Any):
    """What an argument must not be, whose right value is this."""
    if name in OTHERS:
        yield OTHERS[name]
    elif isinstance(good, str):
        yield "none of these"
    elif isinstance(good, int | float):
        yield from (-1, str(good)) if name in NON_NEGATIVE else (0, -1, str(good))
        yield from (math.nan, math.inf) if isinstance(good, float) else (2.5,)
    elif isinstance(good, np.ndarray | jax.Array):
        array = np.asarray(good)
        yield np.full(array.shape, "a")
        if array.dtype.kind == "f":
            is_first = np.arange(array.size).reshape(array.shape) == 0
            yield np.where(is_first, np.nan, array)
            if name != "upper":
                yield np.where(is_first, np.inf, array)
        if not {name, f"{of} {name}"} & UNSHAPED:
            yield array[:, :-1] if name in ("x", "x1") else array[:-1]


def swept(*names: str, call: Any = None, **arguments: Any):
    """(function, argument, call with it, its value) of functions that take these arguments, or of `call`."""
    for of in names:
        function = call or named(of)
        taken = inspect.signature(function.__init__ if isinstance(function, type) else function).parameters
        needed = {
            name: GIVEN[name]
            for name in taken
            if taken[name].default is inspect.Parameter.empty and name in GIVEN
        }
        for name, good in (needed | arguments).items() if call is None else arguments.items():
            if name not in arguments and (name not in OTHERS or name in ("rng_key", "collect")):
                continue
            for value in bad_values(of, name, good):
                yield of, name, functools.partial(function, **needed | arguments | {name: value}), value


RUN = {"rng_key": KEY, "sampler": wb.samplers.pcn(0.5), "collect": {}, "mesh": None}
RUN |= {"target": NOWHERE}
NETWORK = {"bnn": bnn(), "x": X, "y": Y}
FIT = {"num_chains": 2, "num_samples": 8, "thin": 1, "burn_in": 1, "width": 4}

probed = functools.partial(wb.targets.jacobian, **NETWORK, rng_key=KEY)


def predict(x=X, rng_key=KEY, **options):
    return wb.vi.predict(rng_key, fitted(), x, **options)


CHAINS = {"rng_key": KEY, "target": NOWHERE, "sampler": RUN["sampler"], "collect": {}}


def chains(**options):
    return wb.run_chains(**CHAINS | options, num_samples=2)


SWEPT = [
    *swept("checkpoints.Checkpoint", every_seconds=1.0, every_steps=1),
    *swept("data.digits", "data.diabetes", num_train=4, num_test=4),
    *swept("data.mnist", "data.fashion_mnist", "data.svhn", "data.cifar10", "data.boston", num_test=4),
    *swept("diagnostics.bulk_and_tail", "diagnostics.convergence", draws=DRAWS),
    *swept("diagnostics.convergence_summary", "diagnostics.rhat", draws=DRAWS),
    *swept("diagnostics.effective_sample_size", "diagnostics.rhat_squared", draws=DRAWS),
    *swept("diagnostics.random_projections", num=2, rng_key=KEY),
    *swept("estimates.by_groups", num_groups=2),
    *swept("estimates.kl_from_prior", potential=X),
    *swept("estimates.mean_and_mcse", draws=DRAWS),
    *swept("estimates.power_law", width=np.array([8.0, 16, 32, 64]), value=ONES, error=ONES),
    *swept("estimates.prior_draws", num_draws=2, batch_size=2, rng_key=KEY, collect={}),
    *swept("landscape.curvature", num_steps=2, rng_key=KEY),
    *swept("landscape.simplex_grid", num_corners=2, resolution=2),
    *swept("landscape.slice_through", call=slice_through, resolution=2),
    *swept("landscape.train", num_steps=1),
    *swept("metrics.accuracy", "metrics.nll", probabilities=HALVES, labels=LABELS),
    *swept("metrics.ece", probabilities=HALVES, labels=LABELS, num_bins=2),
    *swept("metrics.crps", draws=np.ones((3, 4)), y=ONES),
    *swept("models.BNN", out_features=2, noise_std=0.1, weight_std=1.0, bias_std=0.1),
    *swept("models.CNN", in_channels=3, width=4, depth=1, activation="gelu", weight_std=1.0, bias_std=0.1),
    *swept("models.Conv", in_channels=3, out_channels=4, kernel_size=3, stride=1, padding="same"),
    *swept("models.Conv", in_channels=3, out_channels=4, weight_std=1.0, bias_std=0.1),
    *swept("models.Dense", in_features=3, out_features=4, weight_std=1.0, bias_std=0.1, initial_std=1.0),
    *swept("models.FCN", in_features=3, width=4, activation="gelu", weight_std=1.0, bias_std=0.1),
    *swept("models.WideResNet20", channels=(1, 1, 1), in_channels=3, weight_std=1.0),
    *swept("nngp.gaussian_process", call=gaussian_process, x=np.eye(4, 3), y=Y),
    *swept("nngp.evidence_slope", call=evidence_slope, **NETWORK, rng_key=KEY),
    *swept("nngp.evidence_slope", call=evidence_slope, relative_error=0.1, max_units=1),
    *swept("nngp.nngp_kernel", call=lambda x1: wb.nngp.nngp_kernel(bnn())(x1), x1=X),
    *swept("nngp.ntk_kernel", call=lambda x1: wb.nngp.ntk_kernel(bnn())(x1), x1=X),
    *swept("nngp.GaussianProcess", call=lambda **o: gaussian_process().sample(KEY, X, **o), num_samples=1),
    *swept("samplers.rwm", "samplers.mala", "samplers.pcn", "samplers.pcnl", step_size=0.1),
    *swept("samplers.langevin", step_size=0.1, damping=0.5, num_flat=2),
    *swept("samplers.hmc", "samplers.leapfrog", step_size=0.1, num_steps=3),
    *swept("samplers.function_space_hmc", step_size=0.1, num_steps=3, damping=0.5, jitter=0.1),
    *swept("samplers.tuned", call=tuned, target_acceptance=0.5, max_step_size=1.0),
    *swept("samplers.alternate", first=RUN["sampler"], second=RUN["sampler"]),
    *swept("samplers.unitwise", block_size=2),
    *swept(
        "driver.sample", call=sample, num_samples=2, thin=1, num_chains=2, until=None, checkpoint=None, **RUN
    ),
    *swept("widebnn.run_chains", call=chains, **CHAINS),
    *swept("widebnn.smc", call=smc, num_particles=2, num_islands=1, **RUN),
    *swept("stopping.Until", ess=10.0, seconds=1.0),
    *swept("targets.repriorised", "targets.jacobian", x=X, y=Y, reg=0.5),
    *swept("targets.standard", "targets.marginal", x=X, y=Y),
    *swept("targets.jacobian", call=probed, num_probes=2, order=2),
    *swept("targets.marginal", block_size=2, space="feature"),
    *swept("targets.student_t", x=X, y=Y, degrees=4.0, num_steps=3),
    *swept("targets.binary", bnn=wb.BNN(fcn(), 1, 0.5), x=X, y=[0, 1, 1, 0], num_steps=3, map="laplace"),
    *swept("targets.categorical", x=X, num_steps=3, map="laplace"),
    *swept("targets.linear", x=X, y=Y, noise_std=0.1),
    *swept("targets.readout_posterior", "targets.DataSpace", "targets.FeatureSpace", reg=0.1),
    *swept("vi.elbo", num_samples=1, temperature=1.0, prior_variance=0.2),
    *swept("vi.fit", call=fit, num_epochs=1, batch_size=2, num_samples=1, x=X, y=Y),
    *swept("vi.fit", call=fit, rng_key=KEY, model=None),
    *swept("vi.fit", call=fit, temperature=1.0, prior_variance=0.2, initial_std=0.1),
    *swept("vi.gaussian", noise_std=0.1),
    *swept("vi.kl_divergence", prior_variance=0.2),
    *swept("vi.mean_field", std=0.1),
    *swept("vi.network", model=fcn(), rng_key=KEY),
    *swept("vi.predict", call=predict, num_samples=1, block_size=1, x=X, rng_key=KEY),
    *swept("vi.temperature", tau=1.0, num_observations=10, num_neurons=10),
    *swept("vi.TwoLayer", in_features=2, width=2, out_features=1, scaling="ntk"),
    *swept("vi.ResNet20", in_channels=3, out_features=10, norm="batch"),
    *swept("widebnn.BNNRegressor", call=regressed, **FIT, activation="gelu", features=None),
    *swept("widebnn.BNNClassifier", call=classified, **FIT, activation="gelu", features=None),
    *swept("widebnn.keep_compiled", max_mib=1),
]
