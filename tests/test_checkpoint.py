"""Checkpoints: the same bits after any interruption, and clear words where that cannot be."""

import contextlib
import resource
import shutil
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

from .exact.resume import assert_resumes, assert_same_bits, interrupted, run

# Of a damaged checkpoint, the other arrays are still being read when Orbax has closed its event loop.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def expected() -> wb.Draws:
    """The run that nothing interrupts."""
    return run()


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> Path:
    """A run with two checkpoints."""
    path = tmp_path_factory.mktemp("run")
    interrupted(path, 4 + 4)
    assert steps(path) == [8, 10]
    return path


def steps(path: Path) -> list[int]:
    return sorted(int(entry.name) for entry in (path / "state").iterdir())


def contents(path: Path) -> dict[Path, bytes]:
    return {entry: entry.read_bytes() for entry in path.rglob("*") if entry.is_file()}


@pytest.mark.slow
def test_resumed_run_leaves_the_same_bits_and_finished_one_is_not_even_compiled(
    tmp_path, expected, monkeypatch
):
    assert_resumes(tmp_path)
    monkeypatch.setattr(Chains, "chunk", SimpleNamespace(lower=Chains.chunk.lower))
    assert_same_bits(run(tmp_path / "run"), expected)


@pytest.mark.slow
def test_streamed_run_resumes_is_extended_and_writes_no_draws(tmp_path):
    assert_resumes(tmp_path, collect={})
    longer = {"collect": {}, "num_samples": 8}
    assert_same_bits(run(tmp_path / "run", **longer), run(**longer))
    assert not (tmp_path / "run" / "draws").exists()


@pytest.mark.slow
def test_run_is_extended_and_not_shortened(tmp_path, expected):
    run(tmp_path, num_samples=3)
    before = contents(tmp_path / "draws")
    assert_same_bits(run(tmp_path), expected)
    assert before.items() <= contents(tmp_path / "draws").items()  # what was written is not written again
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="num_samples must be at least the 6 that the .* holds; got 3"):
        run(tmp_path, num_samples=3)
    assert contents(tmp_path) == before


@pytest.mark.slow
def test_another_run_is_refused_and_told_what_differs(stopped):
    before = contents(stopped)
    with pytest.raises(ValueError, match="configuration: thin was 2 and is now 3"):
        run(stopped, thin=3)
    with pytest.raises(ValueError, match="the model, the sampler or a function"):
        run(stopped, stream={"a": lambda _, u: 2 * u["a"]})
    assert contents(stopped) == before


@pytest.mark.slow
def test_changed_data_and_versions_are_told_apart(tmp_path, monkeypatch):
    def go(data):
        potential = Partial(lambda data, u: jnp.sum((data @ u) ** 2) / 1e3, data)
        target = wb.targets.from_potential(potential, jnp.zeros(3))
        every = wb.Checkpoint(tmp_path)
        return wb.sample(
            jax.random.key(0), target, pcn(0.5), num_samples=2, burn_in=0, num_chains=1, checkpoint=every
        )

    data = jnp.asarray(np.random.default_rng(0).normal(size=(50, 3)))
    assert_same_bits(go(data), go(data + 0))
    with pytest.raises(ValueError, match="the data, or other arrays"):
        go(data.at[17, 2].add(1e-6))
    monkeypatch.setattr(checkpoints, "version", lambda name: "0.0")
    with pytest.raises(ValueError, match=r"versions: widebnn was \d.* and is now 0.0"):
        go(data)


@pytest.mark.slow
def test_foreign_folders_are_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(ValueError, match="holds something else than a run"):
        run(tmp_path)
    for name in ("thesis.txt", "link"):
        with pytest.raises(ValueError, match="checkpoint must be a folder; .* or a link to nothing"):
            run(tmp_path / name)
    assert contents(tmp_path) == {tmp_path / "thesis.txt": b"years of work"}


CARRY = {"u": jnp.arange(6.0).reshape(2, 3), "key": jax.random.key(3), "step": jnp.asarray(10)}
DRAWS = [np.full((4, 2), 0.5), np.full((3, 2), 1.5)]


