"""The experiment beyond one hidden layer: rows against importance sampling, parts, claims on made-up rows."""

import dataclasses
import importlib
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widebnn as wb
from widebnn.experiments import (
    CLAIMS,
    Architectures,
    Case,
    Network,
    architectures,
)
from widebnn.experiments.settings.networks import network, observed
from widebnn.study import Results, Rows, verdict

MODULE = importlib.import_module(architectures.__module__)
NETWORK = Network("dense", "digits", depth=1, num_train=2, width=32)
CASE = Case(NETWORK, step_size=0.5, num_steps=1_200)


def of(**change):
    return CASE._replace(network=NETWORK._replace(**change))


TINY = Architectures(cases=(CASE,), num_test=2, num_kicks=2, thin=4, noise_std=0.3)


def weighted(case, num_draws=20_000):
    """Mean of U and acceptance of pCN under the posterior, by prior draws weighted with e^−U."""
    architecture, name, depth, num_train, width = case.network
    dataset = observed(architecture, name, num_train, 1)
    bnn = network(architecture, dataset, width, depth, TINY.noise_std, TINY.seed)
    target = wb.targets.marginal(bnn, dataset.x_train, dataset.y_train)

    def one(key):
        u, xi = (target.draw_prior(k) for k in jax.random.split(key))
        v = jax.tree.map(lambda u, xi: jnp.sqrt(1 - case.step_size**2) * u + case.step_size * xi, u, xi)
        return target.potential(u), target.potential(v)

    u, v = (
        np.asarray(each, float)
        for each in jax.lax.map(one, jax.random.split(jax.random.key(5), num_draws), batch_size=500)
    )
    weight = np.exp(u.min() - u)
    weight /= weight.sum()
    return weight @ u, weight @ np.exp(np.minimum(0, u - v)), 1 / (weight @ weight)


@pytest.mark.slow
def test_chains_are_in_the_posterior(monkeypatch):
    some = {name: MODULE.SAMPLERS[name] for name in ("pCN", "Langevin")}
    monkeypatch.setattr(MODULE, "SAMPLERS", some)  # compiling is what takes time here
    rows = list(architectures(TINY))
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    assert [row["sampler"] for row in rows] == ["pCN", "Langevin", "HMC"]
    potential, acceptance, effective = weighted(CASE)
    assert effective > 400
    for row in rows:
        assert row["dimension"] == 64 * 32 + 32 + 33 * 10  # all of φ
        assert abs(row["potential"] - potential) < 5 * row["potential_error"] + 0.1, row["sampler"]
        assert row["ess_potential"] > 0 and row["ms_per_step"] > 0
    assert abs(rows[0]["acceptance"] - acceptance) < 5 * rows[0]["acceptance_error"] + 0.02


@pytest.mark.slow
def test_parts_are_the_whole(monkeypatch):
    def from_the_key(rng_key, sampler, target, *, num_samples, thin=1, num_chains, **options):
        """Numbers that a chain might have left, which its key and its target decide."""
        key = jax.random.fold_in(rng_key, sum(leaf.size for leaf in jax.tree.leaves(target.template)))
        noise = np.asarray(jax.random.uniform(key, (num_chains, num_samples)))
        collected = {"potential": noise, "predictions": noise[..., None]}
        return wb.Draws(collected, {"acceptance_rate": noise}, {}, None, 0.1, thin, 0, seconds=1.0)

    monkeypatch.setattr(MODULE, "sample", from_the_key)
    networks = (
        NETWORK,
        NETWORK._replace(width=8),
        NETWORK._replace(architecture="convolutional", width=3),
        NETWORK._replace(architecture="residual", width=4),
    )
    cases = tuple(CASE._replace(network=network) for network in networks)
    config = dataclasses.replace(TINY, cases=cases)
    parts = architectures.parts(config)
    assert [part.cases for part in parts] == [(case,) for case in cases]
    whole = list(architectures(config))
    backwards = [list(architectures(part)) for part in parts[::-1]]
    assert [row for rows in backwards[::-1] for row in rows] == whole
    assert len({row["potential"] for row in whole}) == len(cases)
    assert [row["num_steps"] for row in whole[:5]] == [1_200, 1_200, 1_200, 1_200, 600]


def summary(potential):
    """Of two chains, kept every other step for a second."""
    return MODULE._summary(
        wb.Draws(
            collected={"potential": potential, "predictions": np.zeros((*potential.shape, 3))},
            stats={"acceptance_rate": np.zeros(potential.shape)},
            streamed={},
            position=None,
            step_size=None,
            thin=2,
            burn_in=0,
            seconds=1.0,
        )
    )


