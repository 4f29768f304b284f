"""Compiled programs: one for a whole function, kept on disk for the next process, forgotten where many."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from widebnn._check import at_least

MAX_MIB = 2_048

MAX_MAPS = 40_000
"""Memory maps of a process, of which Linux allows 65,530. A fit of a new shape takes some 1,500."""


def jitted[T: Callable[..., Any]](method: T) -> T:
    """A method of a pytree as one program, which serves every object of the same structure and shapes."""
    return jax.jit(method)  # pyright: ignore[reportReturnType]


_process: int | None = None
"""Where JAX ran first, if anywhere."""


def refuse_fork() -> None:
    """Raise in a process that was forked after JAX had run: without its threads it would hang.

    Raises
    ------
    RuntimeError
        In such a process.
    """
    global _process
    if _process not in (None, os.getpid()):
        raise RuntimeError(
            "JAX ran before this process was forked, and would hang here: start it by "
            'multiprocessing.get_context("spawn"), or load models after the fork'
        )
    _process = os.getpid()


def make_room() -> None:
    """Forget all compiled programs where the process is about to run out of memory maps.

    JAX keeps every program, and without a map for the next one XLA ends the process: after about 40 fits of
    different shapes, as in a grid search.
    """
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MAX_MAPS:
        jax.clear_caches()


def keep_compiled(folder: str | os.PathLike | None = None, max_mib: int = MAX_MIB) -> Path | None:
    """Let JAX keep the programs that this process compiles, and take up those that an earlier one has kept.

    Chapters call it when they run outside Colab, and so do the tests. It sets JAX's persistent compilation
    cache and nothing else; call it before the first array is made. Programs that have not been read for
    longest are deleted at each call until the folder is within its limit.

    Parameters
    ----------
    folder
        Where programs are kept: ``widebnn/compiled`` in ``$XDG_CACHE_HOME``, or in ``~/.cache`` where that is
        unset. An existing setting of JAX, such as the variable ``JAX_COMPILATION_CACHE_DIR``, comes before
        this default.
    max_mib
        The size, in MiB, to which the folder is cut back.

    Returns
    -------
    Path | None
        The folder, or None where nothing is kept: the variable ``JAX_ENABLE_COMPILATION_CACHE`` is ``false``,
        or the folder cannot be written to.

    Examples
    --------
    >>> import widebnn as wb
    >>> folder = wb.keep_compiled()
    """
    at_least(1, max_mib=max_mib)
    if not jax.config.jax_enable_compilation_cache:
        return None
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    chosen = folder or jax.config.jax_compilation_cache_dir or caches / "widebnn" / "compiled"
    folder = Path(chosen).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _cut_back(folder, max_mib * 2**20)
    except OSError:
        return None
    if not os.access(folder, os.W_OK):
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    # Of two processes one may read what the other is still writing; it then compiles for itself.
    warnings.filterwarnings("ignore", "Error reading persistent compilation cache entry")
    return folder


def _cut_back(folder: Path, max_bytes: int) -> None:
    """Delete the files that were read longest ago."""
    files = []
    for file in folder.iterdir():
        try:
            found = file.stat()
        except FileNotFoundError:  # another process cuts back too
            continue
        files.append((max(found.st_atime, found.st_mtime), found.st_size, file))
    excess = sum(size for _, size, _ in files) - max_bytes
    for _, size, file in sorted(files):
        if excess <= 0:
            return
        file.unlink(missing_ok=True)
        excess -= size
