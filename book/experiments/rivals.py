"""From nothing to 400 effective samples: our samplers and those of BlackJAX on one posterior."""

import math
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import jax
import numpy as np

from book.experiments.blackjax_samplers import BLACKJAX, Adaptation
from book.experiments.chain_summaries import behind, finite, jackknife, of_chains, resolved_sample_size
from book.experiments.clock import on_one_thread
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.images import images
from book.experiments.own_samplers import METHODS
from book.experiments.posterior import WATCHED, dense, size
from widebnn import targets
from widebnn.diagnostics import convergence
from widebnn.driver import Draws, sample
from widebnn.driver.stopping import Until
from widebnn.tables import Measure, Results, Row

WIDEST = 128
"""Of the one-layer network that is sampled on its weights: chains do not burn in within the time there, and
wider and deeper ones take longer."""


class Contender(NamedTuple):
    """What a chain moves on, how its sampler is adapted, and how long it burns in."""

    parametrisation: str
    adapt: Adaptation
    burn_in: int


def _ours(name: str) -> Adaptation:
    return lambda *_: METHODS[name].sampler


CONTENDERS: Mapping[str, Contender] = {
    "function-space HMC": Contender("whitened", _ours("function-space HMC, one radian"), 200),
    "unit-wise": Contender("whitened", _ours("unit-wise"), 20),
    "elliptical slice": Contender("whitened", _ours("elliptical slice"), 500),
    **{f"BlackJAX {name}": Contender("whitened", adaptation, 100) for name, adaptation in BLACKJAX.items()},
    "function-space HMC on weights": Contender("weights", _ours("function-space HMC, one radian"), 200),
}
"""By name. What has nothing to adapt beforehand is tuned in the burn-in, if at all. On weights, NUTS of
BlackJAX was still in burn-in after a quarter of an hour at the smallest network, and adjusted MCLMC in
adaptation."""
EXACT_PEERS = [f"BlackJAX {name}" for name in BLACKJAX if name != "unadjusted MCLMC"]
"""On whitened layers."""


@experiment(SETTINGS["rivals"], parts=("widths", "depths", "contenders"))
def rivals(
    dataset, num_train, widths, depths, contenders, num_chains, ess, rhat, seconds, noise_std, seed
) -> Iterator[Row]:
    """From nothing to 400 effective samples: our samplers and those of BlackJAX, each after its adaptation.

    The functions whose effective samples count are the same for all: the potential without the readout, and
    ten entries of ΨΨᵀ. The scale "paper" is a size chosen for a GPU.

    Yields
    ------
    Rows with depth, width, contender, parametrisation ("whitened" or "weights") and dimension; seconds from
    nothing to the end, compilation included, of which adapting_seconds before the first step of the chains
    (compilation included) and sampling_seconds (not included); stopped, what ended the run: "converged",
    "seconds" or "burn-in". Of those that made draws: step_size where our driver tuned it, acceptance,
    num_draws of a chain; ess, the least, with its standard error (jackknife over chains), None where a chain
    is too short to resolve it; rhat, the largest; ess_per_second of chains that have burnt in; and the mean
    of the potential with its standard error, and its standard deviation.

    Raises
    ------
    ImportError
        If BlackJAX is not installed.
    """
    dataset = images(dataset, num_train, 1)
    for width in widths:
        for depth in depths:
            for name in contenders:
                contender = CONTENDERS[name]
                if depth > 1 and name == "unit-wise":  # it would move the last layer alone
                    continue
                if contender.parametrisation == "weights" and (width > WIDEST or depth > 1):
                    continue
                case = {"depth": depth, "width": width, "contender": name}
                marginal = dense(dataset, width, depth, noise_std).marginal
                rng_key = jax.random.fold_in(jax.random.key(seed), 10 * width + depth)
                until = Until(ess=ess, rhat=rhat, seconds=seconds)
                with on_one_thread():  # as in `sample`, for adaptations too
                    yield case | _run(rng_key, marginal, contender, num_chains, until)


def _run(rng_key, marginal, contender: Contender, num_chains: int, until: Until) -> Row:
    start_key, rng_key = jax.random.split(rng_key)
    jax.clear_caches()  # nothing is compiled already
    start = time.perf_counter()
    if contender.parametrisation == "whitened":
        target = targets.whitened(marginal)
    else:
        target = targets.standard(marginal.bnn, marginal.x, marginal.y)
    sampler = contender.adapt(target, target.draw_prior(start_key), rng_key)
    row = {"parametrisation": contender.parametrisation, "dimension": size(target), "stopped": "burn-in"}
    row["adapting_seconds"] = time.perf_counter() - start
    try:
        draws = sample(
            rng_key,
            target,
            sampler,
            num_samples=1_000_000,
            burn_in=contender.burn_in,
            num_chains=num_chains,
            collect=WATCHED,
            until=until,
            progress=False,
        )
    except TimeoutError:
        return row | {"seconds": time.perf_counter() - start}
    row |= {
        "seconds": time.perf_counter() - start,
        "sampling_seconds": draws.seconds,
        "stopped": draws.stopped,
    }
    return row | _summary(draws, contender.burn_in)


def _summary(draws: Draws, burn_in: int) -> Row:
    num_chains, num_draws = draws["potential"].shape
    values = np.concatenate([draws["kernel"], draws["potential"][:, :, None]], axis=2)
    of_a_chain = jackknife(lambda kept: float(resolved_sample_size(kept).min()) / len(kept), values)
    ess = of_a_chain / (1 / num_chains)  # NaN where one is
    speed = ess / (draws.seconds * num_draws / (num_draws + burn_in))
    return of_chains(draws) | {
        "num_draws": num_draws,
        "ess": finite(ess.value),
        "ess_error": finite(ess.error),
        "rhat": finite(convergence(values).rhat.max()),
        "ess_per_second": finite(speed.value),
        "ess_per_second_error": finite(speed.error),
    }


@rivals.claim("X-7")
def outruns(results: Results) -> Iterator[Finding]:
    rows, degrees = results.rows, results.settings["num_chains"] - 1
    cases = sorted({(row["depth"], row["width"]) for row in rows}, reverse=True)
    for depth, width in cases:
        runs = rows.where(depth=depth, width=width)
        found = {
            row["contender"]: Measure.of(row, "ess_per_second")
            for row in runs
            if row.get("ess_per_second_error") is not None
        }
        nothing = Measure(math.nan)
        peers = {name: found[name] for name in EXACT_PEERS if name in found} or {"BlackJAX": nothing}
        best = max(peers, key=lambda name: peers[name].value)
        compared = [row for row in runs if row["contender"] in ("function-space HMC", best)]
        yield Finding(
            f"{depth} hidden layer{'s' * (depth > 1)} of {width:,}: ESS per second ÷ that of {best}",
            found.get("function-space HMC", nothing) / peers[best],
            above=1,
            decides=(depth, width) == cases[0],
            degrees=degrees,
            chains=behind((row.get("ess") for row in compared), (row.get("rhat") for row in compared)),
        )
