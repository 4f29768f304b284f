"""The loop of every long computation: steps, a bar, and Ctrl-C heard between two steps."""

import os
from collections.abc import Callable

from tqdm.auto import tqdm

from widebnn.driver._interrupts import Interrupts


def loop[State, Reason: str](
    advance: Callable[[State], tuple[State, int, str]],
    ended: Callable[[State, int, bool], Reason | None],
    state: State,
    done: int,
    *,
    total: int | None,
    unit: str,
    progress: bool,
) -> tuple[State, int, Reason]:
    """Go on from a state after `done` steps until the computation has ended.

    `advance` returns the next state, how many steps led to it, and what the bar says. `ended` is given the
    state, the number of steps and whether Ctrl-C was pressed.
    """
    is_silent = not progress or os.environ.get("TQDM_DISABLE") == "1"  # which tqdm forgets in notebooks
    bar = tqdm(total=total, initial=done, unit=unit, disable=is_silent)
    with Interrupts() as interrupts, bar:
        while True:
            state, num_steps, note = advance(state)
            done += num_steps
            bar.set_postfix_str(note, refresh=False)
            bar.update(num_steps)
            stopped = ended(state, done, interrupts.heard)
            if stopped is not None:
                return state, done, stopped
