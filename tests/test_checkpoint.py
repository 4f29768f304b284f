"""Checkpoints: the same bits after any interruption, and clear words where that cannot be."""

import contextlib
import resource
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import widebnn as wb
from widebnn import checkpoints
from widebnn.driver._chains import Chains
from widebnn.samplers import pcn

from .exact.resume import assert_resumes, assert_same_bits, run


@pytest.mark.slow
def test_resumed_run_leaves_the_same_bits_and_finished_one_is_not_even_compiled(tmp_path, monkeypatch):
    assert_resumes(tmp_path)
    expected = run()
    monkeypatch.setattr(Chains, "chunk", SimpleNamespace(lower=Chains.chunk.lower))
    assert_same_bits(run(tmp_path / "run"), expected)
    before = (tmp_path / "run").read_bytes()
    with pytest.raises(ValueError, match="num_samples must be at least the 6 that the .* holds; got 3"):
        run(tmp_path / "run", num_samples=3)
    assert (tmp_path / "run").read_bytes() == before


@pytest.mark.slow
def test_streamed_run_resumes_and_is_extended(tmp_path):
    assert_resumes(tmp_path, collect={})
    longer = {"collect": {}, "num_samples": 8}
    assert_same_bits(run(tmp_path / "run", **longer), run(**longer))


@pytest.mark.slow
def test_another_run_is_refused_and_told_what_differs(tmp_path, monkeypatch):
    def go(data, power=2, thin=1):
        potential = Partial(lambda data, u: jnp.sum((data @ u) ** power) / 1e3, data)
        target = wb.targets.from_potential(potential, jnp.zeros(3))
        options = {"num_samples": 2, "burn_in": 0, "num_chains": 1, "thin": thin, "progress": False}
        return wb.sample(
            jax.random.key(0), target, pcn(0.5), checkpoint=wb.Checkpoint(tmp_path / "run"), **options
        )

    data = jnp.asarray(np.random.default_rng(0).normal(size=(50, 3)))
    assert_same_bits(go(data), go(data + 0))
    before = (tmp_path / "run").read_bytes()
    with pytest.raises(ValueError, match="belongs to another run: thin was 1 and is now 2. Give another"):
        go(data, thin=2)
    with pytest.raises(ValueError, match=r"another run: the program \(model, sampler, functions"):
        go(data, power=4)
    with pytest.raises(ValueError, match="another run: the data"):
        go(data.at[17, 2].add(1e-6))
    monkeypatch.setattr(checkpoints, "version", lambda name: "0.0")
    with pytest.raises(ValueError, match=r"version of widebnn was \d.* and is now 0.0"):
        go(data)
    assert (tmp_path / "run").read_bytes() == before


CARRY = {"u": jnp.arange(6.0).reshape(2, 3), "key": jax.random.key(3), "none": jnp.zeros((2, 0))}
DRAWS = [np.full((4, 2), 0.5), np.full((3, 2), 1.5)]


def opened(path: Path) -> checkpoints.Store:
    return checkpoints.Store(wb.Checkpoint(path), checkpoints.identity({}, "program", np.arange(3)))


def saved(store: checkpoints.Store, step: int) -> None:
    store.save_if_due(step, checkpoints.Snapshot(CARRY | {"u": CARRY["u"] + step}, DRAWS, 0.5), is_last=True)


def restored(path: Path) -> tuple[list[bytes], bytes]:
    carry, draws, seconds = opened(path).restore(CARRY, DRAWS[0])
    assert jax.random.key_data(carry["key"]).tolist() == jax.random.key_data(CARRY["key"]).tolist()
    assert seconds == 0.5 and carry["none"].shape == (2, 0)
    return np.asarray(carry["u"]).tolist(), b"".join(part.tobytes() for part in draws)


def wanted(step: int) -> tuple[list[bytes], bytes]:
    return np.asarray(CARRY["u"] + step).tolist(), b"".join(part.tobytes() for part in DRAWS)


def test_what_is_restored_is_what_was_stored_and_a_second_process_stops(tmp_path):
    path = tmp_path / "new" / "run"
    first, second = opened(path), opened(path)
    saved(first, 10)
    assert restored(path) == wanted(10)
    with pytest.raises(RuntimeError, match="another one has written there, .* stops after step 20"):
        saved(second, 20)
    saved(first, 20)
    assert restored(path) == wanted(20) and [entry.name for entry in path.parent.iterdir()] == ["run"]


def test_damage_is_told_or_harmless_and_nothing_is_changed(tmp_path):
    path = tmp_path / "run"
    saved(opened(path), 10)
    whole, rng, told = path.read_bytes(), np.random.default_rng(0), 0
    flipped = [bytearray(whole) for _ in range(200)]
    for damaged in flipped:
        damaged[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
    for damaged in [*map(bytes, flipped), whole[: len(whole) // 2], b"", b"years of work"]:
        path.write_bytes(damaged)
        try:
            assert restored(path) == wanted(10)
        except ValueError as error:
            told += str(path) in str(error) and "nothing was changed" in str(error)
        assert path.read_bytes() == damaged
    assert told > 100
    path.unlink()
    path.mkdir()
    with pytest.raises(ValueError, match="damaged, or no checkpoint of this package"):
        restored(path)


@contextlib.contextmanager
def full_disk(num_bytes):
    """The size of files is limited for a while."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_and_a_kill_while_it_wrote_leave_the_one_before(tmp_path):
    path, aside = tmp_path / "run", tmp_path / ".run.partial"
    store = opened(path)
    saved(store, 10)
    with full_disk(300), pytest.raises(OSError, match="after step 20: .* nothing was changed: .* make room"):
        saved(store, 20)
    assert restored(path) == wanted(10) and not aside.exists()
    aside.write_bytes(path.read_bytes()[:300])
    assert restored(path) == wanted(10)
    saved(store, 20)
    assert restored(path) == wanted(20) and not aside.exists()


@pytest.mark.parametrize(
    ("every", "wanted"),
    [
        ({"every_seconds": 30}, [5, 10, 20, 40, 70, 100, 129]),
        ({"every_seconds": None, "every_steps": 40}, [40, 80, 120, 129]),
    ],
    ids=str,
)
def test_checkpoints_come_early_and_at_intervals_and_at_the_end(tmp_path, monkeypatch, every, wanted):
    """After five seconds, then after twice as long each time, up to what is asked for; a second per step."""
    now, made = 100.0, []
    monkeypatch.setattr(checkpoints.time, "perf_counter", lambda: now)
    store = checkpoints.Store(wb.Checkpoint(tmp_path / "run", **every), {})
    monkeypatch.setattr(checkpoints._archive, "write", lambda *args: made.append(now - 100))
    for step in range(130):
        now = 100.0 + step
        store.save_if_due(step, checkpoints.Snapshot(CARRY, [], 0.0), is_last=step == 129)
    assert made == wanted
