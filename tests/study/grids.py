"""A small experiment with a registry of its own, for what is asked of any."""

import dataclasses
from pathlib import Path

from widebnn.study import Finding, experiment
from widebnn.study.registry import Registry


@dataclasses.dataclass(frozen=True)
class Grid:
    widths: tuple[int, ...] = (2, 4, 8)
    steps: tuple[int, ...] = (30, 20, 10)
    taus: tuple[float, ...] = (0.1, 1.0)
    num_repeats: int = 2

    def __post_init__(self):
        if len(self.widths) != len(self.steps):
            raise ValueError(f"steps must have one entry for each of {self.widths}; got {self.steps}")


CONFIG = Grid(widths=(2, 4), steps=(30, 20), taus=(0.1,))
LAPTOP = dataclasses.replace(CONFIG, widths=(2, 4, 8), steps=(30, 20, 10))


def rows_of(config: Grid):
    """Repeats outside of temperatures, as some experiments have them."""
    for width, steps in zip(config.widths, config.steps):
        for repeat in range(config.num_repeats):
            for tau in config.taus:
                yield {"width": width, "steps": steps, "repeat": repeat, "tau": tau}


def declared(function=rows_of, **changes):
    """An experiment called "grid" with one claim."""

    def grid(config: Grid):
        return function(config)

    grid.__qualname__ = "grid"
    options = {
        "scales": {"smoke": CONFIG, "laptop": LAPTOP},
        "parts": [("widths", "steps")],
    }
    made = experiment("a grid", **(options | changes))(grid)

    @made.claim("H-F1", where="Figure 1", claim="Rows there are.", paper="some", rule="More than none.")
    def count(rows):
        yield Finding("rows", len(rows), above=0)

    return made


grid = declared()


def registry(*experiments, folder=Path("nothing is shipped")):
    """Of these experiments, and of the folder that is shipped."""
    return Registry(experiments, [c.id for one in experiments for c in one.claims], lambda: folder)
