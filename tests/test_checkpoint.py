"""Checkpoints: the same bits after any interruption, and clear words where that cannot be."""

import functools
import json
import os
import resource
import shutil
from pathlib import Path

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widebnn as wb
from widebnn import _compile, checkpoint
from widebnn.samplers import langevin, pcn

from .exact.resume import SAMPLER, TARGET, assert_resumes, assert_same_bits, compiled_once, interrupted, run

# Of a damaged checkpoint, the other arrays are still being read when Orbax has closed its event loop.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with compiled_once(tmp_path_factory.mktemp("compiled")):
        yield


def steps(path: Path) -> list[int]:
    return sorted(int(entry.name) for entry in (path / "state").iterdir())


def contents(path: Path) -> dict[Path, bytes]:
    return {entry: entry.read_bytes() for entry in path.rglob("*") if entry.is_file()}


@pytest.mark.slow
def test_resumed_run_leaves_the_same_bits(tmp_path):
    assert_resumes(tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("mixed_dtypes")
def test_runs_of_another_library_resume(tmp_path):
    hmc = blackjax.ghmc(TARGET.logdensity, 0.3, {"a": jnp.ones(2), "b": jnp.ones((1, 3))}, 0.5, 0.1)
    with jax.numpy_rank_promotion("allow"):  # BlackJAX broadcasts freely
        assert_resumes(tmp_path, sampler=hmc)


@pytest.mark.slow
def test_streamed_run_resumes_and_writes_no_draws(tmp_path):
    assert_resumes(tmp_path, collect={})
    assert not (tmp_path / "run" / "draws").exists()


@pytest.mark.slow
def test_finished_run_is_not_even_compiled(tmp_path, monkeypatch):
    expected = run(tmp_path)
    monkeypatch.setattr(_compile.Program, "compile", None)
    assert_same_bits(run(tmp_path), expected)


@pytest.mark.slow
@pytest.mark.parametrize("collect", [None, {}])
def test_run_is_extended(tmp_path, collect):
    options = {} if collect is None else {"collect": collect}
    run(tmp_path, num_samples=5, **options)
    before = contents(tmp_path / "draws")
    assert_same_bits(run(tmp_path, num_samples=12, **options), run(**options))
    assert before.items() <= contents(tmp_path / "draws").items()  # what was written is not written again


@pytest.mark.slow
def test_run_cannot_be_shortened(tmp_path):
    run(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(
        ValueError, match="num_samples must be at least the 12 that the checkpoint holds; got 5"
    ):
        run(tmp_path, num_samples=5)
    assert contents(tmp_path) == before


@pytest.mark.slow
def test_intervals(tmp_path, monkeypatch):
    saved = []
    save = checkpoint.Store._save
    monkeypatch.setattr(
        checkpoint.Store, "_save", lambda self, step, kept: (saved.append(step), save(self, step, kept))
    )
    wb_run = functools.partial(wb.sample, jax.random.key(0), pcn(TARGET.potential, 0.5), TARGET)
    monkeypatch.setattr("widebnn.sampling.CHUNK_SECONDS", 1e-9)
    every = wb.Checkpoint(tmp_path / "steps", every_seconds=None, every_steps=4)
    wb_run(num_samples=10, checkpoint=every)
    assert saved == [4, 8, 10] and steps(tmp_path / "steps") == [8, 10]
    saved.clear()
    wb_run(num_samples=10, checkpoint=wb.Checkpoint(tmp_path / "end", every_seconds=1e6))
    assert saved == [10]
    saved.clear()
    wb_run(num_samples=3, checkpoint=wb.Checkpoint(tmp_path / "seconds", every_seconds=1e-9))
    assert saved == [1, 2, 3]


@pytest.mark.slow
def test_arrays_without_entries_are_kept(tmp_path):
    options = {"collect": {"nothing": lambda u: u["a"][:0], "a": lambda u: u["a"]}}
    interrupted(tmp_path, 12, **options)
    draws = run(tmp_path, **options)
    assert draws["nothing"].shape == (2, 12, 0)
    assert_same_bits(draws, run(**options))


CHANGES = {
    "rng_key": ({"key": 1}, "configuration: rng_key was"),
    "thin": ({"thin": 3}, "configuration: thin was 2 and is now 3"),
    "burn_in": ({"burn_in": 9}, "configuration: burn_in was 8 and is now 9"),
    "num_chains": ({"num_chains": 3}, "configuration: num_chains was 2 and is now 3"),
    "target_acceptance": (
        {"sampler": SAMPLER._replace(target_acceptance=0.7)},
        "configuration: target_acceptance was",
    ),
    "step_size": (
        {"sampler": SAMPLER._replace(step_size=0.2)},
        "configuration: step_size was 0.1 and is now 0.2",
    ),
    "collect": ({"collect": {"a": lambda u: u["a"]}}, "configuration: collect was"),
    "stream": (
        {"stream": {"a": wb.Stream(lambda u: u["a"], batches=False)}},
        "configuration: stream was",
    ),
    "initial": ({"initial": {"a": jnp.ones((2, 2)), "b": jnp.ones((2, 1, 3))}}, "configuration: initial was"),
    "function": ({"stream": {"a": lambda u: 2 * u["a"]}}, "the model, the sampler or a function"),
    "sampler": (
        {"sampler": SAMPLER._replace(make=functools.partial(langevin, TARGET.potential, damping=0.4))},
        "the model, the sampler or a function",
    ),
}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> Path:
    """A run with two checkpoints."""
    path = tmp_path_factory.mktemp("run")
    interrupted(path, 12)
    assert steps(path) == [12, 14]
    return path


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_another_run_is_refused_and_told_what_differs(stopped, change):
    before = contents(stopped)
    options, words = CHANGES[change]
    with pytest.raises(ValueError, match=words):
        run(stopped, **options)
    assert contents(stopped) == before


@pytest.mark.slow
def test_changed_data_model_and_versions_are_told_apart(tmp_path, monkeypatch):
    def go(data, power=2):
        target = wb.targets.from_potential(lambda u: jnp.sum((data @ u) ** power) / 1e3, jnp.zeros(3))
        every = wb.Checkpoint(tmp_path)
        return wb.sample(
            jax.random.key(0), pcn(target.potential, 0.5), target, num_samples=2, checkpoint=every
        )

    data = jnp.asarray(np.random.default_rng(0).normal(size=(50, 3)))
    go(data)
    assert_same_bits(go(data), go(data + 0))
    with pytest.raises(ValueError, match="the data, or other arrays"):
        go(data.at[17, 2].add(1e-6))
    with pytest.raises(ValueError, match="the model, the sampler"):
        go(data, power=4)
    monkeypatch.setattr(checkpoint, "version", lambda name: "0.0")
    with pytest.raises(ValueError, match=r"versions: widebnn was \d.* and is now 0.0"):
        go(data)


@pytest.mark.slow
def test_foreign_folders_are_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="holds something else than a run"):
        run(tmp_path)
    with pytest.raises(ValueError, match="checkpoint must be a folder"):
        run(tmp_path / "thesis.txt")
    assert contents(tmp_path) == {tmp_path / "thesis.txt": b"years of work"}


CARRY = {"u": jnp.arange(6.0).reshape(2, 3), "key": jax.random.key(3), "step": jnp.asarray(10)}
DRAWS = [np.full((4, 2), 0.5), np.full((3, 2), 1.5)]


def opened(path: Path, **configuration) -> checkpoint.Store:
    return checkpoint.Store(
        wb.Checkpoint(path), checkpoint.identity(configuration, "program", [np.arange(3)])
    )


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    """Two checkpoints, without a run around them."""
    path = tmp_path_factory.mktemp("store")
    store = opened(path)
    for number in (1, 2):
        carry = CARRY | {"step": jnp.asarray(10 * number)}
        store.save_if_due(10 * number, checkpoint.Kept(carry, DRAWS[:number], 0.0), is_last=True)
    return path


def restored(path: Path) -> tuple[int, list[bytes]]:
    kept = opened(path).restore(CARRY, DRAWS[0])
    assert np.array_equal(kept.carry["u"], CARRY["u"])
    assert np.array_equal(jax.random.key_data(kept.carry["key"]), jax.random.key_data(CARRY["key"]))
    return int(kept.carry["step"]), [draws.tobytes() for draws in kept.draws]


def test_what_is_restored_is_what_was_stored(stored):
    assert restored(stored) == (20, [draws.tobytes() for draws in DRAWS])


def test_a_second_process_stops_and_the_first_goes_on(tmp_path):
    first, second = opened(tmp_path), opened(tmp_path)
    for store in (first, second):
        store.restore(CARRY, DRAWS[0])
    first.save_if_due(10, checkpoint.Kept(CARRY, DRAWS[:1], 0.0), is_last=True)
    before = contents(tmp_path)
    with pytest.raises(RuntimeError, match=r"another one has written state/10 .* stops after step 20"):
        second.save_if_due(20, checkpoint.Kept(CARRY, DRAWS, 0.0), is_last=True)
    assert contents(tmp_path) == before
    first.save_if_due(20, checkpoint.Kept(CARRY | {"step": jnp.asarray(20)}, DRAWS, 0.0), is_last=True)
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


def test_a_checkpoint_of_another_run_is_told(stored, tmp_path):
    shutil.copytree(stored, tmp_path / "run")
    other = opened(tmp_path / "other", thin=2)
    other.save_if_due(30, checkpoint.Kept(CARRY, [], 0.0), is_last=True)
    shutil.copytree(tmp_path / "other" / "state" / "30", tmp_path / "run" / "state" / "30")
    with pytest.raises(ValueError, match=r"30 is damaged: it is of another run.* one before, .*20, is whole"):
        restored(tmp_path / "run")


@pytest.mark.slow
def test_full_disk_keeps_the_last_whole_checkpoint(tmp_path, caplog):
    """The size of files is limited for a while, so that arrays can no longer be written."""
    interrupted(tmp_path, 12)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, hard))
    try:
        with pytest.raises(OSError, match=r"could not be written after step 16.*\(state/14\)"):
            run(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not caplog.records, "Orbax logged what is told in the error"
    assert 14 in steps(tmp_path)
    assert_same_bits(run(tmp_path), run())


@pytest.mark.slow
def test_full_disk_from_the_beginning(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(OSError, match=r"checkpoint .*run could not be made"):
            run(tmp_path / "run")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_same_bits(run(tmp_path / "run"), run())


@pytest.mark.slow
def test_a_run_killed_while_it_wrote_goes_on(tmp_path):
    """Aside lies what Orbax had not yet renamed; a segment of draws came without its state."""
    interrupted(tmp_path, 12)
    shutil.copytree(tmp_path / "state" / "14", tmp_path / "state" / "16.orbax-checkpoint-tmp")
    shutil.copytree(tmp_path / "draws" / "3", tmp_path / "draws" / "4")
    (
        tmp_path / "draws" / "4" / "commit_success.txt"
    ).unlink()  # and was being deleted when it was killed again
    assert_same_bits(run(tmp_path), run())
    assert not list(tmp_path.rglob("*tmp*"))


@pytest.mark.slow
def test_a_run_killed_before_its_first_checkpoint_was_whole_begins_anew(tmp_path):
    options = {"burn_in": 0, "sampler": pcn(TARGET.potential, 0.5)}
    interrupted(tmp_path, 2, **options)
    shutil.rmtree(tmp_path / "state" / "2")
    assert contents(tmp_path / "draws")
    assert_same_bits(run(tmp_path, **options), run(**options))


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["state", "state/*"])
def test_draws_are_not_dropped_where_their_state_is_lost(tmp_path, lost):
    interrupted(tmp_path, 12)
    for path in tmp_path.glob(lost):
        shutil.rmtree(path)
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="has draws, but no state to go on from: .* nothing was changed"):
        run(tmp_path)
    assert contents(tmp_path) == before


