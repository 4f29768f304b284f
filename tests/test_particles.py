"""Sequential Monte Carlo: exact evidence, exact posteriors, and what a run is from outside."""

import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import widebnn as wb
from widebnn import samplers, targets
from widebnn.driver import _island
from widebnn.driver import _particles as particles

from .exact import evidence, importance
from .exact.conservation import after_steps
from .exact.dkwm import assert_distributed
from .exact.networks import problem
from .exact.programs import num_compiled


@pytest.fixture(scope="module")
def short():
    """Four hundred short islands on Bayesian linear regression, and its evidence."""
    target, exact = evidence.linear()
    return evidence.islands(target), exact


def test_evidence_is_unbiased(short):
    evidence.assert_unbiased(*short)


def test_interval_of_four_islands_covers(short):
    evidence.assert_covers(*short)


def test_evidence_lies_between_its_bounds(short):
    run, exact = short
    assert run.bounds[0] < exact < run.bounds[1]


@pytest.mark.slow
def test_evidence_of_linear_regression_by_temperatures_of_the_pilot():
    target, exact = evidence.linear()
    evidence.assert_unbiased(evidence.islands(target, None, num_particles=32), exact)


def test_one_temperature_of_a_flat_potential():
    """Repriorised linear regression: U is constant, and one draw gives the evidence."""
    target, exact = evidence.linear()
    flat = target.repriorised()
    run = wb.smc(jax.random.key(0), flat, num_particles=8, num_islands=2, progress=False)
    assert_array_equal(run.temperatures, [1.0])
    assert_array_equal(run.num_ancestors, 8)
    assert_allclose(run.log_evidences - target.log_normaliser(), exact, rtol=1e-12)


@pytest.mark.slow
def test_evidence_of_a_tiny_network():
    options = {"widths": (4, 2), "activation": "erf", "out_features": 2, "n": 4}
    tiny = problem(**options)
    exact = evidence.of_network(tiny, options["widths"], options["activation"])
    target = targets.marginal(tiny.bnn, tiny.x, tiny.y)
    run = wb.smc(jax.random.key(1), target, num_particles=200, num_islands=30, progress=False)
    evidence.assert_evidence(run, *exact)


@pytest.mark.slow
def test_evidence_and_posterior_in_the_weights():
    """All of θ by a sampler that is given: the evidence is the same, and predictions are exact."""
    tiny, exact = importance.solved("one layer")
    target = targets.standard(tiny.bnn, tiny.x, tiny.y)
    run = wb.smc(
        jax.random.key(2),
        target,
        samplers.tuned(samplers.function_space_hmc(0.3, num_steps=4), 0.8, 1.5),
        num_particles=1_000,
        num_islands=60,
        collect={"f": wb.output(tiny.x_new)},
        progress=False,
    )
    evidence.assert_evidence(run, *evidence.of_network(tiny, (3,), "gelu"))
    importance.assert_moments(importance.by_chains(run["f"]), exact.moments)


@pytest.mark.slow
def test_moves_leave_the_tempered_density_where_it_is():
    """exp(−½‖u‖² − βU) of linear regression is Gaussian: exact draws stay exact."""
    (target, _), beta = evidence.linear(), 0.1
    precision = np.eye(3) + beta * np.asarray(target.x.T @ target.x) / target.noise_std**2
    mean = np.linalg.solve(precision, beta * np.asarray(target.x.T @ target.y)) / target.noise_std**2
    root = np.linalg.cholesky(np.linalg.inv(precision))
    draws = mean + root @ np.random.default_rng(0).normal(size=(50_000, 3, 2))
    pair = _island.at_temperature(target, samplers.function_space_hmc(0.3, num_steps=2), beta)
    states, rate = after_steps(jax.random.key(0), *pair, jnp.asarray(draws), 3)
    assert 0.2 < rate < 0.98
    for i in range(3):
        law = stats.norm(mean[i, 0], np.sqrt(np.linalg.inv(precision)[i, i]))
        assert_distributed(f"coordinate {i}", states.position[:, i, 0], law.cdf)


@pytest.mark.slow
def test_unitwise_moves_leave_the_tempered_density_where_it_is():
    """Exact draws by rejection; a functional of them before and after."""
    tiny, beta = problem(widths=(6,), n=4), 0.1
    target = targets.marginal(tiny.bnn, tiny.x, tiny.y)
    exact = exact_draws(target, beta, 60_000)
    half = len(exact[1]) // 2
    starts = jax.tree.map(lambda leaf: leaf[:half], exact[0])
    sampler = samplers.unitwise(2).prepare(target)
    pair = _island.at_temperature(target, sampler, beta)
    states, rate = after_steps(jax.random.key(1), *pair, starts, 2)
    assert 0.1 < rate < 0.98
    moved = jax.jit(jax.vmap(target.potential))(states.position)
    found = stats.ks_2samp(np.asarray(moved), exact[1][half:])
    assert found.pvalue > 1e-6, f"potentials differ by {found.statistic:.3f}"


