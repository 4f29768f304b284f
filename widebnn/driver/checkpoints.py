"""Runs that resume: a second call of ``wb.sample(..., checkpoint=wb.Checkpoint("a"))`` continues the first.

The folder holds

- ``run.json``: what identifies the run, its configuration and hashes of its program and its data;
- ``state/``: the last two checkpoints of all that the chains carry, named by the number of steps made;
- ``draws/``: what was collected from one checkpoint to the next, named by the number of draws made.

Orbax writes each checkpoint under a temporary name and renames it when it is complete. What is read back is
compared with a SHA-256 that was computed in memory, before it was written.
"""

import contextlib
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from widebnn._check import Number, at_least, positive

__all__ = ["Checkpoint"]

FORMAT = "widebnn checkpoints 1"
ITEMS = ("arrays", "record")
WRITTEN = {*ITEMS, "_CHECKPOINT_METADATA", "commit_success.txt"}  # what Orbax puts into a checkpoint

FIRST_SECONDS = 5.0


@dataclass(frozen=True)
class Checkpoint:
    """Where a run is saved on disk, and how often.

    A call of `widebnn.sample` with the same arguments resumes from the newest checkpoint there, and its draws
    are bit for bit those of a run that was never interrupted. When the run is finished the call returns its
    result without a step; with a larger `num_samples` it extends the run. A folder is for one process at a
    time: of two, the second to write a checkpoint stops with an error.

    Parameters
    ----------
    path
        Folder of the run, made where it is missing; it belongs to one run.
    every_seconds
        Longest wall time in seconds from one checkpoint to the next; None for no limit. The first one comes
        after 5 seconds, each later one when the time since the start has doubled, or this limit is reached.
    every_steps
        Steps from one checkpoint to the next; None for no limit. Both are looked at between compiled chunks,
        of about half a second, so that a step is never interrupted. There is always a checkpoint at the end.
    """

    path: str | os.PathLike
    every_seconds: Number | None = 600.0
    every_steps: int | None = None

    def __post_init__(self):
        if self.every_seconds is not None:
            positive(every_seconds=self.every_seconds)
        if self.every_steps is not None:
            at_least(1, every_steps=self.every_steps)


class Snapshot(NamedTuple):
    """What a run is resumed from: the carry, the draws of each chunk, and the seconds it took until then."""

    carry: PyTree
    draws: list[PyTree]
    seconds: float


def identity(configuration: Mapping[str, Any], program: str, constants: list[Any]) -> dict[str, Any]:
    """What must be the same for a run to go on: see `_difference`."""
    return {
        "format": FORMAT,
        "versions": {name: version(name) for name in ("widebnn", "jax", "jaxlib")}
        | {"platform": jax.default_backend()},
        "configuration": json.loads(json.dumps(configuration)),
        "program": hashlib.sha256(program.encode()).hexdigest(),
        "data": digest(constants),
    }


def digest(tree: PyTree) -> str:
    """SHA-256 of shapes, types and bytes of all leaves."""
    total = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        array = np.ascontiguousarray(_to_host(leaf))
        total.update(f"{array.dtype.name}{array.shape}".encode())
        total.update(array.reshape(-1).view(np.uint8))
    return total.hexdigest()


