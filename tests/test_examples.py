"""Examples in docstrings print what they say; those that download data are only shown."""

import doctest
import importlib
import pkgutil

import pytest

import widebnn as wb

MODULES = [importlib.import_module(one.name) for one in pkgutil.walk_packages(wb.__path__, "widebnn.")]
EXAMPLES = [test for module in MODULES for test in doctest.DocTestFinder().find(module) if test.examples]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example_prints_what_it_says(example):
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example).failed == 0
