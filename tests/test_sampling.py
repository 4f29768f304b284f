"""The driver: one key one result, what is kept and when, tuning, and the company of BlackJAX."""

import io
from functools import partial

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy import stats

import widebnn as wb
from widebnn import samplers
from widebnn._failures import warn_of_failures
from widebnn.driver import _sample
from widebnn.samplers import langevin, pcn, rwm, tuned

from .exact.resume import TARGET

COLLECT = {"a": lambda _, u: u["a"], "b": lambda _, u: u["b"]}  # another function is another program


def run(**options):
    options = {"num_samples": 12, "burn_in": 0, "num_chains": 3, "collect": COLLECT} | options
    sampler = options.pop("sampler", pcn(0.5))
    return wb.sample(jax.random.key(0), TARGET, sampler, **({"progress": False} | options))


def same(first, second):
    return all(np.array_equal(first[name], second[name]) for name in first.collected) and all(
        np.array_equal(first.stats[name], second.stats[name]) for name in first.stats
    )


def test_shapes():
    draws = run(thin=2, burn_in=5)
    assert draws["a"].shape == (3, 12, 2) and draws["b"].shape == (3, 12, 1, 3)
    assert {name: values.shape for name, values in draws.stats.items()} == {
        "acceptance_rate": (3, 12),
        "is_accepted": (3, 12),
    }
    assert draws.position["b"].shape == (3, 1, 3)
    assert np.array_equal(draws["a"][:, -1], draws.position["a"])
    assert draws.step_size is None and draws.seconds > 0
    assert (draws.stopped, draws.reason) == ("num_samples", "num_samples: 12 of 12 draws of each chain")
    assert len({values.tobytes() for values in draws["a"]}) == 3
    tree = draws.to_datatree()["posterior"]
    assert tree["b"].shape == (3, 12, 1, 3) and (tree.attrs["thin"], tree.attrs["burn_in"]) == (2, 5)


@pytest.mark.slow
def test_result_does_not_know_the_chunks(monkeypatch):
    """However many steps or draws are compiled together, and whether a bar is shown."""
    options = {"num_samples": 23, "thin": 3, "burn_in": 17}
    expected = run(**options)
    for draws, seconds in [(100, 1e-9), (7, 100.0)]:
        monkeypatch.setattr(_sample, "MAX_CHUNK_DRAWS", draws)
        monkeypatch.setattr(_sample, "CHUNK_SECONDS", seconds)
        assert same(run(**options), expected)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert same(run(**options, progress=True), expected)


def test_thinning_keeps_every_third_step_and_burn_in_leaves_out_the_first():
    every, third = run(), run(num_samples=4, thin=3)
    assert np.array_equal(third["a"], every["a"][:, 2::3])
    rates = every.stats["acceptance_rate"].reshape(3, 4, 3).mean(axis=2)
    assert np.allclose(third.stats["acceptance_rate"], rates, atol=1e-6)
    assert np.array_equal(run(num_samples=7, burn_in=5)["a"], every["a"][:, 5:])


@pytest.mark.slow
def test_draws_that_diverged_are_a_warning():
    """Without correction the leapfrog is unstable from ε = 2 on."""
    norm = {"norm": lambda _, u: jnp.sum(u["a"])}
    words = (
        "values of 'norm' in 3, 'streamed norm' in 3 of 3 chains are NaN: if they diverged, .* the function"
    )
    with pytest.warns(wb.ChainWarning, match=words):
        run(sampler=langevin(100.0, 0.5, metropolis=False), collect=norm, stream=norm, num_samples=100)


