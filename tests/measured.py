"""What the tests of sweeps run, in a module that other processes can import."""

import dataclasses
import os
import time
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import widebnn as wb


@dataclasses.dataclass(frozen=True)
class Config:
    seed: int
    log: str
    num_samples: int = 0


KILLED = 3


def half_square(u):
    return jnp.sum(u**2) / 2


def measure(config: Config):
    """A number of its own for every seed, by NumPy or by a chain; each run leaves a line in its log."""
    with (Path(config.log) / str(config.seed)).open("a") as file:
        print("run", file=file)
    if config.num_samples == 0:
        return [{"value": float(np.random.default_rng(config.seed).normal())}]
    target = wb.targets.from_potential(half_square, jnp.zeros(2))
    sampler = wb.samplers.pcn(target.potential, 0.5)
    draws = wb.sample(jax.random.key(config.seed), sampler, target, num_samples=config.num_samples)
    return [{"value": float(draws["potential"].sum())}]


def measure_or_be_killed(config: Config):
    """The first attempt at `KILLED` says who it is and waits for its end."""
    log = Path(config.log)
    if config.seed == KILLED and not (log / "pid").exists():
        (log / "pid.new").write_text(str(os.getpid()))
        (log / "pid.new").rename(log / "pid")
        time.sleep(60)
        raise TimeoutError("nobody came to kill")
    return measure(config)


class Pair(NamedTuple):
    first: int
    others: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Nested:
    pair: Pair
    inside: Config
    names: tuple[str, ...] | list[str]
    limit: float | None = None


def shown(config: Nested):
    return [{"seen": str(config)}]
