"""Every experiment that there is."""

import math
from collections.abc import Iterable

from widebnn.experiments.chains.architectures import ARCHITECTURES, architectures
from widebnn.experiments.chains.convergence import CONVERGENCE, convergence
from widebnn.experiments.chains.efficiency import EFFICIENCY, METHODS, efficiency
from widebnn.experiments.chains.langevin_gain import (
    GAIN_DENSE,
    GAIN_OVER_DATA,
    GAIN_OVER_WIDTH,
    GAIN_RESNET,
    LangevinGain,
    langevin_gain,
)
from widebnn.experiments.chains.step_cost import STEP_COST, step_cost
from widebnn.experiments.chains.unitwise import UNITWISE, unitwise
from widebnn.experiments.settings.images import INPUTS, PIXELS
from widebnn.experiments.settings.networks import Network
from widebnn.experiments.variational.approximations import APPROXIMATIONS, approximations
from widebnn.experiments.variational.collapse import COLLAPSE, collapse
from widebnn.experiments.variational.elbo_ratio import ELBO_RATIO, elbo_ratio
from widebnn.experiments.variational.mean_field_limit import (
    CONCENTRATION,
    MEAN_FIELD_GAP,
    SUPREMA,
    concentration,
    mean_field_gap,
    suprema,
)
from widebnn.experiments.variational.resnet import RESNET, resnet
from widebnn.experiments.variational.tempering import TEMPERING, TemperedFits, tempering
from widebnn.study import Cost, Experiment

__all__ = ["DECLARED"]


def _declared(
    name,
    title,
    configs,
    function,
    *,
    effort,
    steps=None,
    floats=None,
    over=(),
    observes=lambda c: (),
    **_,
):
    """An experiment whose function has its cost and its claims elsewhere."""

    def cost(c):
        return Cost(effort(c), steps and steps(c), floats and floats(c))

    made = Experiment(function, title, configs, over, cost, observes, None)
    made.name = name
    return made


def _weights(network: Network) -> int:
    """Numbers in a position, about."""
    if network.architecture == "residual":
        return 65 * network.width**2
    first = min(network.num_train, INPUTS) if network.architecture == "dense" else 27
    layer = network.width**2 if network.architecture == "dense" else 9 * network.width**2
    return network.width * first + (network.depth - 1) * layer


def _pixels(network: Network) -> int:
    """Places at which a weight meets an image; of those of a residual network the most see few."""
    if network.architecture == "dense":
        return 1
    every = {"cifar10": 1_024, "mnist": 784, "digits": 64}[network.dataset]
    return every // 7 if network.architecture == "residual" else every


def _products(network: Network) -> int:
    """Multiplications of a potential, about."""
    return network.num_train * (_pixels(network) * _weights(network) + network.num_train * network.width)


def _held(network: Network) -> int:
    """Numbers that a chain holds, about: its state, and outputs of layers and kernels for a gradient."""
    layers = 20 if network.architecture == "residual" else network.depth
    outputs = network.num_train * network.width * _pixels(network) * layers
    return 8 * _weights(network) + 3 * (outputs + network.num_train**2)


def _networks(c: LangevinGain) -> list[Network]:
    return [Network(c.architecture, c.dataset, c.depth, n, width) for width in c.widths for n in c.num_train]


def _observed(networks: Iterable[Network]) -> list[tuple[str, int]]:
    return sorted({(network.dataset, network.num_train) for network in networks})


def _gain_steps(c: LangevinGain) -> int:
    """Of one network."""
    return len(c.parametrisations) * len(c.dampings) * (c.num_steps + c.burn_in)


def _batches(c: TemperedFits) -> int:
    """Of all fits, one after another."""
    return len(c.taus) * c.num_repeats * c.num_epochs * math.ceil(c.num_train / c.batch_size)


# A sampler holds its position, a proposal, gradients, momenta and variates: about 8 times the weights. Adam
# on q holds μ and ρ, their moments, gradients and updates: about 12 times. A fit by L-BFGS-B takes some 2,000
# steps; a step of a ResNet starts about ten times as many operations as one of a sampler.