def exact_draws(target, beta, number):
    """Positions from exp(−½‖u‖² − βU) by rejection, and their potentials; U is at least its least value."""
    keys = jax.random.split(jax.random.key(3), number)
    positions = jax.jit(jax.vmap(target.draw_prior))(keys)
    potentials = np.asarray(jax.jit(jax.vmap(target.potential))(positions))
    low = target.y.size * np.log(target.bnn.noise_std)  # of ½ log det K̂_σ², and yᵀK̂⁻¹y is not below 0
    low = max(low, potentials.min() - 1.0)
    chance = np.exp(-beta * (potentials - low))
    kept = np.random.default_rng(0).random(number) < chance
    return jax.tree.map(lambda leaf: leaf[kept], positions), potentials[kept]


def with_scales():
    """σ and the readout's scale of a tiny network are learned."""
    x, y = np.random.default_rng(1).normal(size=(2, 8, 2))
    features = wb.models.FCN(2, 3, bias_std=0.5, rngs=nnx.Rngs(0))
    target = targets.marginal(wb.BNN(features, 2, 0.5), x, y)
    return targets.scaled(
        target, noise_std=targets.LogNormal(0.5, 0.8), readout_std=targets.LogNormal(1.0, 0.7)
    )


def by_quadrature(target, num_draws=4_000):
    """log Z without the package: both scales on a grid, the hidden layer by prior draws; and its error."""
    x, y, random = np.asarray(target.base.x), np.asarray(target.base.y), np.random.default_rng(0)
    f = x @ random.normal(size=(num_draws, 2, 3)) + 0.5 * random.normal(size=(num_draws, 1, 3))
    psi = np.concatenate([f * stats.norm.cdf(f) / np.sqrt(3), np.full((num_draws, 8, 1), 0.1)], axis=2)
    values, vectors = np.linalg.eigh(psi @ np.swapaxes(psi, 1, 2))
    squares = np.sum((np.swapaxes(vectors, 1, 2) @ y) ** 2, axis=2)
    u = np.linspace(-5, 5, 81)
    prior = stats.norm.pdf(u) * (u[1] - u[0])
    total = np.zeros(num_draws)
    for u_readout, weight in zip(u, prior):
        for u_noise, other in zip(u, prior):
            noise, readout = (
                0.5 * np.exp(0.8 * np.clip(u_noise, -3, 3)),
                np.exp(0.7 * np.clip(u_readout, -3, 3)),
            )
            spread = readout**2 * values + noise**2
            logs = -np.sum(squares / spread / 2 + np.log(2 * np.pi * spread), axis=1)
            total += weight * other * np.exp(logs)
    return np.log(total.mean()), total.std() / total.mean() / np.sqrt(num_draws)


@pytest.mark.slow
@pytest.mark.parametrize("starts", ["limit", "prior"])
def test_evidence_with_scales_by_quadrature(starts, monkeypatch):
    target = with_scales()
    if starts == "prior":
        monkeypatch.setattr(targets.Scaled, "limiting_scales", refuse)
    run = wb.smc(jax.random.key(6), target, num_particles=200, num_islands=30, progress=False)
    evidence.assert_evidence(run, *by_quadrature(target))
    assert isinstance(run.target, targets.Scaled)


def refuse(self):
    raise ValueError("no known limit")


# What a run is from outside.


def tiny_run(key=0, noise_std=0.4, **options):
    tiny = problem(noise_std=noise_std)
    target = targets.marginal(tiny.bnn, tiny.x, tiny.y)
    options = {"num_particles": 16, "num_islands": 3, "ess": 0.8} | options
    return wb.smc(jax.random.key(key), target, progress=False, **options), tiny


@pytest.fixture(scope="module")
def run():
    return tiny_run(predict_at=problem().x_new)


class Killed(Exception):
    """In place of `kill -9`."""


def test_a_run_resumes_with_the_same_bits(tmp_path, monkeypatch):
    whole, _ = tiny_run()
    step, calls = particles.Walk.step, []

    def killed(self, *args):
        calls.append(1)
        if len(calls) == 4:
            raise Killed
        return step(self, *args)

    checkpoint = wb.Checkpoint(tmp_path / "run", every_steps=1)
    for most in (1, 2):  # killed in the pilot, and again in an island
        calls.clear()
        monkeypatch.setattr(particles.Walk, "step", killed)
        with pytest.raises(Killed):
            tiny_run(checkpoint=checkpoint, num_islands=most + 1)
    monkeypatch.setattr(particles.Walk, "step", step)
    for _ in range(2):
        resumed, _ = tiny_run(checkpoint=checkpoint)
        for one, other in zip(*map(jax.tree.leaves, (whole.positions, resumed.positions))):
            assert one.tobytes() == other.tobytes()
        assert whole.log_evidences.tobytes() == resumed.log_evidences.tobytes()
    with pytest.raises(ValueError, match="num_islands must be at least the 3"):
        tiny_run(checkpoint=checkpoint, num_islands=2)
    with pytest.raises(ValueError, match="another run: ess was 0.8 and is now 0.5"):
        tiny_run(checkpoint=checkpoint, ess=0.5)


