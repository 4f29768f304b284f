"""Diagnostics against direct sums in float64, closed forms, and ArviZ."""

import arviz
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from flax import nnx

import widebnn as wb
from widebnn import diagnostics
from widebnn.diagnostics import (
    LEAST_RESOLVED,
    band,
    by_layer,
    convergence,
    effective_sample_size,
    layer_projections,
    nested_rhat,
    principal_components,
    random_projections,
    resolved_sample_size,
    rhat,
    rhat_squared,
)


def ar1(rho, shape, seed=0):
    """A stationary AR(1) process over the draws of (chain, draw, *event), variance 1."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=shape)
    x = np.empty(shape)
    x[:, 0] = noise[:, 0]
    for i in range(1, shape[1]):
        x[:, i] = rho * x[:, i - 1] + np.sqrt(1 - rho**2) * noise[:, i]
    return x


def direct_ess(chain, cut=True, unbiased=True):
    """The ESS of one chain by the formula itself, a lag at a time; the switches plant the two likely bugs."""
    n = len(chain)
    z = chain - chain.mean()
    time = 1.0
    for k in range(1, n):
        rho = (z[: n - k] @ z[k:]) / (n - k if unbiased else n) / (z @ z / n)
        if cut and rho < 0:
            break
        time += 2 * (1 - k / n) * rho
    return n / time


def test_ess_is_the_direct_sum():
    x = ar1(0.7, (3, 60, 2, 4))
    by_hand = np.array([[[direct_ess(x[c, :, i, j]) for j in range(4)] for i in range(2)] for c in range(3)])
    np.testing.assert_allclose(effective_sample_size(x), by_hand.sum(axis=0), rtol=1e-10)


@pytest.mark.parametrize("bug", [{"cut": False}, {"unbiased": False}], ids=["no cut", "divided by N"])
def test_ess_test_would_see_the_bug(bug):
    x = ar1(0.7, (1, 60))
    assert abs(direct_ess(x[0], **bug) / effective_sample_size(x) - 1) > 0.02  # 10⁸ times the tolerance above


def test_ess_stops_at_the_first_negative_lag():
    """A series with ρ₁ > 0 > ρ₂ and positive terms later, which must not count."""
    x = jnp.array([[1.0, 0.0, -1.0, 0.0, 1.0, 1.0, 0.0, -1.0, 0.0, 1.0, 0.0, -1.0, -1.0]])
    z = np.asarray(x[0] - x.mean())
    lags = [z[: 13 - k] @ z[k:] for k in range(13)]
    assert lags[1] > 0 > lags[2] and max(lags[3:]) > 0
    np.testing.assert_allclose(effective_sample_size(x), 13 / (1 + 2 * lags[1] / lags[0]), rtol=1e-12)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_ess_of_ar1(rho):
    """(1 − ρ)/(1 + ρ) a draw: the mean over 50 series lies within four standard errors and 3 %."""
    ess = np.asarray(effective_sample_size(ar1(rho, (4, 5_000, 50)))) / 20_000
    exact = (1 - rho) / (1 + rho)
    assert abs(ess.mean() - exact) < 4 * ess.std(ddof=1) / np.sqrt(50) + 0.03 * exact


@pytest.mark.slow
def test_float32_sees_small_changes_of_a_large_value():
    """A potential near 10⁴ that moves by 0.1: single precision stores it in steps of 0.001."""
    x = 1e4 + 0.1 * ar1(0.8, (4, 1_000))
    for statistic, tolerance in [(effective_sample_size, 0.02), (rhat, 1e-4)]:
        single = statistic(x.astype(np.float32))
        assert single.dtype == jnp.float32
        np.testing.assert_allclose(single, statistic(x), rtol=tolerance)


def test_ess_keeps_its_value_at_any_scale():
    x = jnp.asarray(ar1(0.5, (2, 300)), jnp.float32)
    for scale in [1e-25, 1e25]:
        np.testing.assert_allclose(effective_sample_size(scale * x), effective_sample_size(x), rtol=1e-3)


@pytest.mark.slow
def test_ess_of_many_series_is_that_of_each():
    x = np.moveaxis(ar1(0.5, (600, 2, 40)), 0, 2)  # in blocks of 256, and what is left
    each = [effective_sample_size(x[:, :, i]) for i in (0, 255, 256, 511, 512, 599)]
    np.testing.assert_allclose(effective_sample_size(x)[np.array([0, 255, 256, 511, 512, 599])], each)
    assert effective_sample_size(x.reshape(2, 40, 20, 30)).shape == (20, 30)


def test_ess_of_many_series_takes_little_more_memory_than_they():
    draws = jax.ShapeDtypeStruct((3, 1_000, 10_000), jnp.float32)
    memory = jax.jit(effective_sample_size).lower(draws).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 2 * memory.argument_size_in_bytes


@pytest.mark.slow
def test_a_chain_that_never_moves_has_no_ess_or_rhat():
    stuck = jnp.full((2, 50), 1e4 + 0.3)
    assert jnp.isnan(effective_sample_size(stuck)) and jnp.isnan(rhat(stuck))
    assert jnp.isnan(effective_sample_size(jnp.stack([stuck[0], jnp.arange(50.0)])))
    assert rhat(jnp.stack([stuck[0], stuck[0] + 1])) == jnp.inf


def test_rhat_squared_is_brooks_and_gelmans_ratio():
    x = ar1(0.9, (3, 40, 5))
    m, n = 3, 40
    within = x.var(axis=1, ddof=1).mean(axis=0)
    between = n * x.mean(axis=1).var(axis=0, ddof=1)
    pooled = (n - 1) / n * within + between / n
    tfp = (m + 1) / m * pooled / within - (n - 1) / (m * n)  # the expression in their order
    np.testing.assert_allclose(rhat_squared(x), tfp, rtol=1e-12)
    np.testing.assert_allclose(rhat(x), np.sqrt(tfp), rtol=1e-12)


def test_excess_over_the_papers_formulas():
    """The three estimators weigh the variance of the chains' means by 1 + 1/M, 1 and 1 − 1/M."""
    x = ar1(0.9, (3, 40))
    m, n = 3, 40
    printed_by_pezzetti = arviz.rhat(x, method="identity") ** 2
    np.testing.assert_allclose(
        rhat_squared(x) - (n - 1) / n, (1 + 1 / m) * (printed_by_pezzetti - (n - 1) / n), rtol=1e-10
    )
    within, of_means = x.var(axis=1).mean(), x.mean(axis=1).var()
    hron_eq6 = (within + of_means) / within
    np.testing.assert_allclose(hron_eq6, x.var() / within, rtol=1e-12)  # the law of total variance
    ratio = (rhat_squared(x) - (n - 1) / n) / (hron_eq6 - 1)
    np.testing.assert_allclose(ratio, (1 + 1 / m) / (1 - 1 / m) * (n - 1) / n, rtol=1e-10)