# Whole stay those whose entries share something: random numbers (approximations, concentration), a chain that
# each part would have to run again (over_reg), the mean and the deviation of the most images (landscape).
_ALL = (
    _declared(
        "unitwise",
        "fresh units and sweeps of them, over width",
        UNITWISE,
        unitwise,
        effort=lambda c: sum(c.widths) * c.num_train**2 * c.num_chains * (c.num_sweeps + c.burn_in),
        steps=lambda c: sum(c.widths) / 32 * (c.num_sweeps + c.burn_in),  # 32 units at a time
        over=(("widths",),),
    ),
    _declared(
        "efficiency",
        "effective samples per second of samplers and of targets",
        EFFICIENCY,
        efficiency,
        effort=lambda c: (
            c.num_train
            * c.num_chains
            * (
                len(c.widths) * len(c.samplers) * c.work
                + 200 * METHODS["HMC"].cost * c.compared_width * c.compared_steps
            )
        ),
        steps=lambda c: (
            len(c.samplers) * sum(c.work / width for width in c.widths)
            + 3 * METHODS["HMC"].cost * c.compared_steps
        ),
    ),
    _declared(
        "convergence",
        "R-hat and traces of three chains over width",
        CONVERGENCE,
        convergence,
        effort=lambda c: sum(c.widths) * sum(c.num_steps) * c.num_chains * c.num_train,
        steps=lambda c: len(c.widths) * sum(c.num_steps),
        over=(("widths",), ("samplers", "num_steps")),
    ),
    *(
        _declared(
            name,
            f"effective samples of Langevin in φ and in θ, {over}",
            configs,
            langevin_gain,
            effort=lambda c: c.num_chains * _gain_steps(c) * sum(map(_products, _networks(c))),
            steps=lambda c: _gain_steps(c) * len(_networks(c)),
            floats=lambda c: c.num_chains * max(map(_held, _networks(c))),
            over=(("widths",), ("num_train",), ("parametrisations",)),
            observes=lambda c: _observed(_networks(c)),
        )
        for name, over, configs in (
            ("gain_over_width", "over width", GAIN_OVER_WIDTH),
            ("gain_over_data", "over the number of observations", GAIN_OVER_DATA),
            ("gain_dense", "of a dense network over steps", GAIN_DENSE),
            ("gain_resnet", "of a residual network over steps", GAIN_RESNET),
        )
    ),
    _declared(
        "architectures",
        "four samplers over width, beyond one hidden layer",
        ARCHITECTURES,
        architectures,
        steps=lambda c: 5 * sum(case.num_steps for case in c.cases),
        floats=lambda c: c.num_chains * max(_held(case.network) for case in c.cases),
        effort=lambda c: c.num_chains * sum(_products(case.network) * case.num_steps for case in c.cases),
        over=(("cases",),),
        observes=lambda c: _observed(case.network for case in c.cases),
    ),
    _declared(
        "step_cost",
        "milliseconds of a step with the map and without, over width",
        STEP_COST,
        step_cost,
        steps=lambda c: 30 * c.num_rounds * len(c.networks),
        floats=lambda c: 4 * max(_held(network) + network.width * INPUTS for network in c.networks),
        effort=lambda c: c.num_rounds * sum(_products(network) + network.width**3 for network in c.networks),
        over=(("networks",),),
        observes=lambda c: _observed(c.networks),
    ),
    _declared(
        "collapse",
        "the best q of a plain ELBO over width",
        COLLAPSE,
        collapse,
        steps=lambda c: len(c.scalings) * len(c.widths) * (c.num_steps + 2_000),
        floats=lambda c: max(c.widths) * (4 * c.num_samples * c.num_digits + 12 * 74),
        effort=lambda c: sum(c.widths) * len(c.scalings) * len(c.losses) * c.num_steps * c.num_samples,
        over=(("losses",), ("scalings",), ("widths",)),
    ),
    _declared(
        "mean_field_gap",
        "how far the ELBO is from its mean-field limit",
        MEAN_FIELD_GAP,
        mean_field_gap,
        steps=lambda c: len(c.scalings) * len(c.widths) * c.num_posteriors * c.num_samples,
        floats=lambda c: max(c.widths) * (3 * c.num_train + 4 * 74),
        effort=lambda c: sum(c.widths) * c.num_train * c.num_posteriors * c.num_samples,
        over=(("losses",), ("scalings",), ("widths",)),
    ),
    _declared(
        "suprema",
        "the best ELBO of N neurons against the best of its limit",
        SUPREMA,
        suprema,
        steps=lambda c: 2_000 * len(c.taus) * len(c.widths) * (1 + c.num_starts),
        floats=lambda c: max(c.widths) * 2 * (6 * 8 + 4 * c.num_train),
        effort=lambda c: len(c.taus) * sum(c.widths) * (1 + c.num_starts) * c.num_train,
        over=(("taus",),),
    ),
    _declared(
        "concentration",
        "the limit functional over samples of the data",
        CONCENTRATION,
        concentration,
        effort=lambda c: sum(c.num_train) * c.num_replicates,
    ),
    _declared(
        "elbo_ratio",
        "the two terms of the ELBO before training",
        ELBO_RATIO,
        elbo_ratio,
        steps=lambda c: (
            sum(math.ceil(p / 2_000) for p in c.num_train) * len(c.widths) * len(c.scalings) * c.num_samples
        ),
        floats=lambda c: max(c.num_train) * PIXELS + max(c.widths) * (4 * PIXELS + 3 * 2_000),
        effort=lambda c: sum(c.num_train) * sum(c.widths) * len(c.scalings) * c.num_samples,
        over=(("datasets", "num_train"), ("scalings",), ("widths",)),
        observes=lambda c: zip(c.datasets, c.num_train),
    ),
    _declared(
        "tempering",
        "a two-layer network over the temperature of the ELBO",
        TEMPERING,
        tempering,
        steps=_batches,
        floats=lambda c: (c.num_train + 2 * c.num_test) * PIXELS + c.width * (12 * PIXELS + 6 * c.batch_size),
        effort=lambda c: len(c.taus) * c.num_repeats * c.num_epochs * c.num_train * c.width,
        over=(("taus",),),
        order=("repeat",),
    ),
    _declared(
        "resnet",
        "ResNet-20 over the temperature of the ELBO",
        RESNET,
        resnet,
        steps=lambda c: 10 * len(c.norms) * _batches(c),
        # 188,000 outputs of convolutions an image, four arrays of each kind, and 270,000 weights
        floats=lambda c: c.num_train * INPUTS + 4 * 188_000 * c.batch_size + 12 * 270_000,
        effort=lambda c: len(c.norms) * len(c.taus) * c.num_repeats * c.num_epochs * c.num_train,
        over=(("norms",), ("taus",)),
        order=("norm", "repeat"),
    ),
    _declared(
        "approximations",
        "one posterior and everything that approximates it",
        APPROXIMATIONS,
        approximations,
        steps=lambda c: (
            c.num_repeats
            * (
                2 * (c.num_sweeps * c.num_draws // c.num_chains + c.burn_in) * c.width
                + (1 + len(c.taus) + c.num_members) * c.num_epochs
            )
        ),
        floats=lambda c: (
            (c.num_repeats * c.num_train + c.num_test) * INPUTS
            + c.width * (12 * INPUTS + c.num_chains * (8 * c.num_train + c.num_test))
            + c.num_chains * c.num_test**2
        ),
        effort=lambda c: (
            c.num_repeats
            * c.num_train
            * c.width
            * (2 * c.num_draws * c.num_sweeps + (2 + len(c.taus)) * c.num_epochs)
        ),
    ),
)

DECLARED = {experiment.name: experiment for experiment in _ALL}
"""Experiments by name."""