def test_failures_are_counted_in_words():
    """Fewer than 100 proposals say too little: warnings are errors here."""
    u = {"u": np.zeros((4, 2))}
    for rates, num_steps, words in [
        ([0.0, 0.0, 0.0, 0.0], 50, "^4 of 4 chains accepted none of their 50 proposals"),
        ([5e-4, 2e-4, 0.0, 9e-4], 20_000, "^4 of 4 chains accepted fewer than one in 1,000 of their 20,000"),
        ([0.5, 0.0, 0.5, 0.5], 100, "^1 of 4 chains accepted none of their 100"),
    ]:
        with pytest.warns(wb.ChainWarning, match=words):
            warn_of_failures(np.array(rates), num_steps, u)
    warn_of_failures(np.zeros(4), 20, u)
    warn_of_failures(np.array([0.5, 0.0, 0.5, 0.5]), 99, u)
    undefined = u | {"log": np.array([np.nan, 1.0, np.nan, 2.0])}
    with pytest.warns(wb.ChainWarning, match="^values of 'log' in 2 of 4 chains are NaN"):
        warn_of_failures(np.full(4, 0.5), 100, undefined)


@pytest.mark.slow
def test_initial_positions_are_where_chains_start():
    walk = partial(run, sampler=rwm(1e-4), num_samples=1)
    start = {"a": jnp.asarray([[5.0, -5.0], [3.0, 3.0], [0.0, 1.0]]), "b": jnp.full((3, 1, 3), 2.0)}
    draws = walk(initial=start)
    assert np.allclose(draws["a"][:, 0], start["a"], atol=0.01)
    assert np.allclose(walk(initial=draws.position)["a"], draws["a"], atol=0.01)


@pytest.mark.slow
def test_functions_that_want_a_key_get_a_fresh_one():
    collect = {
        "first": lambda _, u, rng_key: jax.random.normal(rng_key),
        "second": lambda _, u, rng_key: jax.random.normal(rng_key),
        "u": lambda _, u: u["a"],
    }
    draws = run(collect=collect, stream={"noise": collect["first"]}, num_samples=1_000)
    noise = draws.streamed["noise"]
    assert abs(noise.mean) < 6 / np.sqrt(3_000) and abs(noise.variance - 1) < 6 * np.sqrt(2 / 3_000)
    assert len(np.unique(noise.chain_mean)) == 3
    assert not np.isclose(noise.chain_mean, draws["first"].mean(axis=1)).any()
    values = np.concatenate([draws["first"].ravel(), draws["second"].ravel()])
    assert len(np.unique(values)) == 6_000
    assert stats.kstest(values, stats.norm.cdf).pvalue > 1e-6
    assert abs(np.corrcoef(draws["first"].ravel(), draws["second"].ravel())[0, 1]) < 5 / np.sqrt(3_000)
    assert np.array_equal(draws["u"], run(num_samples=1_000)["a"])


@pytest.mark.slow
def test_tuning_reaches_the_wanted_acceptance_and_freezes():
    """On a Gaussian reference with one stiff direction; the rate is of the draws after tuning."""
    target = wb.targets.from_potential(lambda u: 50 * (u[0] - 1) ** 2, jnp.zeros(5))
    options = {"num_samples": 500, "num_chains": 16, "progress": False}
    found = wb.sample(jax.random.key(0), target, tuned(rwm(0.05), 0.25, 5.0), burn_in=1_500, **options)
    assert abs(found.acceptance_rate - 0.25) < 0.03
    frozen = wb.sample(jax.random.key(1), target, rwm(found.step_size), burn_in=300, **options)
    assert abs(frozen.acceptance_rate - found.acceptance_rate) < 0.03


def test_step_size_stays_below_its_limit():
    flat = wb.targets.from_potential(lambda u: 0.0 * jnp.sum(u), jnp.zeros(3))
    draws = wb.sample(
        jax.random.key(0),
        flat,
        tuned(pcn(0.1), 0.5, max_step_size=0.8),
        num_samples=5,
        burn_in=200,
        num_chains=1,
        progress=False,
    )
    assert 0.79 < draws.step_size < 0.8 * (1 + 1e-6) and draws.acceptance_rate == 1