def test_rhat_sees_chains_that_disagree():
    x = ar1(0.3, (4, 500))
    assert rhat(x) < 1.01
    assert rhat(x + np.arange(4)[:, None]) > 1.5


@pytest.mark.slow
def test_arviz_agrees_on_chains_that_mix():
    """Rank-normalised and ours differ in their estimators, not in what they estimate: means over 30 series
    agree within 5 % (ESS) and 0.002 (R̂). The printed numbers of one series need not."""
    x = ar1(0.5, (4, 2_000, 30))
    ess, ess_arviz = np.asarray(effective_sample_size(x)), arviz.ess(x)
    assert ess_arviz.shape == ess.shape and abs(ess_arviz.mean() / ess.mean() - 1) < 0.05
    assert abs(np.asarray(rhat(x)).mean() - arviz.rhat(x).mean()) < 0.002


@pytest.mark.slow
def test_statistics_take_arrays_of_both_kinds_and_may_be_compiled():
    x = jax.random.normal(jax.random.key(0), (2, 100, 3))
    for statistic in [effective_sample_size, rhat_squared, rhat]:
        assert statistic(x).shape == (3,) and statistic(x[..., 0]).shape == ()
        np.testing.assert_allclose(statistic(np.asarray(x)), statistic(x), rtol=1e-6)
        np.testing.assert_allclose(jax.jit(statistic)(x), statistic(x), rtol=1e-5)