class Store:
    """The folder of one run; it is refused where it holds something else, or another run."""

    def __init__(self, settings: Checkpoint, identity: dict[str, Any]):
        self.settings, self.path = settings, Path(settings.path).absolute()
        self.identity = identity
        self._claim()
        self._segments: list[dict[str, Any]] = []
        self._saved_step, self._num_chunks = -1, 0
        self._opened_at = self._saved_at = time.perf_counter()

    def _claim(self) -> None:
        """Make the folder ours, or see that it is."""
        record, states = self.path / "run.json", self.path / "state"
        if os.path.lexists(self.path) and not self.path.is_dir():
            raise ValueError(f"checkpoint must be a folder; {self.path} is a file, or a link to nothing")
        if not os.path.lexists(record):
            partial = record.with_suffix(".partial")
            if self.path.exists() and (set(self.path.iterdir()) - {partial, states} or any(states.glob("*"))):
                raise ValueError(f"checkpoint {self.path} holds something else than a run; give a new folder")
            try:
                states.mkdir(parents=True, exist_ok=True)
                partial.write_text(json.dumps(self.identity, indent=1) + "\n")
                partial.replace(record)
            except OSError as error:
                raise OSError(f"checkpoint {self.path} could not be made: {error}") from error
        try:
            stored = json.loads(record.read_text())
        except (ValueError, OSError):
            stored = None
        if not isinstance(stored, dict) or [stored.get("format"), *stored] != [FORMAT, *self.identity]:
            raise ValueError(f"checkpoint {record} is damaged, or none of this package; nothing was changed")
        if found := _difference(stored, self.identity):
            raise ValueError(f"checkpoint {self.path} belongs to another run: {found}. Give another folder")

    def restore(self, carry: PyTree, draw: PyTree) -> Snapshot:
        """The newest checkpoint, in the structures of `carry` and `draw`; `carry` where there is none.

        One that is damaged or belongs to another run is refused, and draws without a state are; the message
        names the one before if that is whole. Nothing of the run is deleted.
        """
        snapshot = Snapshot(carry, [], 0.0)
        if steps := sorted(_numbers(self.path / "state"), reverse=True):
            newest = self.path / "state" / str(steps[0])
            try:
                snapshot, self._segments = self._load(steps[0], carry, draw)
            except Exception as error:
                advice = self._advice(steps[1:], carry, draw)
                raise ValueError(f"checkpoint {newest} is damaged: {error}. {advice}") from error
            self._saved_step, self._num_chunks = steps[0], len(snapshot.draws)
        orphans = _numbers(self.path / "draws") - {segment["draws"] for segment in self._segments}
        self._remove([self.path / "draws" / str(number) for number in orphans])
        return snapshot

    def _remove(self, orphans: list[Path]) -> None:
        """Delete draws of a run that was killed before the state that goes with them was whole."""
        is_lost = not (self.path / "state").is_dir() or (self._saved_step < 0 and len(orphans) > 1)
        if orphans and is_lost:
            raise ValueError(
                f"checkpoint {self.path} has draws, but no state to go on from: put state/ back, or give "
                "another folder; nothing was changed"
            )
        for orphan in orphans:
            is_ours = orphan.is_dir() and not orphan.is_symlink()
            if not is_ours or {entry.name for entry in orphan.iterdir()} - WRITTEN:
                raise ValueError(
                    f"checkpoint {orphan} is no part of the run, nor left over from it: move it away, and "
                    "the same call goes on; nothing was changed"
                )
        for orphan in orphans:
            shutil.rmtree(orphan)

    def save_if_due(self, step: int, snapshot: Snapshot, is_last: bool) -> None:
        """Write a checkpoint, if one is due after `step` steps."""
        seconds, steps = self.settings.every_seconds, self.settings.every_steps
        is_due = is_last
        if seconds is not None:  # soon the first time, then after twice as long as the time before
            seconds = min(seconds, max(FIRST_SECONDS, self._saved_at - self._opened_at))
            is_due |= time.perf_counter() - self._saved_at >= seconds
        is_due |= steps is not None and step - max(self._saved_step, 0) >= steps
        if is_due:
            self._save(step, snapshot)

    def _save(self, step: int, snapshot: Snapshot) -> None:
        if (stored := max(_numbers(self.path / "state"), default=-1)) != self._saved_step:
            raise RuntimeError(
                f"checkpoint {self.path} is of one process at a time: another one has written "
                f"state/{stored} there, and can go on; this one stops after step {step}"
            )
        try:
            segments = list(self._segments)
            if new := snapshot.draws[self._num_chunks :]:
                arrays = [np.concatenate(parts) for parts in zip(*map(jax.tree.leaves, new))]
                num_draws = sum(len(jax.tree.leaves(chunk)[0]) for chunk in snapshot.draws)
                segments.append({"draws": num_draws, "sha256": digest(arrays)})
                _write(self.path / "draws", num_draws, arrays, {})
            record = {
                "run": self._name,
                "seconds": snapshot.seconds,
                "segments": segments,
                "sha256": digest(snapshot.carry),
            }
            _write(self.path / "state", step, jax.tree.leaves(snapshot.carry), record, max_to_keep=2)
        except Exception as error:
            left = f"state/{self._saved_step}" if self._saved_step >= 0 else "there is none yet"
            raise OSError(
                f"checkpoint {self.path} could not be written after step {step}: {error}. "
                f"The last whole one is kept ({left}); make room, and the same call goes on from it"
            ) from error
        self._segments, self._num_chunks = segments, len(snapshot.draws)
        self._saved_step, self._saved_at = step, time.perf_counter()

    @property
    def _name(self) -> str:
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()

    def _load(self, step: int, carry: PyTree, draw: PyTree) -> tuple[Snapshot, list[dict[str, Any]]]:
        """The checkpoint of `step` and its segments of draws; any error means that it is damaged."""
        arrays, record = _read(self.path / "state", step)
        if record["run"] != self._name:
            raise ValueError("it is of another run than run.json says")
        if digest(arrays) != record["sha256"]:
            raise ValueError("its bytes are not those that were saved")
        draws = []
        for segment in record["segments"]:
            draws.append(_read(self.path / "draws", segment["draws"])[0])
            if digest(draws[-1]) != segment["sha256"]:
                raise ValueError(f"the bytes of draws/{segment['draws']} are not those that were saved")
        leaves, of_carry = jax.tree.flatten(carry)
        restored = of_carry.unflatten(map(_to_device, arrays, leaves))
        draws = [jax.tree.structure(draw).unflatten(arrays) for arrays in draws]
        return Snapshot(restored, draws, record["seconds"]), record["segments"]

    def _advice(self, older: list[int], carry: PyTree, draw: PyTree) -> str:
        for step in older:
            try:
                self._load(step, carry, draw)
            except Exception:
                continue
            return (
                f"The one before, {self.path / 'state' / str(step)}, is whole: "
                "move the damaged one away, and the same call goes on from it"
            )
        return "There is no other that is whole: start again in another folder"


