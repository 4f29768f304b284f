"""The loop of every long computation: steps, a bar, checkpoints, and Ctrl-C heard between two steps."""

import os
from collections.abc import Callable

from tqdm.auto import tqdm

from widebnn.driver._interrupts import Interrupts
from widebnn.driver.checkpoints import Snapshot, Store


def loop[Reason: str](
    advance: Callable[[Snapshot], tuple[Snapshot, int, str]],
    ended: Callable[[Snapshot, int, bool], Reason | None],
    snapshot: Snapshot,
    done: int,
    *,
    total: int | None,
    unit: str,
    store: Store | None,
    progress: bool,
) -> tuple[Snapshot, int, Reason]:
    """Go on from a snapshot after `done` steps until the computation has ended.

    `advance` returns the next snapshot, how many steps led to it, and what the bar says. `ended` is given the
    snapshot, the number of steps and whether Ctrl-C was pressed.
    """
    is_silent = not progress or os.environ.get("TQDM_DISABLE") == "1"  # which tqdm forgets in notebooks
    bar = tqdm(total=total, initial=done, unit=unit, disable=is_silent)
    with Interrupts() as interrupts, bar:
        while True:
            snapshot, num_steps, note = advance(snapshot)
            done += num_steps
            bar.set_postfix_str(note, refresh=False)
            bar.update(num_steps)
            stopped = ended(snapshot, done, interrupts.heard)
            if store is not None:
                store.save_if_due(done, snapshot, is_last=stopped is not None)
            if stopped is not None:
                return snapshot, done, stopped
