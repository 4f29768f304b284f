"""Programs that are compiled once: the same one is not compiled again, and none is taken for another."""

import gc
import weakref
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import widebnn as wb
from widebnn import _compile
from widebnn._compile import Program
from widebnn.samplers import conditional, function_space_hmc, hmc, langevin, mala, pcn, pcnl, rwm

from .exact.resume import assert_same_bits

PROGRAMS: list[str] = []
"""Grows with every program that is compiled, by whatever way."""


def _count(name, *_, **__):
    if name == "/jax/core/compile/backend_compile_duration":
        PROGRAMS.append(name)


jax.monitoring.register_event_duration_secs_listener(_count)

pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture
def compiled(monkeypatch):
    """A list that grows with every program that is compiled."""
    seen, compile = [], jax.stages.Lowered.compile
    monkeypatch.setattr(
        jax.stages.Lowered, "compile", lambda self: seen.append(self.as_text()) or compile(self)
    )
    monkeypatch.setattr(_compile, "_kept", type(_compile._kept)())
    return seen


def target(data, size=3):
    data = jnp.asarray(data, jnp.float32)
    return wb.targets.from_potential(lambda u: jnp.sum((data @ u) ** 2), jnp.zeros(size))


def run(problem, sampler=None, **options):
    sampler = pcn(0.5) if sampler is None else sampler(problem.potential)
    options = {"num_samples": 4, "num_chains": 2, "progress": False} | options
    return wb.sample(jax.random.key(0), problem, sampler, **options)


DATA = np.random.default_rng(0).normal(size=(2, 5, 3))


@pytest.mark.slow
def test_second_call_compiles_nothing_and_computes_its_own(compiled):
    first = run(target(DATA[0]))
    assert len(compiled) == 2, "chains start, and they run"
    other = run(target(DATA[1]))
    assert_same_bits(run(target(DATA[0]), num_samples=7), run(target(DATA[0]), num_samples=7))
    assert len(compiled) == 2
    _compile._kept.clear()
    assert_same_bits(run(target(DATA[0])), first)
    assert_same_bits(run(target(DATA[1])), other)
    assert len(compiled) == 4 and not np.array_equal(first["potential"], other["potential"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda: run(target(DATA[0]), sampler=lambda U: hmc(0.1, 2)),
        lambda: run(target(np.ones((6, 3)))),
        lambda: run(target(DATA[0]), num_chains=3),
        lambda: run(target(DATA[0]), collect={"u": lambda u: u}),
        lambda: run(wb.targets.from_potential(lambda u: jnp.sum(u**4), jnp.zeros(3))),
    ],
    ids=["sampler", "observations", "chains", "collected", "potential"],
)
def test_what_differs_is_compiled(compiled, change):
    run(target(DATA[0]))
    num = len(compiled)
    change()
    assert len(compiled) > num


SIZES = {
    "rwm": lambda size, U: rwm(size),
    "pcn": lambda size, U: pcn(size),
    "pcnl": lambda size, U: pcnl(size),
    "mala": lambda size, U: mala(size),
    "hmc": lambda size, U: hmc(size, num_steps=2),
    "langevin": lambda size, U: langevin(size, damping=size / 2),
    "function_space_hmc": lambda size, U: function_space_hmc(size, damping=size, jitter=size / 2),
    "within a step": lambda size, U: conditional(lambda u: U(u.all), "all", lambda of_all: pcn(of_all, size)),
}


class Whole(NamedTuple):
    all: jax.Array


@pytest.mark.parametrize("name", SIZES)
def test_another_step_size_is_the_same_program(compiled, name):
    """In the precision of the position, whatever that of a Python number is."""
    u, key = jnp.arange(3, dtype=jnp.float32), jax.random.key(0)
    position = Whole(u) if name == "within a step" else u

    def moved(size):
        sampler = SIZES[name](size, lambda u: jnp.sum(u**2) / 100)
        leaves = jax.tree.leaves(
            Program(lambda key: sampler.step(key, sampler.init(position, rng_key=key))[0], key)(key)
        )
        assert {leaf.dtype for leaf in leaves} == {np.dtype(np.float32)}
        return np.concatenate([np.ravel(leaf) for leaf in leaves])

    assert not np.array_equal(moved(0.25), moved(0.5)) and len(compiled) == 1


