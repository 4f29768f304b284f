"""Bad input to every public function: a clear error that names the argument, what was given, what is wanted.

The tables lie in `bad_inputs`, one for each module. A public function without a row fails
`test_every_public_function_has_a_row`.
"""

import dataclasses
import inspect
import re
import typing

import jax.numpy as jnp
import jaxtyping
import matplotlib.pyplot as plt
import pytest

import widebnn as wb

from .bad_inputs import ROWS
from .bad_inputs.rows import MODULES, bnn, fcn, named
from .bad_inputs.sweep import SWEPT


@pytest.mark.parametrize("row", ROWS, ids=[f"{i}-{row.of}" for i, row in enumerate(ROWS)])
def test_error_is_clear(row, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users meet our errors, and alone
    figures = plt.get_fignums()
    with pytest.raises(row.error) as caught:
        row.call()
    pattern = ".*".join(map(re.escape, row.words))
    assert re.search(pattern, str(caught.value), re.DOTALL), f"{caught.value!r} is no …{'…'.join(row.words)}…"
    assert not list(tmp_path.iterdir()), "something was written before the error"
    assert plt.get_fignums() == figures, "something was drawn before the error"


def test_each_argument_is_named_where_it_is_wrong(monkeypatch, tmp_path):
    """A thing of another kind, NaN, ∞, out of range, of another shape: over the public signatures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    unclear = {}
    for of, name, call, value in SWEPT:
        try:
            call()
        except Exception as error:
            if not isinstance(error, TypeError | ValueError) or not re.search(rf"\b{name}\b", str(error)):
                unclear[of, name, repr(value)] = repr(error)
        else:
            unclear[of, name, repr(value)] = "taken"
    assert not unclear
    assert len(SWEPT) > 600


def test_activation_without_a_closed_form_is_refused(monkeypatch):
    monkeypatch.setitem(wb.models.ACTIVATIONS, "tanh", jnp.tanh)
    network = bnn(features=fcn(activation="tanh"))
    for make in (wb.nngp.nngp_kernel, wb.nngp.ntk_kernel):
        with pytest.raises(ValueError, match="activation must be one of 'erf', 'gelu', 'relu'; got 'tanh'"):
            make(network)


def test_unknown_scale_is_refused(monkeypatch):
    monkeypatch.setenv("WIDEBNN_SCALE", "huge")
    for call in (wb.current_scale, lambda: wb.at_scale(smoke=1)):
        with pytest.raises(ValueError, match="WIDEBNN_SCALE must be one of smoke, .*; got 'huge'"):
            call()


def only_holds_values(thing):
    """Records, warnings, protocols, abstract classes, aliases and functions without arguments."""
    if typing.get_origin(thing) is not None:
        return True
    if isinstance(thing, type):
        is_record = issubclass(thing, tuple | Warning) or dataclasses.is_dataclass(thing)
        is_open = inspect.isabstract(thing) or getattr(thing, "_is_protocol", False)
        return is_open or (is_record and not hasattr(thing, "__post_init__"))
    return not inspect.signature(thing).parameters


def test_every_public_function_has_a_row():
    covered = [named(of) for of in {row.of for row in ROWS} | {of for of, *_ in SWEPT}]
    public = {
        f"{where}.{name}": getattr(module, name)
        for where, module in MODULES.items()
        if where != "plots"  # of which Matplotlib has errors of its own
        for name in module.__all__
    }
    missing = [
        name
        for name, thing in public.items()
        if callable(thing) and not only_holds_values(thing) and not any(thing is other for other in covered)
    ]
    assert not missing