def direct_nested_rhat(x, num_superchains, inside=True):
    """By the definition, superchain by superchain; the switch plants the likely bug."""
    chains = np.split(x, num_superchains)
    between = np.var([of.mean() for of in chains], ddof=1)
    within = [
        (np.var(of.mean(axis=1), ddof=1) if inside and len(of) > 1 else 0)
        + (np.var(of, axis=1, ddof=1).mean() if of.shape[1] > 1 else 0)
        for of in chains
    ]
    return np.sqrt(1 + between / np.mean(within))


@pytest.mark.parametrize("shape", [(6, 4, 5), (6, 40, 1), (12, 1, 3)], ids=["draws", "one entry", "one draw"])
@pytest.mark.parametrize("num_superchains", [2, 3])
def test_nested_rhat_is_its_definition(shape, num_superchains):
    x = ar1(0.9, shape) + np.arange(shape[0])[:, None, None]
    by_hand = [direct_nested_rhat(x[:, :, i], num_superchains) for i in range(shape[2])]
    np.testing.assert_allclose(nested_rhat(x, num_superchains), by_hand, rtol=1e-12)
    if shape[1] > 1:
        without = [direct_nested_rhat(x[:, :, i], num_superchains, inside=False) for i in range(shape[2])]
        assert np.all(np.abs(np.divide(without, by_hand) - 1) > 1e-6), "the test would not see the bug"


def test_nested_rhat_of_superchains_of_one_chain():
    """Margossian et al., footnote to their definition: the excess differs by a factor alone."""
    x = ar1(0.9, (5, 40, 3))
    n, k = 40, 5
    np.testing.assert_allclose(
        rhat_squared(x) - (n - 1) / n, (1 + 1 / k) * (nested_rhat(x, k) ** 2 - 1), rtol=1e-10
    )


def test_arviz_has_the_same_nested_rhat():
    x = ar1(0.8, (12, 30, 4))
    ids = np.repeat(np.arange(3), 4)
    np.testing.assert_allclose(
        nested_rhat(x, 3), arviz.rhat_nested(x, superchain_ids=ids, method="identity"), rtol=1e-10
    )


@pytest.mark.parametrize("num_draws", [1, 4])
def test_nested_rhat_of_independent_draws_is_near_one(num_draws):
    """The excess over 1 is 1/M for one draw, 1/(M(N + 1)) for N; the mean over 400 series within 10 %."""
    x = np.random.default_rng(0).normal(size=(160, num_draws, 400))
    excess = np.asarray(nested_rhat(x, 16)) ** 2 - 1
    expected = 1 / 10 if num_draws == 1 else 1 / (10 * (num_draws + 1))
    assert abs(excess.mean() / expected - 1) < 0.1


@pytest.mark.slow
def test_nested_rhat_of_superchains_that_remember_their_start():
    """Starts of variance 4 beside draws of variance 1: the excess is near 4, by few chains or many."""
    rng = np.random.default_rng(0)
    for m in (1, 50):
        starts = 2 * rng.normal(size=(40, 1, 1, 300))
        x = (starts + rng.normal(size=(40, m, 20, 300))).reshape(40 * m, 20, 300)
        excess = np.asarray(nested_rhat(x, 40)) ** 2 - 1
        expected = (4 + 1 / (20 * m)) / (1 + (m > 1) / 20)
        assert abs(excess.mean() / expected - 1) < 0.05


def test_nested_rhat_where_nothing_moves():
    stuck = jnp.full((4, 5), 3.0)
    assert jnp.isnan(nested_rhat(stuck, 2)) and nested_rhat(stuck.at[2:].add(1), 2) == jnp.inf


@pytest.mark.slow
def test_many_short_chains_of_a_run_agree():
    """64 chains of four starts and ten draws, after burn-in and before it."""
    target = wb.targets.from_potential(lambda u: jnp.sum(u**4), jnp.zeros(2))
    starts = jax.vmap(target.draw_prior)(jax.random.split(jax.random.key(1), 4)).repeat(16, axis=0)

    def found(burn_in):
        draws = wb.sample(
            jax.random.key(0),
            wb.samplers.pcn(target.potential, 0.2),
            target,
            num_samples=10,
            burn_in=burn_in,
            num_chains=64,
            initial=starts,
            collect={"u": lambda u: u},
            progress=False,
        )
        return nested_rhat(draws["u"], 4).max()

    assert found(0) > 1.2 and found(500) < 1.1