def everything(noise_std, seed):
    """What methods of a target say of other data, of another network of the same shape."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(5, 3)).astype(np.float32), rng.normal(size=(5, 1)).astype(np.float32)
    bnn = wb.BNN(wb.models.FCN(3, 7, rngs=nnx.Rngs(seed)), 1, noise_std)
    key = jax.random.key(0)
    found = []
    for target in (wb.targets.marginal(bnn, x, y), wb.targets.rotated(wb.targets.repriorised(bnn, x, y))):
        position = target.draw_prior(key)
        found += [target.potential(position), target.logdensity(position)]
        found += [target.predictive_mean(x)(position), target.predictive_draw(x[:2])(position, key)]
    return found


def test_methods_of_targets_are_the_same_programs_for_other_data_scales_and_networks():
    first, before = everything(0.5, 0), len(PROGRAMS)
    other = everything(0.25, 1)
    assert before and len(PROGRAMS) == before
    assert all(not np.allclose(a, b) for a, b in zip(first, other, strict=True))


def test_data_and_scales_are_the_leaves_of_a_target_and_the_network_its_structure():
    def made(depth=1, **options):
        features = wb.models.FCN(3, 7, depth, rngs=nnx.Rngs(len(options)))
        return wb.targets.marginal(wb.BNN(features, 1, 0.5, **options), DATA[0], DATA[0][:, :1])

    target = made()
    assert jax.tree.leaves(target) == [0.5, 1.0, 0.1, target.x, target.y]
    structure = jax.tree.structure(target)
    assert structure == jax.tree.structure(made(weight_std=2.0))
    assert structure != jax.tree.structure(made(bias_std=0.0)) != jax.tree.structure(made(depth=2))
    position = target.draw_prior(jax.random.key(0))
    slopes = jax.jit(jax.grad(lambda target: target.potential(position)))(target)
    step = 0.01
    ends = [replace(target, bnn=replace(target.bnn, noise_std=0.5 + s * step)) for s in (-1, 1)]
    below, above = (float(end.potential(position)) for end in ends)
    assert np.isclose(slopes.bnn.noise_std, (above - below) / (2 * step), rtol=1e-2)


def nested(array):
    """Constants where they are hard to see: in a function that is compiled by itself, and in a loop."""
    inner = jax.jit(lambda u: u * array)
    return lambda u: jax.lax.scan(lambda v, _: (v + array, None), inner(u), None, length=3)[0]


@pytest.mark.parametrize("make", [lambda x: lambda u: u * x, nested], ids=["plain", "nested"])
@pytest.mark.parametrize("kind", [float, np.float32, "numpy", "jax"])
def test_constants_are_told_apart(compiled, make, kind):
    """They are arguments, or else the programs differ."""
    u = jnp.ones(40)
    for value in (2.0, 3.0):
        constant = {"numpy": np.full(40, value, np.float32), "jax": jnp.full(40, value)}.get(kind)
        function = make(kind(value) if constant is None else constant)
        assert np.array_equal(Program(function, u)(u), function(u))
    assert len(compiled) <= 2


@pytest.fixture
def constants_stay():
    """JAX leaves constants in what it traces, and hands them over at a place of its own."""
    name = "jax_use_simplified_jaxpr_constants"
    before = getattr(jax.config, name)
    jax.config.update(name, True)
    yield
    jax.config.update(name, before)


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_constants_that_would_not_be_told_apart_are_refused(compiled, constants_stay, kind):
    constant = kind(np.arange(40, dtype=np.float32))
    with pytest.raises(RuntimeError, match="jax_use_simplified_jaxpr_constants must be off"):
        Program(lambda u: u * constant, jnp.ones(40))
    with pytest.raises(RuntimeError, match="jax_use_simplified_jaxpr_constants must be off"):
        run(target(DATA[0]))
    assert not compiled


def test_trees_are_told_apart(compiled):
    for name in "ab":
        function = {"a": lambda u: {"a": u}, "b": lambda u: {"b": u}}[name]
        assert list(Program(function, jnp.ones(2))(jnp.ones(2))) == [name]


def test_functions_of_the_host_are_told_apart(compiled):
    shape = jax.ShapeDtypeStruct((), jnp.float32)
    for value in (2.0, 3.0):
        function = lambda u, v=value: jax.pure_callback(lambda u: np.float32(v), shape, u)  # noqa: E731
        assert Program(function, jnp.float32(1))(jnp.float32(1)) == value


def test_the_last_ones_are_kept(compiled, monkeypatch):
    monkeypatch.setattr(_compile, "NUM_KEPT", 2)

    def add(number):
        Program(lambda u: u + number, jnp.ones(3)).compile()
        return len(compiled)

    assert [add(n) for n in (1, 2, 1, 3, 1, 2)] == [1, 2, 2, 3, 3, 4]


@pytest.mark.slow
def test_no_data_are_kept(compiled):
    class Data:
        def __init__(self):
            self.x = jnp.ones((50, 3))

        def __call__(self, u):
            return jnp.sum((self.x @ u) ** 2)

    data = Data()
    held = weakref.ref(data), weakref.ref(data.x)
    run(wb.targets.from_potential(data, jnp.zeros(3)))
    assert _compile._kept
    del data
    jax.clear_caches()  # JAX's own, of what was traced
    gc.collect()
    assert [reference() for reference in held] == [None, None]


def test_arrays_without_a_say_in_the_result_may_have_any_shape():
    """As training inputs have in predictions; the lowered program does not mention them."""
    u = jnp.zeros(3)
    for size in (2, 5):
        data = jnp.ones(size)
        assert jnp.array_equal(Program(lambda u, data=data: (jnp.sum(data), u + 1)[1], u)(u), u + 1)