def test_chains_that_do_not_move_have_no_number():
    found = summary(np.zeros((2, 20)))
    for name in ("ess", "ess_bulk", "ess_tail", "rhat"):
        assert found[f"{name}_potential"] is None
    assert found["acceptance_error"] is None
    assert found["acceptance"] == 0 and found["ms_per_step"] == 12.5
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    stuck = np.stack([np.zeros(20), np.arange(20.0)])
    assert summary(stuck)["rhat_potential"] is summary(stuck)["ess_bulk_potential"] is None


def test_bulk_and_tail_see_chains_that_disagree():
    """Independent draws of every other step: half an effective sample a step, few where the chains differ."""
    independent = np.random.default_rng(0).normal(size=(2, 2_000))
    agreeing, apart = summary(independent), summary(np.array([[-2.0], [2.0]]) + independent)
    for name in ("ess_bulk", "ess_tail"):
        assert 0.35 < agreeing[f"{name}_potential"] < 0.65
        assert apart[f"{name}_potential"] < 0.05
    assert apart["ess_potential"] == pytest.approx(agreeing["ess_potential"])  # chain by chain


def rows(gain, **rates):
    """A setting of two widths: of each sampler two acceptances, and pCNL's effective samples over pCN's."""
    made, rates = [], rates | {"Langevin, γ = 0.01": rates["Langevin"]}
    for name, pair in rates.items():
        for width, rate in zip((8, 64), pair, strict=True):
            ess = 0.1 * (gain[width == 64] if name == "pCNL" else 1.0)
            made.append(
                {"architecture": "dense", "dataset": "digits", "depth": 1, "width": width, "sampler": name}
                | {"num_steps": 1_000, "acceptance": rate, "acceptance_error": 0.01}
                | {"ess_potential": ess, "ess_potential_error": 0.001}
                | {"ess_bulk_potential": ess, "ess_tail_potential": ess, "rhat_potential": 1.02}
            )
    return made


def judged(made):
    (claim,) = [claim for claim in CLAIMS if claim.id == "P-X"]
    findings = claim.summarise(Results(Rows(reversed(made)), {"num_chains": 2}, {}))
    return verdict(claim, findings), findings


def test_verdicts_follow_the_numbers():
    rising = {"pCN": (0.1, 0.6), "pCNL": (0.5, 0.9), "Langevin": (0.5, 0.3)}
    assert judged(rows((1.0, 3.0), **rising))[0] == "reproduced"
    falling = {"pCN": (0.6, 0.5), "pCNL": (0.5, 0.4), "Langevin": (0.3, 0.5)}
    assert judged(rows((3.0, 1.0), **falling))[0] == "not reproduced"
    assert judged(rows((3.0, 1.0), **rising))[0] == "reproduced in part"


def test_too_few_effective_samples_resolve_no_gap():
    made = rows((1.0, 3.0), pCN=(0.1, 0.6), pCNL=(0.5, 0.9), Langevin=(0.5, 0.3))
    made[0]["ess_bulk_potential"] = 0.07  # 140 of two chains of 1,000 steps
    *_, gap = judged(made)[1]
    assert np.isnan(gap.value) and not gap.holds


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cases": (of(architecture="recurrent"),)}, ["architecture", "recurrent", "dense"]),
        ({"cases": (CASE, of(dataset="imagenet"))}, ["dataset", "imagenet", "digits"]),
        ({"cases": (CASE._replace(step_size=1.5),)}, ["step_size", "1.5"]),
        ({"cases": (CASE._replace(num_steps=31),)}, ["num_steps", "at least 32", "31"]),
        ({"num_chains": 1}, ["num_chains", "at least 2"]),
        ({"thin": 3}, ["thin", "multiple of num_kicks=2", "3"]),
    ],
)
def test_bad_configurations_are_refused_where_they_are_made(change, words):
    with pytest.raises(ValueError) as error:
        dataclasses.replace(TINY, **change)
    for word in words:
        assert word in str(error.value)


def test_the_longest_series_reaches_beyond_the_papers_widths():
    networks = [case.network for case in architectures.scales["laptop"].cases]
    widths = [network.width for network in networks if network[:3] == ("dense", "cifar10", 1)]
    assert widths[0] == 512 and widths[-1] == 16_384
