"""Every experiment that there is."""

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
from widebnn.experiments.settings.images import INPUTS
from widebnn.experiments.settings.networks import Network
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


# A sampler holds its position, a proposal, gradients, momenta and variates: about 8 times the weights.

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
)

DECLARED = {experiment.name: experiment for experiment in _ALL}
"""Experiments by name."""
