"""Ctrl-C as a wish that is heard where the work can stop."""

import contextlib
import signal
import threading
from collections.abc import Iterator


class Interrupts:
    """Within it, the first Ctrl-C is noted as `heard`, and the second one raises KeyboardInterrupt.

    It stands in for Python's own handler alone: in other threads than the main one, and where the program has
    a handler of its own, Ctrl-C does what it did.
    """

    heard = False

    def __enter__(self) -> "Interrupts":
        is_main = threading.current_thread() is threading.main_thread()
        self._stands_in = is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._stands_in:
            signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        if self._stands_in:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _hear(self, number, frame):
        if self.heard:
            raise KeyboardInterrupt
        self.heard = True


@contextlib.contextmanager
def raised_at_once() -> Iterator[None]:
    """Within it, the first Ctrl-C raises: draws that are cut short must not be taken for all of them."""
    with Interrupts() as interrupts:
        interrupts.heard = True
        yield
