"""neural-tangents behind its door: nothing is left behind. Its kernels are checked in `test_kernels`."""

import importlib
import subprocess
import sys
from types import ModuleType

import jax
import pytest

from widebnn.nngp import neural_tangents

FRESH = """
import sys, jax, jax.core, jax.example_libraries, jax.interpreters.ad, widebnn as wb

def names():
    return {module.__name__: set(vars(module)) for module in (jax, jax.core, jax.interpreters.ad)}

before = names()
module = wb.nngp.neural_tangents()
assert wb.nngp.neural_tangents() is module
assert names() == before, [names()[k] ^ before[k] for k in before]
assert not {"jax.util", "neural_tangents.experimental", "tensorflow", "tf2jax"} & set(sys.modules)
assert module.stax.Dense and module.predict.gradient_descent_mse_ensemble
"""


@pytest.mark.slow
def test_import_leaves_nothing_behind_and_warns_of_nothing():
    subprocess.run([sys.executable, "-W", "error", "-c", FRESH], check=True)


@pytest.mark.parametrize("name", ["neural_tangents", "frozendict"])
def test_missing_package_is_named_with_its_cure(monkeypatch, name):
    for loaded in [m for m in sys.modules if m.split(".")[0] in ("neural_tangents", "frozendict")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="pip install --no-deps neural-tangents"):
        neural_tangents.__wrapped__()


def test_names_are_taken_away_where_the_import_fails(monkeypatch):
    """Those that were there before stay."""
    older = ModuleType("jax.util")
    monkeypatch.setitem(sys.modules, "jax.util", older)
    before = set(vars(jax.core))

    def import_module(_):
        raise OSError("unreadable")

    monkeypatch.setattr(importlib, "import_module", import_module)
    with pytest.raises(OSError, match="unreadable"):
        neural_tangents.__wrapped__()
    assert set(vars(jax.core)) == before and sys.modules["jax.util"] is older
    assert "neural_tangents.experimental" not in sys.modules