def test_convergence_is_arvizs():
    x = ar1(0.9, (4, 200, 2, 3))
    found = convergence(x)
    tail = arviz.ess(x, method="tail", prob=(0.05, 0.95))
    np.testing.assert_array_equal(found.ess, np.minimum(arviz.ess(x, method="bulk"), tail))
    np.testing.assert_array_equal(found.rhat, arviz.rhat(x, method="rank"))
    assert found.ess.shape == (2, 3) and convergence(x[..., 0, 0]).ess.shape == ()


def test_convergence_where_nothing_moves_and_of_one_chain():
    x = ar1(0.5, (2, 100, 3))
    x[:, :, 1] = 7
    x[:, :, 2] = [[1], [2]]
    found = convergence(x)
    assert list(np.isnan(found.ess)) == [False, True, False] and np.isnan(found.rhat[1])
    assert found.rhat[2] > 1e6
    drifting = ar1(0.5, (1, 400, 2)) + np.linspace(0, 1, 400)[None, :, None] * np.array([0, 4])
    steady, moving = convergence(drifting).rhat
    assert steady < 1.1 and moving > 1.5
    assert convergence(np.arange(16).reshape(2, 8) % 3).ess.shape == ()


@pytest.mark.slow
def test_layers_are_projected_and_told_apart():
    """The slow one of three leaves comes first."""
    template = {"a": {"weight": jnp.zeros((4, 3)), "bias": jnp.zeros(3)}, "b": jnp.zeros(5)}
    functions = layer_projections(jax.random.key(0), template, num=7)
    assert list(functions) == ["a.bias", "a.weight", "b"]
    rng = np.random.default_rng(0)
    position = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)), template)
    for name, leaf in {"a.bias": position["a"]["bias"], "a.weight": position["a"]["weight"]}.items():
        values = functions[name](position)
        assert values.shape == (8,)
        np.testing.assert_allclose(values[-1], jnp.mean(leaf**2), rtol=1e-12)
        gradient = jax.jacobian(functions[name])(position)
        moved = {"a.bias": gradient["a"]["bias"], "a.weight": gradient["a"]["weight"]}
        assert jnp.all(gradient["b"] == 0) and jnp.any(moved[name] != 0)
        np.testing.assert_allclose(jnp.sum(moved[name][:7].reshape(7, -1) ** 2, axis=1), 1, rtol=1e-12)
    u = {"fast": ar1(0.0, (2, 400, 4)), "slow": ar1(0.95, (2, 400, 4)), "stuck": np.ones((2, 400))}
    table = by_layer(u)
    assert list(table) == ["stuck", "slow", "fast"] and np.isnan(table["stuck"]["ess"])
    assert table["slow"] == {
        "ess": convergence(u["slow"]).ess.min(),
        "rhat": convergence(u["slow"]).rhat.max(),
    }


@pytest.mark.slow
def test_layers_of_a_network():
    bnn = wb.BNN(wb.models.FCN(2, width=4, depth=2, rngs=nnx.Rngs(0)), 1, noise_std=0.1)
    target = wb.targets.standard(bnn, np.ones((3, 2)), np.ones((3, 1)))
    layers = layer_projections(jax.random.key(0), target.template, num=3)
    draws = wb.sample(
        jax.random.key(0),
        wb.samplers.pcn(target.potential, 0.1),
        target,
        num_samples=20,
        num_chains=2,
        collect=layers,
        progress=False,
    )
    table = by_layer(draws)
    assert set(table) == set(layers) and len(layers) == len(jax.tree.leaves(target.template))
    assert list(table) == sorted(table, key=lambda name: table[name]["ess"])
    alone = layer_projections(jax.random.key(0), jnp.zeros(3))
    assert list(alone) == ["position"]


TEMPLATE = {
    "weight": jax.ShapeDtypeStruct((30, 20), jnp.float32),
    "bias": jax.ShapeDtypeStruct((), jnp.float32),
}


@pytest.mark.slow
def test_projections_are_inner_products_with_unit_vectors():
    template = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, jnp.float64), TEMPLATE)
    project = random_projections(jax.random.key(1), template, num=7)
    jacobian = jax.jacobian(project)(jax.tree.map(jnp.zeros_like, template))
    directions = np.concatenate([leaf.reshape(7, -1) for leaf in jax.tree.leaves(jacobian)], axis=1)
    assert directions.shape == (7, 601)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1, rtol=1e-12)
    position = jax.tree.map(
        lambda leaf: jax.random.normal(jax.random.key(2), leaf.shape, leaf.dtype), template
    )
    flat = np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(position)])
    np.testing.assert_allclose(jax.jit(project)(position), directions @ flat, atol=1e-12)