def opened(path: Path, **configuration) -> checkpoints.Store:
    return checkpoints.Store(
        wb.Checkpoint(path), checkpoints.identity(configuration, "program", [np.arange(3)])
    )


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    """Two checkpoints, without a run around them."""
    path = tmp_path_factory.mktemp("store")
    store = opened(path)
    for number in (1, 2):
        carry = CARRY | {"step": jnp.asarray(10 * number)}
        store.save_if_due(10 * number, checkpoints.Snapshot(carry, DRAWS[:number], 0.0), is_last=True)
    return path


def restored(path: Path) -> tuple[int, list[bytes]]:
    kept = opened(path).restore(CARRY, DRAWS[0])
    assert np.array_equal(kept.carry["u"], CARRY["u"])
    assert np.array_equal(jax.random.key_data(kept.carry["key"]), jax.random.key_data(CARRY["key"]))
    return int(kept.carry["step"]), [draws.tobytes() for draws in kept.draws]


@pytest.fixture
def copy(stored, tmp_path) -> Path:
    """One that may be damaged."""
    return shutil.copytree(stored, tmp_path / "copy")


def test_what_is_restored_is_what_was_stored(stored):
    assert restored(stored) == (20, [draws.tobytes() for draws in DRAWS])


def test_a_second_process_stops_and_the_first_goes_on(tmp_path):
    first, second = opened(tmp_path), opened(tmp_path)
    for store in (first, second):
        store.restore(CARRY, DRAWS[0])
    first.save_if_due(10, checkpoints.Snapshot(CARRY, DRAWS[:1], 0.0), is_last=True)
    before = contents(tmp_path)
    with pytest.raises(RuntimeError, match=r"another one has written state/10 .* stops after step 20"):
        second.save_if_due(20, checkpoints.Snapshot(CARRY, DRAWS, 0.0), is_last=True)
    assert contents(tmp_path) == before
    first.save_if_due(20, checkpoints.Snapshot(CARRY | {"step": jnp.asarray(20)}, DRAWS, 0.0), is_last=True)
    assert restored(tmp_path) == (20, [draws.tobytes() for draws in DRAWS])


