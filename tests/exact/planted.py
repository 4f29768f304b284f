"""Bugs planted on purpose: the checks that pass on the package must fail on every one of them.

A bug is a name in the field's own words and a function that runs one of the shared checks on the broken
object. Where the bugs are planted, the same check also runs on a right object that is built in the same way:
a bug must be caught for what is wrong with it.
"""

import contextlib
from collections.abc import Callable, Iterator

import jax
import pytest

Bugs = dict[str, Callable[[], None]]


def caught(*groups: tuple[str, str, Bugs], patched: bool = True):
    """The test of all bugs, in groups of (kind, what the check must complain of, bugs).

    Where no bug replaces a function of the package, `patched` is False, and programs serve several of them.
    """

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("check", "complaint"),
        [
            pytest.param(check, complaint, id=f"{kind}: {bug}")
            for kind, complaint, bugs in groups
            for bug, check in bugs.items()
        ],
    )
    def test_bug_is_caught(check, complaint):
        with (
            anew() if patched else contextlib.nullcontext(),
            pytest.raises(AssertionError, match=f"(?s){complaint}"),
        ):
            check()

    return test_bug_is_caught


@contextlib.contextmanager
def anew() -> Iterator[None]:
    """Nothing is traced yet, of which a bug would be a part: methods of targets are programs of their own."""
    jax.clear_caches()
    try:
        yield
    finally:
        jax.clear_caches()


def passed(**checks: Callable[[], None]):
    """The positive control: checks of right objects that are made as the broken ones are."""

    @pytest.mark.slow
    @pytest.mark.parametrize("check", [pytest.param(check, id=name) for name, check in checks.items()])
    def test_right_one_of_the_same_make_passes(check):
        check()

    return test_right_one_of_the_same_make_passes
