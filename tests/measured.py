"""What the test of a sweep runs, in a module that other processes can import."""

import dataclasses
import os
import time
from pathlib import Path

import numpy as np


@dataclasses.dataclass(frozen=True)
class Config:
    seed: int
    log: str


KILLED = 3


def measure(config: Config):
    """A number of its own for every seed."""
    return [{"value": float(np.random.default_rng(config.seed).normal())}]


def measure_or_be_killed(config: Config):
    """The first attempt at `KILLED` says who it is and waits for its end."""
    log = Path(config.log)
    if config.seed == KILLED and not (log / "pid").exists():
        (log / "pid.new").write_text(str(os.getpid()))
        (log / "pid.new").rename(log / "pid")
        time.sleep(60)
        raise TimeoutError("nobody came to kill")
    return measure(config)
