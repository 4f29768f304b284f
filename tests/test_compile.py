"""Programs that are compiled once: the same one is not compiled again, and none is taken for another."""

import gc
import weakref
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.tree_util import Partial

import widebnn as wb
from widebnn import _compile
from widebnn.samplers import pcn

from .exact.programs import PROGRAMS, num_compiled
from .exact.resume import assert_same_bits

pytestmark = pytest.mark.usefixtures("float32")

DATA = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32)


def squares(data, u):
    return jnp.sum((data @ u) ** 2)


def target(data):
    return wb.targets.from_potential(Partial(squares, jnp.asarray(data)), jnp.zeros(3))


PCN = pcn(0.5)


def run(problem, sampler=PCN, seed=0, **options):
    options = {
        "num_samples": 4,
        "burn_in": 0,
        "num_chains": 2,
        "num_positions": 0,
        "progress": False,
    } | options
    return wb.sample(jax.random.key(seed), problem, sampler, **options)


def network_run(noise_std=0.1, seed=0, step_size=0.1, num_samples=3, **scales):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(6, 2)).astype(np.float32), rng.normal(size=(6, 1)).astype(np.float32)
    bnn = wb.BNN(wb.models.FCN(2, 5, rngs=nnx.Rngs(seed), **scales), 1, noise_std)
    posterior = wb.targets.marginal(bnn, x, y)
    collect = {
        "mean": wb.predictive_mean(x[:2]),
        "draw": wb.predictive_draw(x[2:]),
        "weights": wb.collectors.weights,
    }
    return run(posterior, pcn(step_size), seed, collect=collect, num_samples=num_samples)


def test_a_run_is_a_few_programs_and_another_of_the_same_shape_none():
    assert num_compiled(network_run) <= 12
    changed = [{"noise_std": 0.2}, {"seed": 1}, {"step_size": 0.3}, {"num_samples": 5}]
    changed += [{"weight_std": 1}, {"bias_std": 0.5}]
    assert num_compiled(lambda: [network_run(**change) for change in changed]) == 0


def test_functions_that_close_over_other_data_are_told_apart():
    for data in DATA:
        closed = wb.targets.from_potential(lambda u, data=data: squares(data, u), jnp.zeros(3))
        assert_same_bits(run(closed), run(target(data)))


def layer(kernel, x):
    """A user's own network."""
    return jnp.tanh(x @ kernel)


def everything(noise_std, seed):
    """What methods of a target, and `auto`, say of other data, of another network of the same shape."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(5, 3)).astype(np.float32), rng.normal(size=(5, 1)).astype(np.float32)
    bnn = wb.BNN(wb.models.FCN(3, 7, rngs=nnx.Rngs(seed)), 1, noise_std)
    users_own = wb.BNN(
        wb.models.from_function(layer, jnp.asarray(rng.normal(size=(3, 7)), jnp.float32)), 1, noise_std
    )
    key = jax.random.key(0)
    found = []
    for network in (bnn, users_own):
        target = wb.auto(wb.targets.marginal(network, x, y)).target
        found.append(target.potential(target.draw_prior(key)))
    for target in (wb.targets.marginal(bnn, x, y), wb.targets.rotated(wb.targets.repriorised(bnn, x, y))):
        position = target.draw_prior(key)
        found += [target.potential(position), target.logdensity(position)]
        found += [wb.predictive_mean(x)(target, position), wb.predictive_draw(x[:2])(target, position, key)]
    return found


def test_methods_of_targets_are_the_same_programs_for_other_data_scales_and_networks():
    first, before = everything(0.5, 0), len(PROGRAMS)
    other = everything(0.25, 1)
    assert before and len(PROGRAMS) == before
    assert all(not np.allclose(a, b) for a, b in zip(first, other, strict=True))


def test_data_and_scales_are_the_leaves_of_a_target_and_the_network_its_structure():
    def made(depth=1, layers=MappingProxyType({}), **options):
        features = wb.models.FCN(3, 7, depth, rngs=nnx.Rngs(len(options)), **layers)
        return wb.targets.marginal(wb.BNN(features, 1, 0.5, **options), DATA[0], DATA[0][:, :1])

    target = made()
    assert jax.tree.leaves(target) == [0.1, 2**0.5, 0.5, 1.0, 0.1, target.x, target.y]
    structure = jax.tree.structure(target)
    assert structure == jax.tree.structure(made(layers={"weight_std": 3, "bias_std": 0.7}, weight_std=2.0))
    for other in (made(bias_std=0.0), made(layers={"bias_std": 0}), made(depth=2)):
        assert structure != jax.tree.structure(other)
    position = target.draw_prior(jax.random.key(0))
    slopes = jax.jit(jax.grad(lambda target: target.potential(position)))(target)
    step = 0.01
    ends = [replace(target, bnn=replace(target.bnn, noise_std=0.5 + s * step)) for s in (-1, 1)]
    below, above = (float(end.potential(position)) for end in ends)
    assert np.isclose(slopes.bnn.noise_std, (above - below) / (2 * step), rtol=1e-2)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells, and limits, memory maps")
def test_programs_are_forgotten_before_a_process_has_too_many(monkeypatch):
    """Without room for the next one XLA would end the process."""
    run(target(DATA[0]))
    assert num_compiled(lambda: run(target(DATA[0]))) == 0
    monkeypatch.setattr(_compile, "MAX_MAPS", 0)
    assert num_compiled(lambda: run(target(DATA[0]))) > 0


def test_no_data_are_kept():
    data = jnp.ones((50, 3))
    held = weakref.ref(data)
    run(target(data))
    del data
    gc.collect()
    assert held() is None


class Own(nnx.Module):
    """A module of the user's own, whose features a factory looks at where it can."""

    def __init__(self, rngs):
        self.layer = wb.models.Dense(3, 4, rngs=rngs)

    def __call__(self, x):
        return jnp.tanh(self.layer(x))


@pytest.mark.parametrize("make", [lambda rngs: wb.models.FCN(3, 4, rngs=rngs), Own], ids=["FCN", "own"])
def test_factories_under_a_bare_vmap(make):
    """Over σ, and over data."""
    features = make(nnx.Rngs(0))
    x, y = DATA[0], DATA[0][:, :1]
    at = jax.tree.map(lambda leaf: jnp.ones(leaf.shape), wb.BNN(features, 1, 0.5).features.template)

    def potential(noise_std, x, y):
        return wb.targets.marginal(wb.BNN(features, 1, noise_std), x, y).potential(at)

    cases = [(0.5, x, y), (0.7, 2 * x, 3 * y)]
    both = [jnp.stack([jnp.asarray(part) for part in parts]) for parts in zip(*cases, strict=True)]
    wanted = [potential(*case) for case in cases]
    np.testing.assert_allclose(jax.vmap(potential)(*both), wanted, rtol=1e-4)
