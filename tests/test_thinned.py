"""Positions that are kept in bounded memory: those of draws at equal distances, whatever the length."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from widebnn.driver import _thinning

PUT = jax.jit(_thinning.put)


@pytest.mark.parametrize(
    ("num_draws", "wanted"),
    [(0, []), (3, [0, 1, 2]), (8, range(8)), (9, range(0, 9, 2)), (40, range(0, 40, 8))],
)
def test_draws_are_evenly_spaced(num_draws, wanted):
    thinned = _thinning.start({"u": jnp.zeros(2)}, 8)
    for i in range(num_draws):
        thinned = PUT(thinned, {"u": jnp.array([i, -i], jnp.float64)})
    kept = _thinning.on_host(thinned)["u"]
    assert np.array_equal(kept, [list(wanted), [-i for i in wanted]])