@pytest.mark.slow
def test_blackjax_nuts_on_logdensity_gives_the_exact_posterior():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(5, 3)), rng.normal(size=(5, 1))
    target = wb.targets.linear(jnp.asarray(x), jnp.asarray(y), noise_std=0.7)
    precision = np.eye(3) + x.T @ x / 0.49
    half_of_stable = 1 / np.sqrt(np.linalg.norm(precision, 2))
    nuts = samplers.from_blackjax(partial(blackjax.nuts, inverse_mass_matrix=jnp.ones(3)), half_of_stable)
    with jax.numpy_rank_promotion("allow"):  # BlackJAX broadcasts freely
        draws = wb.sample(
            jax.random.key(0),
            target,
            nuts,
            num_samples=200,
            burn_in=50,
            num_chains=64,
            collect={"theta": lambda _, theta: theta[:, 0]},
            progress=False,
        )
    sigma = np.linalg.inv(precision)
    mu = (sigma @ x.T @ y / 0.49)[:, 0]
    first, second = draws["theta"].mean(axis=1), ((draws["theta"] - mu) ** 2).mean(axis=1)
    for values, exact in [(first, mu), (second, np.diag(sigma))]:
        error = values.std(axis=0, ddof=1) / np.sqrt(64)
        assert np.all(np.abs(values.mean(axis=0) - exact) < stats.t.isf(1e-6, 63) * error)
        assert np.all(error < 0.1 * np.sqrt(np.diag(sigma)))
    assert set(draws.stats) == {"acceptance_rate", "diverging", "n_steps"}
    assert draws.stats["n_steps"].min() >= 1 and draws.stats["diverging"].max() == 0
    tree = draws.to_datatree()
    assert tree["sample_stats"]["diverging"].dtype == bool


@pytest.mark.slow
def test_sampler_that_reports_no_acceptance_accepts_every_move():
    mclmc = samplers.from_blackjax(partial(blackjax.mclmc, L=1.0), 0.2)
    with jax.numpy_rank_promotion("allow"):  # BlackJAX broadcasts freely
        draws = run(sampler=mclmc)
    assert draws.stats["acceptance_rate"].shape == (3, 12) and draws.acceptance_rate == 1
    assert len(np.unique(draws["a"])) == draws["a"].size


def test_our_sampler_runs_in_a_loop_of_blackjax():
    sampler = pcn(0.5).bind(TARGET)
    start = TARGET.draw_prior(jax.random.key(0))
    final, (states, infos) = blackjax.util.run_inference_algorithm(
        jax.random.key(1), sampler, num_steps=50, initial_position=start
    )
    assert states.position["a"].shape == (50, 2)
    assert np.array_equal(states.position["b"][-1], final.position["b"])
    assert 0 < infos.acceptance_rate.mean() < 1


@pytest.mark.slow
def test_defaults_are_the_same_with_a_sampler_and_without():
    """Four chains, 300 steps of burn-in, until they have converged, and positions from which to predict."""
    x_new = np.ones((2, 2), np.float32)
    bnn = wb.BNN(wb.models.FCN(2, 8, rngs=nnx.Rngs(0)), 1, noise_std=0.5)
    chosen = wb.auto(wb.targets.marginal(bnn, np.eye(2), np.ones(2)))
    by_hand = wb.sample(jax.random.key(0), chosen.target, chosen.sampler, progress=False)
    itself = wb.sample(jax.random.key(0), wb.targets.marginal(bnn, np.eye(2), np.ones(2)), progress=False)
    assert same(by_hand, itself) and by_hand["potential"].shape[0] == 4
    assert by_hand.burn_in == 300 and by_hand.stopped == "converged"
    assert np.array_equal(by_hand.predict(x_new).mean, itself.predict(x_new).mean)


def test_no_key_is_used_twice():
    """By JAX's own check, which counts an index into keys within a loop as a use."""
    options = {
        "collect": {"n": lambda _, u, rng_key: jax.random.normal(rng_key)},
        "stream": {"p": wb.potential},
    }
    with jax.debug_key_reuse(True):
        run(**options, num_samples=3, burn_in=2)
