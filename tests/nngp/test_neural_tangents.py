"""neural-tangents behind its door: nothing is left behind; its kernels are those of finite networks."""

import importlib
import math
import subprocess
import sys
from types import ModuleType

import jax
import numpy as np
import pytest
from flax import nnx

from widebnn.models import BNN
from widebnn.nngp import neural_tangents, stax_kernel

from ..exact.kernels import assert_mean, empirical_kernel, empirical_tangent, over_prior

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


class Conv(nnx.Module):
    """A 3 × 3 convolution in NTK parametrisation, GELU, then flattened or averaged over the image."""

    def __init__(self, channels, pool, rngs):
        self.kernel = nnx.Param(jax.random.normal(rngs.params(), (3, 3, 2, channels)))
        self.bias = nnx.Param(jax.random.normal(rngs.params(), (channels,)))
        self.pool = pool

    def __call__(self, x):
        f = jax.lax.conv_general_dilated(
            x, self.kernel[...], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        f = 1.3 / math.sqrt(3 * 3 * 2) * f + 0.5 * self.bias[...][None, None, None, :]
        h = jax.nn.gelu(f, approximate=False)
        return h.mean(axis=(1, 2)) if self.pool else h.reshape(len(h), -1)


def stax_conv(pool):
    stax = neural_tangents().stax
    return stax.serial(
        stax.Conv(1, (3, 3), padding="SAME", W_std=1.3, b_std=0.5, parameterization="ntk"),
        stax.Gelu(),
        stax.GlobalAvgPool() if pool else stax.Flatten(),
        stax.Dense(1, W_std=0.8, b_std=0.3, parameterization="ntk"),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "pool, kind, empirical", [(False, "nngp", empirical_kernel), (True, "ntk", empirical_tangent)]
)
def test_kernel_is_the_mean_over_finite_networks(pool, kind, empirical):
    """With one nonlinearity the mean is exact at every width, as for one dense hidden layer."""
    bnn = BNN(Conv(4, pool, nnx.Rngs(0)), 1, 0.1, weight_std=0.8, bias_std=0.3)
    x = np.random.default_rng(0).normal(size=(3, 4, 3, 2))
    kernel = stax_kernel(stax_conv(pool)[2], kind)
    assert_mean(over_prior(empirical, bnn, x), kernel(x))
    assert np.allclose(kernel(x[:1], x), kernel(x)[:1], rtol=1e-12)
