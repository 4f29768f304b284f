"""Four samplers over width: more layers, other architectures and other data (Pezzetti et al. 2025, §5)."""

import math
from collections.abc import Iterator
from typing import Any

import arviz
import jax
import numpy as np

from book.experiments.chain_summaries import behind, ess_per_step, finite, is_resolved, mean_of_chains
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.networks import Network, network, observed
from book.experiments.posterior import LMC, SAMPLERS, Posterior, size
from widebnn import collectors, samplers
from widebnn.diagnostics import bulk_and_tail
from widebnn.driver import Draws, sample
from widebnn.tables import Measure, Results, Row


@experiment(SETTINGS["architectures"], parts="cases")
def architectures(cases, num_test, num_kicks, num_chains, thin, noise_std, seed) -> Iterator[Row]:
    """Samplers over width, beyond one hidden layer.

    The target is the marginal one, rotated where the first layer is dense: what that leaves out of φ has a
    constant potential, which neither pCN nor pCNL nor function-space HMC sees; Langevin carries its norm
    (`num_flat` of `widebnn.samplers.langevin`). The acceptance of all is in law the one on the whole of φ.

    A case is a network, the coefficient of the noise (the leapfrog step where γ is not 1) of all samplers but
    HMC, and the steps of a chain, which are the gradients of one of HMC; as many of HMC first bring chains
    from the prior to where all samplers start.

    Yields
    ------
    Rows with the network and sampler; step_size, of HMC as tuned; num_test; num_steps of a chain, proposals
    of HMC; dimension of φ; acceptance and mean potential, each with its standard error; effective samples per
    step of the potential and of Rao–Blackwellised predictions (mean over test images × outputs), each with
    the standard error from the scatter over chains; rank-normalised R̂ of the potential, and its `ess_bulk_`
    and `ess_tail_` of all chains together, per step of one chain; milliseconds per step of one chain. None
    where a chain that never moved leaves a number undefined.
    """
    burn_in_key, rng_key = jax.random.split(jax.random.key(seed))
    for case in cases:
        one, step_size, num_steps = Network(*case[0]), *case[1:]
        dataset = observed(one.architecture, one.dataset, one.num_train, num_test)
        bnn = network(one.architecture, dataset, one.width, one.depth, noise_std, seed)
        posterior = Posterior(bnn, dataset)
        target = posterior.informed
        hmc = samplers.function_space_hmc(0.1, num_kicks)
        hmc = samplers.tuned(hmc, 0.8, max_step_size=np.pi / 2)
        equilibrium = sample(
            burn_in_key, target, hmc, num_samples=1, burn_in=num_steps // num_kicks, num_chains=num_chains
        )
        angle: Any = equilibrium.step_size  # a number, since it was tuned
        made = {name: make(posterior, step_size) for name, make in SAMPLERS.items()}
        for name, sampler in (made | {"HMC": hmc.at(angle)}).items():
            draws = sample(
                rng_key,
                target,
                sampler,
                num_samples=num_steps // thin,
                thin=thin // (num_kicks if name == "HMC" else 1),
                burn_in=0,
                num_chains=num_chains,
                initial=equilibrium.position,
                collect={
                    "potential": collectors.potential,
                    "predictions": collectors.predictive_mean(posterior.seen),
                },
            )
            yield one._asdict() | {
                "sampler": name,
                "step_size": angle if name == "HMC" else step_size,
                "num_test": draws["predictions"].shape[2],
                "num_steps": draws["potential"].shape[1] * draws.thin,
                "dimension": size(posterior.repriorised),
                **_summary(draws),
            }


def _summary(draws: Draws) -> Row:
    potential = draws["potential"].astype(float)
    num_steps = potential.shape[1] * draws.thin
    total_steps = len(potential) * num_steps
    has_moved = bool(np.ptp(potential, axis=1).all())  # else R̂ is a ratio to a variance of 0 or of rounding
    with np.errstate(invalid="ignore", divide="ignore"):
        ranked = {"rhat": arviz.rhat(potential)}
    ranked |= {name: ess / total_steps for name, ess in bulk_and_tail(potential).items()}
    found = {f"{name}_potential": finite(value) if has_moved else None for name, value in ranked.items()}
    measures = {
        "acceptance": mean_of_chains(draws.stats["acceptance_rate"]),
        "potential": mean_of_chains(potential),
    }
    measures |= {f"ess_{name}": ess_per_step(values, num_steps) for name, values in draws.collected.items()}
    for name, measure in measures.items():
        found |= {column: finite(value) for column, value in measure.columns(name).items()}
    return found | {"ms_per_step": 1e3 * draws.seconds / total_steps}


SETTING = ("architecture", "dataset", "depth")


@architectures.claim("P-X")
def left_open(results: Results) -> Iterator[Finding]:
    for (architecture, dataset, depth), rows in results.rows.by(*SETTING):
        what = f"{architecture}, {dataset}, depth {depth}"
        rates = {
            name: rows.where(sampler=name).over("width", "acceptance", "acceptance_error")
            for name in ("pCN", "pCNL", *LMC.values())
        }
        for name in ("pCN", "pCNL"):
            rise = rates[name][-1] - rates[name][0]
            yield Finding(f"{what}: {name}, widest less narrowest", rise, above=0)
        above = rates["pCNL"][-1] - rates["pCN"][-1]
        yield Finding(f"{what}: pCNL less pCN, widest", above, above=0)
        for lmc, name in LMC.items():
            gaps = [a - b for a, b in zip(rates["pCNL"], rates[name], strict=True)]
            yield Finding(f"{what}: pCNL less {lmc}, widest less narrowest", gaps[-1] - gaps[0], above=0)
    longest, gains = (max((rows for _, rows in results.rows.by(*SETTING)), key=len), [])
    counted: list[Row] = []
    num_chains = results.settings["num_chains"]
    for width in sorted(longest.values("width")):
        pair = [longest.one(width=width, sampler=name) for name in ("pCNL", "pCN")]
        per_step = [row[f"ess{kind}_potential"] for row in pair for kind in ("_bulk", "_tail")]
        total = pair[0]["num_steps"] * num_chains
        if is_resolved(*(ess and ess * total for ess in per_step)):
            pcnl, pcn = (Measure.of(row, "ess_potential") for row in pair)
            gains.append(pcnl / pcn)
            counted += pair
    widens = gains[-1] / gains[0] if len(gains) > 1 else math.nan
    what = "ESS of U, pCNL ÷ pCN, over most widths: widest ÷ narrowest resolved"
    ends = counted[:2] + counted[-2:]
    ess = (row["ess_bulk_potential"] * row["num_steps"] * num_chains for row in ends)
    chains = behind(ess, (row["rhat_potential"] for row in ends)) if len(gains) > 1 else None
    yield Finding(what, widens, above=1, chains=chains)