def _difference(stored: dict[str, Any], current: dict[str, Any]) -> str:
    """In words, what differs between two identities; empty where nothing does."""
    for part in ("versions", "configuration"):
        for name in dict.fromkeys([*current[part], *stored[part]]):
            old, new = stored[part].get(name), current[part].get(name)
            if old != new:
                return f"{part}: {name} was {old} and is now {new}"
    if stored["program"] != current["program"]:
        return "the model, the sampler or a function that is collected or streamed has changed"
    if stored["data"] != current["data"]:
        return "the data, or other arrays and numbers of the model or the sampler, have changed"
    return ""


def _to_host(leaf: Any) -> np.ndarray:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)


def _to_device(array: np.ndarray, like: jax.Array | np.ndarray) -> jax.Array | np.ndarray:
    if isinstance(like, np.ndarray):  # which lives on the host
        return array
    if jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(like))
    return jnp.array(array)  # a copy: chunks use up what they are given


def _numbers(path: Path) -> set[int]:
    names = [entry.name for entry in path.glob("*") if entry.name.isdecimal()]
    return {int(name) for name in names if name == str(int(name))}


def _write(
    path: Path, number: int, leaves: list[Any], record: dict[str, Any], max_to_keep: int | None = None
) -> None:
    import orbax.checkpoint as ocp  # half a second, which only those pay who save

    arrays = {str(i): _to_host(leaf) for i, leaf in enumerate(leaves)}
    # Orbax does not store arrays without entries.
    record = record | {"empty": {i: [x.shape, x.dtype.name] for i, x in arrays.items() if x.size == 0}}
    arrays = {i: x for i, x in arrays.items() if x.size > 0}
    items = ocp.args.Composite(arrays=ocp.args.PyTreeSave(arrays), record=ocp.args.JsonSave(record))
    options = ocp.CheckpointManagerOptions(
        max_to_keep=max_to_keep,
        enable_async_checkpointing=False,
        cleanup_tmp_directories=True,
        lightweight_initialize=True,
    )
    with _without_log(), ocp.CheckpointManager(path, options=options, item_names=ITEMS) as manager:
        manager.save(number, args=items, force=True)


@contextlib.contextmanager
def _without_log() -> Iterator[None]:
    """Orbax logs an error with all that led to it, besides raising it."""
    log = logging.getLogger("absl")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def _read(path: Path, number: int) -> tuple[list[np.ndarray], dict[str, Any]]:
    import orbax.checkpoint as ocp

    items = ocp.args.Composite(arrays=ocp.args.PyTreeRestore(), record=ocp.args.JsonRestore())
    with ocp.Checkpointer(ocp.CompositeCheckpointHandler(*ITEMS)) as checkpointer:
        found = checkpointer.restore(path / str(number), args=items)
    empty = {i: np.zeros(shape, dtype) for i, (shape, dtype) in found["record"]["empty"].items()}
    arrays = {i: np.asarray(x) for i, x in found["arrays"].items()} | empty
    return [arrays[str(i)] for i in range(len(arrays))], found["record"]
