"""A run that is interrupted and called again leaves the same bits as one that is not."""

from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

import widebnn as wb
from widebnn.driver import _sample
from widebnn.samplers import langevin, tuned

TARGET = wb.targets.from_potential(
    lambda u: jnp.sum(jnp.cosh(u["a"])) + jnp.sum(u["b"] ** 2), {"a": jnp.zeros(2), "b": jnp.zeros((1, 3))}
)
SAMPLER = tuned(langevin(0.1, damping=0.3), 0.6)
OPTIONS = {
    "num_samples": 6,
    "thin": 2,
    "burn_in": 4,
    "num_chains": 2,
    "collect": {
        "potential": wb.potential,
        "noise": lambda _, u, rng_key: jax.random.normal(rng_key),
        "nothing": lambda _, u: u["a"][:0],
    },
    "stream": {"a": lambda _, u: u["a"]},
    "progress": False,
}


class Interrupted(Exception):
    """In place of `kill -9`."""


def run(path: Path | None = None, key: int = 0, **options) -> wb.Draws:
    """With a checkpoint after every chunk, and chunks of one step or draw."""
    options = OPTIONS | options
    sampler = options.pop("sampler", SAMPLER)
    target = options.pop("target", TARGET)
    every = None if path is None else wb.Checkpoint(path, every_steps=1)
    with mock.patch.object(_sample, "CHUNK_SECONDS", 1e-9):
        return wb.sample(jax.random.key(key), target, sampler, checkpoint=every, **options)


def interrupted(path: Path, chunks: int, **options) -> None:
    """The same run, killed after so many chunks, before the last of them is saved."""
    count, update = 0, _sample._Pace.update

    def counting(self, *args):
        nonlocal count
        acceptance = update(self, *args)
        if (count := count + 1) >= chunks:
            raise Interrupted
        return acceptance

    with mock.patch.object(_sample._Pace, "update", counting):
        try:
            run(path, **options)
        except Interrupted:
            return
    raise AssertionError("the run ended before it was interrupted")


def assert_same_bits(first: wb.Draws, second: wb.Draws) -> None:
    def parts(draws):
        summaries = {name: streamed.summary for name, streamed in draws.streamed.items()}
        return draws.collected, draws.stats, summaries, draws.position, draws.step_size

    assert jax.tree.structure(parts(first)) == jax.tree.structure(parts(second))
    for one, other in zip(*map(jax.tree.leaves, map(parts, (first, second)))):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), "not the bits of the other run"


def assert_resumes(folder: Path, **options) -> None:
    """Killed in burn-in and later, and called once more when it is finished."""
    path = folder / "run"
    for chunks in (3, 4):
        interrupted(path, chunks, **options)
    expected = run(**options)
    assert_same_bits(run(path, **options), expected)
    assert_same_bits(run(path, **options), expected)