@pytest.mark.slow
def test_projections_of_the_prior_are_standard_normal():
    """Variances of 4,000 draws on 20 lines: each within five of its standard errors √(2/4,000) of 1."""
    project = random_projections(jax.random.key(3), TEMPLATE, num=20)

    def draw(key):
        weight_key, bias_key = jax.random.split(key)
        return {"weight": jax.random.normal(weight_key, (30, 20)), "bias": jax.random.normal(bias_key, ())}

    projections = jax.vmap(lambda key: project(draw(key)))(jax.random.split(jax.random.key(4), 4_000))
    assert jnp.abs(projections.mean(axis=0)).max() < 5 / np.sqrt(4_000)
    assert jnp.abs(projections.var(axis=0) - 1).max() < 5 * np.sqrt(2 / 4_000)


def test_principal_components_find_planted_axes():
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    coordinates = rng.normal(size=(3, 200, 6)) * np.array([5.0, 2.0, 0.1, 0.1, 0.1, 0.1])
    components = principal_components(100 + coordinates @ axes.T, num=2)
    assert components.scores.shape == (3, 200, 2)
    centred = (coordinates - coordinates.mean(axis=(0, 1))).reshape(-1, 6)
    for i in range(2):
        r = np.corrcoef(components.scores[..., i].ravel(), centred[:, i])[0, 1]
        assert abs(r) > 0.999
    eigenvalues = np.linalg.eigvalsh(np.cov(centred.T))[::-1]
    np.testing.assert_allclose(components.explained, (eigenvalues / eigenvalues.sum())[:2], rtol=1e-10)


def test_principal_components_from_inner_products_are_those_of_the_draws():
    x = 7 + ar1(0.5, (2, 12, 60), seed=3)
    found = principal_components(x, num=3)
    centred = np.asarray(x).reshape(24, 60) - np.asarray(x).mean(axis=(0, 1))
    left, singular, _ = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(found.explained, (singular**2 / np.sum(singular**2))[:3], rtol=1e-10)
    np.testing.assert_allclose(np.abs(found.scores).reshape(24, 3), np.abs(left * singular)[:, :3], atol=1e-9)


@pytest.mark.parametrize("num_features", [4, 150])
def test_principal_components_have_one_sign(num_features):
    x = ar1(0.5, (2, 50, num_features))
    scores = principal_components(x).scores
    np.testing.assert_allclose(principal_components(-x).scores, -scores, atol=1e-12)
    np.testing.assert_allclose(principal_components(x[:, ::-1]).scores, scores[:, ::-1], atol=1e-12)


def test_band_is_mean_and_quantiles():
    values = jnp.array([[1.0, 2.0, 6.0], [3.0, 3.0, 3.0]])
    np.testing.assert_allclose(jnp.stack(band(values)), [[3, 3], [1, 3], [6, 3]])
    np.testing.assert_allclose(jnp.stack(band(values, (0.25, 0.75))), [[3, 3], [1.5, 3], [4, 3]])
    assert jnp.isnan(band(values.at[0, 0].set(jnp.nan)).mean[0])