def a_folder(path):
    path.mkdir()
    (path / "thesis.txt").write_text("years of work")


FOREIGN = {
    "folder": a_folder,
    "file": lambda path: path.write_text("years of work"),
    "link": lambda path: path.symlink_to(path.parent / "1"),
    "link to nothing": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_what_is_foreign_among_the_draws_is_refused_and_kept(tmp_path, make):
    interrupted(tmp_path, 12)
    make(tmp_path / "draws" / "2024")
    before = contents(tmp_path)
    with pytest.raises(ValueError, match=r"draws/2024 is no part of the run, .* nothing was changed"):
        run(tmp_path)
    assert contents(tmp_path) == before and os.path.lexists(tmp_path / "draws" / "2024")
    (tmp_path / "draws" / "2024").rename(tmp_path / "moved")
    assert_same_bits(run(tmp_path), run())


@pytest.mark.slow
def test_a_link_to_nothing_is_no_folder(tmp_path):
    (tmp_path / "run").symlink_to("nowhere")
    with pytest.raises(ValueError, match="checkpoint must be a folder; .* or a link to nothing"):
        run(tmp_path / "run")


def test_first_checkpoints_come_early(tmp_path, monkeypatch):
    """After five seconds, and after twice as long each time, up to every 30 seconds."""
    now, saved = 100.0, []
    monkeypatch.setattr(checkpoint.time, "perf_counter", lambda: now)
    store = checkpoint.Store(wb.Checkpoint(tmp_path, every_seconds=30), checkpoint.identity({}, "", []))
    monkeypatch.setattr(checkpoint, "_write", lambda *args, **options: saved.append(now - 100))
    monkeypatch.setattr(checkpoint, "_numbers", lambda path: {store._saved_step})
    for step in range(130):
        now = 100.0 + step
        store.save_if_due(step, checkpoint.Kept(CARRY, [], 0.0), is_last=False)
    assert saved == [5, 10, 20, 40, 70, 100]


def test_record_is_readable(stopped):
    record = json.loads((stopped / "run.json").read_text())
    assert record["configuration"]["thin"] == 2 and record["versions"]["jax"] == jax.__version__
