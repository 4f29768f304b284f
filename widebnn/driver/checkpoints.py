"""Runs that resume: a second call of ``wb.sample(..., checkpoint=wb.Checkpoint("a"))`` continues the first.

One file holds all: what identifies the run, what the chains carry, and what was collected so far. Each
checkpoint is written aside and takes the place of the one before when it is complete; a checksum of every
array is compared when it is read.
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from widebnn import _archive
from widebnn._check import Number, at_least, positive

__all__ = ["Checkpoint"]

FIRST_SECONDS = 5.0


@dataclass(frozen=True)
class Checkpoint:
    """Where a run is saved on disk, and how often.

    A call of `widebnn.sample` with the same arguments resumes from the checkpoint there, and its draws are
    bit for bit those of a run that was never interrupted. When the run is finished the call returns its
    result without a step; with a larger `num_samples` it extends the run. A file is for one process at a
    time: of two, the second to write a checkpoint stops with an error.

    Parameters
    ----------
    path
        File of the run, made where it is missing; it belongs to one run.
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


def identity(configuration: Mapping[str, Any], program: str, constants: PyTree) -> dict[str, Any]:
    """What must be the same for a run to go on, by name and words."""
    versions = {f"version of {name}": version(name) for name in ("widebnn", "jax", "jaxlib")}
    return {
        **versions,
        "platform": jax.default_backend(),
        **json.loads(json.dumps(configuration)),
        "the program (model, sampler, functions that are collected or streamed)": _hash(program.encode()),
        "the data (or other arrays and numbers)": digest(constants),
    }


def digest(tree: PyTree) -> str:
    """SHA-256 of shapes, types and bytes of all leaves."""
    arrays = [np.ascontiguousarray(_archive.to_host(leaf)) for leaf in jax.tree.leaves(tree)]
    return _hash(*(part for x in arrays for part in (f"{x.dtype.name}{x.shape}".encode(), x.tobytes())))


def _hash(*parts: bytes) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()[:16]


class Store:
    """The file of one run; it is refused where it holds something else, or another run."""

    def __init__(self, settings: Checkpoint, identity: dict[str, Any]):
        self.settings, self.path, self.identity = settings, Path(settings.path).absolute(), identity
        self._saved_step = 0
        self._opened_at = self._saved_at = time.perf_counter()
        self._stamp = self._written()

    def restore(self, carry: PyTree, draw: PyTree) -> Snapshot:
        """The checkpoint, in the structures of `carry` and `draw`; `carry` where there is none."""
        try:
            record, arrays = _archive.read(self.path, "checkpoint")
        except FileNotFoundError:
            return Snapshot(carry, [], 0.0)
        except ValueError as error:
            raise ValueError(f"checkpoint {error}; nothing was changed") from error
        for name, now in self.identity.items():
            if (before := record["identity"].get(name)) != now:
                raise ValueError(
                    f"checkpoint {self.path} belongs to another run: {name} was {before} and is now {now}. "
                    "Give another file"
                )
        self._saved_step = record["step"]
        leaves, structure = jax.tree.flatten(carry)
        carried = [_like(arrays[f"carry {i}"], leaf) for i, leaf in enumerate(leaves)]
        of_draws = [array for name, array in arrays.items() if name.startswith("draws")]
        draws = [jax.tree.structure(draw).unflatten(of_draws)] if of_draws else []
        return Snapshot(structure.unflatten(carried), draws, record["seconds"])

    def save_if_due(self, step: int, snapshot: Snapshot, is_last: bool) -> None:
        """Write a checkpoint, if one is due after `step` steps."""
        seconds, steps = self.settings.every_seconds, self.settings.every_steps
        is_due = is_last
        if seconds is not None:  # soon the first time, then after twice as long as the time before
            seconds = min(seconds, max(FIRST_SECONDS, self._saved_at - self._opened_at))
            is_due |= time.perf_counter() - self._saved_at >= seconds
        is_due |= steps is not None and step - self._saved_step >= steps
        if is_due:
            self._save(step, snapshot)

    def _save(self, step: int, snapshot: Snapshot) -> None:
        if self._written() != self._stamp:
            raise RuntimeError(
                f"checkpoint {self.path} is of one process at a time: another one has written there, and can "
                f"go on; this one stops after step {step}"
            )
        draws = zip(*map(jax.tree.leaves, snapshot.draws))
        arrays = {f"carry {i}": leaf for i, leaf in enumerate(jax.tree.leaves(snapshot.carry))}
        arrays |= {f"draws {i}": np.concatenate(parts) for i, parts in enumerate(draws)}
        record = {"identity": self.identity, "step": step, "seconds": snapshot.seconds}
        try:
            _archive.write(self.path, "checkpoint", record, arrays)
        except OSError as error:
            raise OSError(
                f"after step {step}: {error}. The last whole one is kept; make room, and the same call goes "
                "on from it"
            ) from error
        self._stamp, self._saved_step, self._saved_at = self._written(), step, time.perf_counter()

    def _written(self) -> tuple[int, int] | None:
        """Which file is there, and since when."""
        found = self.path.stat() if self.path.exists() else None
        return found and (found.st_ino, found.st_mtime_ns)


def _like(array: np.ndarray, like: jax.Array | np.ndarray) -> jax.Array | np.ndarray:
    if isinstance(like, np.ndarray):  # which lives on the host
        return array
    if jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(like))
    return jax.device_put(np.array(array))  # a copy, since chunks use it up; and without a program for each