X = jnp.arange(40.0).reshape(2, 10, 2)
BAD = {
    "one axis": (lambda: effective_sample_size(jnp.ones(5)), r"draws .*\(chain, draw, \.\.\.\).*\(5,\)"),
    "one draw": (lambda: effective_sample_size(jnp.ones((3, 1))), r"two draws or more.*\(3, 1\)"),
    "no chain": (lambda: rhat(jnp.ones((0, 5))), r"draws must have shape.*\(0, 5\)"),
    "NaN": (lambda: effective_sample_size(X.at[0, 0, 0].set(jnp.nan)), "draws must be finite"),
    "infinity": (lambda: rhat_squared(X.at[0, 0, 0].set(jnp.inf)), "draws must be finite"),
    "one chain": (lambda: rhat(X[:1]), r"draws must hold two chains or more.*\(1, 10, 2\)"),
    "one chain, squared": (lambda: rhat_squared(X[:1]), "draws must hold two chains or more"),
    "no projection": (
        lambda: random_projections(jax.random.key(0), X, num=0),
        "num must be at least 1; got 0",
    ),
    "empty template": (lambda: random_projections(jax.random.key(0), {}), "template must have"),
    "other structure": (lambda: random_projections(jax.random.key(0), [X])((X,)), "position must have"),
    "other shape": (lambda: random_projections(jax.random.key(0), X)(X[0]), r"position must have.*\(10, 2\)"),
    "no component": (lambda: principal_components(X, num=0), "num must be at least 1; got 0"),
    "many components": (lambda: principal_components(X, num=3), r"num must be at most 2.*got 3"),
    "NaN feature": (lambda: principal_components(X * jnp.nan), "draws must be finite"),
    "probs out of order": (lambda: band(X, (0.9, 0.1)), "probs must be"),
    "probs out of range": (lambda: band(X, (0.0, 1.1)), "probs must be"),
    "probs NaN": (lambda: band(X, (float("nan"), 1.0)), "probs must be"),
    "no values": (lambda: band(X[..., :0]), "values must have"),
}


@pytest.mark.parametrize("call, message", BAD.values(), ids=BAD.keys())
def test_bad_input(call, message, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users meet our errors, and alone
    with pytest.raises(ValueError, match=message):
        call()


def test_every_public_name_exists():
    assert all(hasattr(diagnostics, name) for name in diagnostics.__all__)


LENGTHS = [(1, 320), (3, 200), (3, 300), (4, 500), (4, 2_000)]
"""Chains and kept draws of experiments at laptop scale."""


def ar1_with(true_ess, num_chains, num_draws, num=200, seed=0):
    """Chains (chain, draw, num) whose effective samples are known."""
    ratio = true_ess / (num_chains * num_draws)
    return ar1((1 - ratio) / (1 + ratio), (num_chains, num_draws, num), seed)


@pytest.mark.parametrize("shape", LENGTHS, ids=str)
def test_what_is_called_resolved_has_a_hundred_effective_samples(shape):
    """At most 5 % pass in error, by three binomial errors of 200 entries; a pass with 400 true ones is sure.

    The bulk estimate alone is checked, of which the rest is a minimum: results store means of it.
    """
    allowed = 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    for true in (25, 99):
        assert (arviz.ess(ar1_with(true, *shape), method="bulk") >= LEAST_RESOLVED).mean() <= allowed


def test_four_hundred_effective_samples_are_resolved():
    assert np.isfinite(resolved_sample_size(ar1_with(400, 3, 300, num=50))).mean() > 0.9


@pytest.mark.parametrize("true", [0.1, 5.4])
def test_ten_effective_samples_of_short_chains_are_a_floor(true):
    """The guard of old, ten, calls them resolved in about half of the entries or more; the new one never."""
    draws = ar1_with(true, 3, 300, num=50)
    assert (np.asarray(effective_sample_size(draws)) >= 10).mean() > 0.5
    assert not np.isfinite(resolved_sample_size(draws)).any()


def test_chains_that_swing_are_judged_by_their_square():
    """Rotations by one radian whose radius forgets in a hundred draws: x is antithetic, and x² slow."""
    rng, keep = np.random.default_rng(0), 0.995
    turn = keep * np.exp(1j)
    noise = (rng.normal(size=(4, 1_000, 50)) + 1j * rng.normal(size=(4, 1_000, 50))) * np.sqrt(1 - keep**2)
    z = np.empty_like(noise)
    z[:, 0] = noise[:, 0] / np.sqrt(1 - keep**2)
    for i in range(1, 1_000):
        z[:, i] = turn * z[:, i - 1] + noise[:, i]
    assert np.median(arviz.ess(z.real, method="bulk")) > 1_000
    assert 4_000 * (1 - keep**2) / (1 + keep**2) < 100  # of the square
    assert np.isfinite(resolved_sample_size(z.real)).mean() < 0.05


def test_where_nothing_moves_nothing_is_resolved():
    draws = ar1(0.0, (2, 300, 2))
    draws[:, :, 1] = 7.0
    np.testing.assert_array_equal(np.isfinite(resolved_sample_size(draws)), [True, False])
