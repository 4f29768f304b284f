"""Sweeps: many configurations of an experiment, each stored on its own, on whatever runs them."""

import dataclasses
import importlib
import json
import operator
import os
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future, wait
from functools import partial
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from widebnn.study.results import Results, config_hash, load, load_or_run
from widebnn.study.rows import Row

__all__ = ["place", "sweep"]


def place(folder: str | os.PathLike, config: Any) -> Path:
    """Where a sweep into `folder` stores the results of `config`: ``<its class>-<its hash>.json``.

    Raises
    ------
    TypeError
        If `config` is not an instance of a dataclass.

    Examples
    --------
    >>> from widebnn.experiments import OverWidth
    >>> from widebnn.study import place
    >>> place("over-width", OverWidth()).suffix
    '.json'
    """
    digest = config_hash(config)
    return Path(folder) / f"{type(config).__name__}-{digest[:32]}.json"


def sweep[C](
    function: Callable[[C], Iterable[Row]],
    configs: Sequence[C],
    folder: str | os.PathLike,
    executor: Executor | None = None,
    progress: bool = True,
) -> list[Results]:
    """The results of ``function(config)`` for every configuration: stored ones are loaded, the others run.

    Whichever process runs a configuration writes its results, in one piece, as soon as they are complete. A
    sweep that was stopped, or that lost a worker, is continued by the same call, and nothing that was stored
    runs again. A configuration that fails does not stop the others.

    Parameters
    ----------
    function
        Takes a configuration and yields or returns rows, dictionaries of numbers and names; an experiment is
        one. An executor gets its name: it must be in a module that workers can import, with the same version
        of this package. A notebook is not such a module; ``%%writefile`` makes a module of a cell.
    configs
        Instances of frozen dataclasses of numbers, names and tuples of them, no two equal. An executor gets
        them as JSON with the name of their class.
    folder
        Where `place` puts one file per configuration; made where it is missing. All workers must see it under
        this name: on a cluster, on a shared file system.
    executor
        Any `concurrent.futures.Executor`; without one, everything runs in this process, one configuration
        after another. For processes on this machine,
        ``ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))``: JAX does not survive a fork.
        For many machines, Dask's ``Client.get_executor()``, which also goes on when a worker dies.
    progress
        Whether to show a progress bar, one unit per configuration.

    Returns
    -------
    list of Results
        One for each configuration, in the order of `configs`.

    Raises
    ------
    TypeError
        If `function` is not a function, `executor` is not an executor, a configuration is not an instance of
        a dataclass, or the function or a configuration cannot be sent to the executor.
    ValueError
        Before anything runs, if a configuration appears twice, `folder` holds anything that no sweep has
        written, or a stored file is damaged.
    NotADirectoryError
        If `folder` is a file.
    ExceptionGroup
        After all others are stored, if configurations failed: it holds their errors, each with a note that
        names the configuration.

    Examples
    --------
    >>> import tempfile
    >>> from dataclasses import dataclass
    >>> from widebnn.study import sweep
    >>> @dataclass(frozen=True)
    ... class Walk:
    ...     num_steps: int
    >>> def walk(config):
    ...     yield {"steps": config.num_steps}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = sweep(walk, [Walk(10), Walk(20)], folder, progress=False)
    >>> [found.rows for found in results]
    [[{'steps': 10}], [{'steps': 20}]]

    On the workers of a Dask cluster, with functions that these can import::

        from distributed import Client

        from widebnn.experiments import OverWidth, over_width
        from widebnn.study import sweep

        configs = [OverWidth(seed=s) for s in range(4)]
        with Client("tcp://scheduler:8786") as client:
            results = sweep(over_width, configs, "over-width", client.get_executor())
    """
    if not callable(function):
        raise TypeError(f"function must take a configuration and return rows; got {function!r}")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be a concurrent.futures.Executor or None; got {executor!r}")
    folder = Path(folder).absolute()  # workers may stand elsewhere
    places = {}
    for config in configs:
        if (path := place(folder, config)) in places:
            raise ValueError(f"configs must differ from one another; twice there is {config}")
        places[path] = config
    _check_folder(folder)
    stored = [path for path in places if path.exists()]
    for path in stored:
        load(path, places[path])
    runs = {path: (path, config, function) for path, config in places.items() if path not in stored}
    jobs = {
        path: partial(load_or_run, *run) if executor is None else partial(_run, _packed(*run))
        for path, run in runs.items()
    }
    folder.mkdir(parents=True, exist_ok=True)

    futures: dict[Future, C] = {}
    is_silent = not progress or os.environ.get("TQDM_DISABLE") == "1"
    with tqdm(total=len(places), initial=len(stored), unit="run", disable=is_silent) as bar:
        try:
            for path, job in jobs.items():
                future = (executor or _Here()).submit(job)
                future.add_done_callback(lambda _: bar.update())
                futures[future] = places[path]
            wait(futures)
        finally:
            for future in futures:  # where something stopped us
                future.cancel()

    failures = [error for future, config in futures.items() if (error := _failure(future, config))]
    if failures:
        raise ExceptionGroup(
            f"{len(failures)} of {len(places)} configurations failed; the others are stored", failures
        )
    return [load(path, config) for path, config in places.items()]