def damages(path: Path):
    """Every file of the newest checkpoint and of its draws: a byte flipped, cut in half, gone."""
    folders = (path / "state" / "20", path / "draws")
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    for file in [path / "run.json", *files]:
        whole = file.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 1
        yield file, "flipped", bytes(flipped)
        yield file, "cut", whole[: len(whole) // 2]
        yield file, "gone", None


@pytest.mark.slow
def test_damage_is_told_or_harmless_and_nothing_is_deleted(stored, tmp_path):
    newest, told, saved_by_older = restored(stored), set(), 0
    for i, (file, how, damaged) in enumerate(damages(stored)):
        path = tmp_path / str(i)
        shutil.copytree(stored, path)
        here = path / file.relative_to(stored)
        here.unlink() if damaged is None else here.write_bytes(damaged)
        before = contents(path)
        try:
            assert restored(path) == newest, (here, how)
        except ValueError as error:
            told.add((str(file.relative_to(stored)), how))
            assert str(path) in str(error), (here, how)
            if "The one before" in str(error):  # and then what it says helps
                shutil.move(path / "state" / "20", tmp_path / f"{i}-moved")
                assert restored(path) == (10, newest[1][:1]), (here, how)
                saved_by_older += 1
            else:
                assert contents(path) == before, (here, how)
    assert {("run.json", "cut"), ("state/20/arrays/manifest.ocdbt", "cut")} <= told
    assert any("state/20/arrays" in file and "/d/" in file and how == "flipped" for file, how in told)
    assert any("draws/7" in file and how == "flipped" for file, how in told)
    assert saved_by_older > 5


@contextlib.contextmanager
def full_disk(num_bytes):
    """The size of files is limited for a while."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_full_disk_keeps_the_last_whole_checkpoint(copy, stored, tmp_path, caplog):
    """Arrays can no longer be written; and on a disk that was full before, nothing can."""
    store, new = opened(copy), checkpoints.Snapshot(CARRY, DRAWS, 0.0)
    store.restore(CARRY, DRAWS[0])
    with full_disk(300), pytest.raises(OSError, match=r"not be written after step 30.*\(state/20\)"):
        store.save_if_due(30, new, is_last=True)
    assert not caplog.records, "Orbax logged what is told in the error"
    assert restored(copy) == restored(stored)
    with full_disk(10), pytest.raises(OSError, match=r"checkpoint .*new could not be made"):
        opened(tmp_path / "new")
    opened(tmp_path / "new").save_if_due(10, new, is_last=True)
    assert steps(tmp_path / "new") == [10]


@pytest.mark.slow
def test_a_run_killed_while_it_wrote_goes_on(copy, stored):
    """Aside lies what Orbax had not yet renamed; a segment of draws came without its state."""
    shutil.copytree(copy / "state" / "20", copy / "state" / "30.orbax-checkpoint-tmp")
    shutil.copytree(copy / "draws" / "7", copy / "draws" / "9")
    (copy / "draws" / "9" / "commit_success.txt").unlink()  # and was being deleted when it was killed again
    assert restored(copy) == restored(stored)
    store = opened(copy)
    store.restore(CARRY, DRAWS[0])
    store.save_if_due(30, checkpoints.Snapshot(CARRY, DRAWS, 0.0), is_last=True)
    assert steps(copy) == [20, 30] and not list(copy.rglob("*tmp*"))


def test_a_run_killed_before_its_first_checkpoint_was_whole_begins_anew(tmp_path):
    opened(tmp_path).save_if_due(10, checkpoints.Snapshot(CARRY, DRAWS[:1], 0.0), is_last=True)
    shutil.rmtree(tmp_path / "state" / "10")
    assert contents(tmp_path / "draws")
    assert opened(tmp_path).restore(CARRY, DRAWS[0]).draws == []
    assert not contents(tmp_path / "draws")


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["state", "state/*"])
def test_draws_are_not_dropped_where_their_state_is_lost(copy, lost):
    for path in copy.glob(lost):
        shutil.rmtree(path)
    before = contents(copy)
    with pytest.raises(ValueError, match="has draws, but no state to go on from: .* nothing was changed"):
        restored(copy)
    assert contents(copy) == before


def test_what_is_foreign_among_the_draws_is_refused_and_kept(copy, stored):
    (copy / "draws" / "2024").write_text("years of work")
    before = contents(copy)
    with pytest.raises(ValueError, match=r"draws/2024 is no part of the run, .* nothing was changed"):
        restored(copy)
    assert contents(copy) == before
    (copy / "draws" / "2024").rename(copy.parent / "moved")
    assert restored(copy) == restored(stored)


@pytest.mark.parametrize(
    ("every", "wanted"),
    [
        ({"every_seconds": 30}, [5, 10, 20, 40, 70, 100, 129]),
        ({"every_seconds": 1e6}, [5, 10, 20, 40, 80, 129]),
        ({"every_seconds": None, "every_steps": 40}, [40, 80, 120, 129]),
    ],
    ids=str,
)
def test_checkpoints_come_early_and_at_intervals_and_at_the_end(tmp_path, monkeypatch, every, wanted):
    """After five seconds, then after twice as long each time, up to what is asked for; a second per step."""
    now, saved = 100.0, []
    monkeypatch.setattr(checkpoints.time, "perf_counter", lambda: now)
    store = checkpoints.Store(wb.Checkpoint(tmp_path, **every), checkpoints.identity({}, "", []))
    monkeypatch.setattr(checkpoints, "_write", lambda *args, **options: saved.append(now - 100))
    monkeypatch.setattr(checkpoints, "_numbers", lambda path: {store._saved_step})
    for step in range(130):
        now = 100.0 + step
        store.save_if_due(step, checkpoints.Snapshot(CARRY, [], 0.0), is_last=step == 129)
    assert saved == wanted