def test_what_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(particles, "free_bytes", lambda: 2**13)
    with pytest.raises(ValueError, match=r"num_particles must be at most \d+: 16 in each of 3 islands"):
        tiny_run()
    monkeypatch.undo()
    assert particles.free_bytes() > 2**20


def test_it_answers_what_draws_answer(run, tmp_path):
    run, tiny = run
    assert isinstance(run, wb.Draws)
    assert run["prediction"].shape == (3, 16, 2, 1) and run["potential"].shape == (3, 16)
    moments = run.predict(tiny.x_new)
    assert_allclose(moments.mean, run["prediction"].mean(axis=(0, 1)), atol=0.2)  # with other unseen weights
    table = run.summary()
    assert list(table.index) == ["potential", "prediction"]
    assert f"log Z {run.log_evidence:.2f}" in table.columns.name
    tree = run.to_datatree()
    assert tree["posterior"].sizes["chain"] == 3
    assert_allclose(tree["posterior"].attrs["log_evidences"], run.log_evidences)
    run.save(tmp_path / "run")
    for target in (run.target, None):
        loaded = wb.Particles.load(tmp_path / "run", target)
        for name in wb.Particles._told:
            assert_array_equal(getattr(loaded, name), getattr(run, name))
        assert_array_equal(loaded["potential"], run["potential"])
    assert_array_equal(wb.Particles.load(tmp_path / "run", run.target).predict(tiny.x_new).mean, moments.mean)


def test_temperatures_leave_the_share_that_was_asked_for():
    evidence.assert_temperatures(_island.next_temperature)


def test_resampling_is_systematic():
    """Each particle is chosen as often as its weight says, rounded up or down; on average exactly so."""
    potentials = np.random.default_rng(0).normal(size=50)
    expected = 50 * np.exp(-potentials) / np.exp(-potentials).sum()
    counts = [
        np.bincount(_island.resampled(potentials, 1.0, u), minlength=50) for u in (np.arange(500) + 0.5) / 500
    ]
    assert (np.abs(counts - expected) < 1 + 1e-9).all()
    assert_allclose(np.mean(counts, axis=0), expected, atol=0.003)


def test_another_problem_of_the_same_shape_compiles_nothing(run):
    tiny_run(key=1)
    assert num_compiled(lambda: tiny_run(key=2, noise_std=0.6, ess=0.5)) == 0


def interrupted_at(place, monkeypatch):
    """Ctrl-C at this island and temperature."""
    step = particles.Walk.step

    def interrupted(self, here, *args):
        if here == place:
            signal.raise_signal(signal.SIGINT)
        return step(self, here, *args)

    monkeypatch.setattr(particles.Walk, "step", interrupted)
    return tiny_run(temperatures=[0.5, 1.0])[0]


def test_ctrl_c_returns_the_islands_that_have_arrived(monkeypatch, sigint):
    with pytest.warns(wb.ChainWarning, match="interrupted after 1 of 3 islands"):
        run = interrupted_at((2, 0), monkeypatch)
    assert run.stopped == "interrupted" and len(run.log_evidences) == 1
    assert np.isnan(run.log_evidence_error)


def test_ctrl_c_before_there_is_an_island_raises(monkeypatch, sigint):
    with pytest.raises(KeyboardInterrupt, match="before the first island"):
        interrupted_at((0, 0), monkeypatch)


def told(*arguments, **options):
    """What a run warns of."""
    with pytest.warns(wb.ChainWarning) as caught:
        wb.smc(jax.random.key(0), *arguments, progress=False, **options)
    return " ".join(str(warning.message) for warning in caught)


def test_islands_that_disagree_are_told():
    """Each descends from hardly more than one draw of the prior, and cannot move away from it."""
    target = targets.from_potential(lambda u: 50 * jnp.sum((u - 1) ** 2), jnp.zeros(3))
    found = told(target, samplers.pcn(0.001), temperatures=[1.0], collect={"u": lambda target, u: u})
    assert "at β = 1 particles had not moved away" in found
    assert "islands disagree on 'u'" in found
    assert "log evidences of the islands spread by" in found


def test_potentials_that_are_not_a_number_are_told():
    target = targets.from_potential(lambda u: jnp.where(u > 1.5, jnp.nan, u**2), jnp.zeros(()))
    assert "the potential is NaN at" in told(target, samplers.pcn(0.9))