class _Here(Executor):
    """Runs what is submitted at once, in this thread."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # kept for the one who asks for the result
            future.set_exception(error)
        return future


def _packed(path: Path, config: Any, function: Callable) -> str:
    # Names and JSON: what cannot be imported there is an error in the run like any other, where Dask would
    # wait for ever, and nothing that comes to a worker is a pickle of ours.
    packed = json.dumps([str(path), _plain(config), _name(function)])
    if _value(json.loads(packed)[1]) != config:
        raise TypeError(
            f"configs must hold numbers, names and tuples of them to go to an executor; got {config}"
        )
    return packed


def _run(packed: str) -> None:
    # Results come back through the file, and what a worker stored before it was lost is not run again.
    path, config, function = json.loads(packed)
    load_or_run(path, _value(config), _imported(function))


def _plain(value: Any) -> Any:
    """What JSON can hold of a configuration: numbers, names, lists, and classes by their name."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif isinstance(value, tuple) and (names := getattr(value, "_fields", None)):
        fields = dict(zip(names, value, strict=True))
    elif isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    else:
        return value
    return {"class": _name(type(value))} | {name: _plain(entry) for name, entry in fields.items()}


def _value(plain: Any) -> Any:
    """The configuration that `_plain` was given."""
    if isinstance(plain, list):
        return tuple(_value(entry) for entry in plain)
    if isinstance(plain, dict):
        fields = {name: _value(entry) for name, entry in plain.items() if name != "class"}
        return _imported(plain["class"])(**fields)
    return plain


def _name(thing: Any) -> str:
    """`module:name`, by which every process can import it."""
    name = f"{getattr(thing, '__module__', None)}:{getattr(thing, '__qualname__', None)}"
    try:
        is_found = _imported(name) is thing
    except (ImportError, AttributeError):
        is_found = False
    if not is_found or name.startswith("__main__:"):  # which is another module in every process
        raise TypeError(
            f"to go to an executor, function and the classes of configs must be of a module that workers can "
            f"import; got {thing!r}"
        )
    return name


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return operator.attrgetter(attribute)(importlib.import_module(module))


def _failure(future: Future, config: Any) -> Exception | None:
    try:
        future.result()
    except Exception as error:
        error.add_note(f"in the configuration {config}")
        return error


def _check_folder(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise NotADirectoryError(f"folder must be a folder; {folder.name} is a file")
    for file in folder.iterdir():
        if not re.fullmatch(r"\w+-[0-9a-f]{32}(\.\w+|-\w+)*\.(json|partial)", file.name):
            raise ValueError(
                f"folder must be new, empty or of an earlier sweep; {folder.name} holds {file.name}, "
                "which no sweep has written"
            )
