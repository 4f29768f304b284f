"""Bad inputs of scales and sweeps."""

from concurrent import futures
from pathlib import Path

from widebnn import experiments
from widebnn.study import sweep as sweeps

from .rows import kw, refused

CONFIGS = (experiments.OverMaps(),)


def sweep(function=len, configs=CONFIGS, folder="results", executor=None):
    return sweeps.sweep(function, configs, folder, executor, progress=False)


ROWS = [
    *refused(
        "scale.at_scale",
        (kw(laptop=1), "choices…'smoke'…['laptop']"),
        (kw(smoke=1, huge=2), "choices…'paper'…huge"),
    ),
    *refused(
        "sweep.sweep",
        (lambda: sweep(function=3), TypeError, "function…return rows…3"),
        (lambda: sweep(configs=[3]), TypeError, "config…dataclass…3"),
        (lambda: sweep(executor=4), TypeError, "executor…concurrent.futures.Executor…4"),
        (lambda: sweep(configs=2 * CONFIGS), "configs…OverMaps("),
        (
            lambda: sweep(function=(_ for _ in ()).__next__, executor=futures.ThreadPoolExecutor(1)),
            TypeError,
            "function…workers can import…generator",
        ),
        (lambda: sweep(folder=__file__), NotADirectoryError, "folder…study.py"),
        (lambda: sweep(folder=Path(__file__).parent), "folder…bad_inputs holds…no sweep"),
    ),
    *refused("sweep.place", ("results", 3, TypeError, "config…dataclass…3")),
]
