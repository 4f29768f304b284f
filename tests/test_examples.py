"""Examples in docstrings print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import widebnn as wb
from widebnn.data.download import local_folder

pytestmark = pytest.mark.usefixtures("float32", "mixed_dtypes")  # as readers compute

MODULES = [importlib.import_module(one.name) for one in pkgutil.walk_packages(wb.__path__, "widebnn.")]
FOUND = [test for module in MODULES for test in doctest.DocTestFinder().find(module, globs={})]
EXAMPLES = [test for test in FOUND if test.examples]
LOADERS = {"boston", "cifar10", "fashion_mnist", "mnist", "svhn"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example_prints_what_it_says_with_no_names_but_its_own(example):
    loader = example.name.rpartition(".")[2]
    if loader in LOADERS and not local_folder(loader):
        pytest.skip(f"WIDEBNN_DATA has no files of {loader}, and the example would download them")
    assert not any(doctest.SKIP in line.options for line in example.examples)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example).failed == 0
