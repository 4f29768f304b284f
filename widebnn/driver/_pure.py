"""Chains as a pure function, for `jax.jit` and `jax.vmap`."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree, Shaped

from widebnn.collectors import Collector, potential, prepared
from widebnn.driver._chains import Chains
from widebnn.driver._devices import Devices
from widebnn.driver._plan import check_run
from widebnn.samplers._base import Sampler
from widebnn.samplers._tuned import tuned
from widebnn.targets._base import Target

Values = dict[str, Shaped[Array, "chain draw ..."]]


def run_chains(
    rng_key: Key[Array, ""],
    target: Target,
    sampler: Sampler | tuned,
    *,
    num_samples: int,
    thin: int = 1,
    burn_in: int = 300,
    num_chains: int = 4,
    initial: PyTree[Float[Array, "..."]] | None = None,
    collect: Mapping[str, Collector] | None = None,
) -> tuple[Values, Values]:
    """What chains collect, and statistics of their steps, as a pure function of keys, targets and samplers.

    These are the draws that `sample` makes with the same key and arguments, without a bar, checkpoints or a
    look at convergence. A grid of noise levels, data sets or step sizes is a `jax.vmap` over stacked leaves.

    Parameters
    ----------
    rng_key, target, sampler, num_samples, thin, burn_in, num_chains, initial, collect
        As in `sample`. Whole numbers are part of the program.

    Returns
    -------
    values, stats
        Dicts of arrays (chain, draw, ...), as `Draws.collected` and `Draws.stats`.

    Examples
    --------
    Acceptance over noise levels, by one program:

    >>> import jax
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from flax import nnx
    >>> import widebnn as wb
    >>> features = wb.models.FCN(1, 8, rngs=nnx.Rngs(0))
    >>> x, y = np.array([[0.0], [1.0]]), np.array([0.2, 0.9])
    >>> targets = [wb.targets.marginal(wb.BNN(features, 1, s), x, y) for s in (0.1, 0.3, 1.0)]
    >>> grid = jax.tree.map(lambda *leaves: jnp.stack(leaves), *targets)
    >>> def rate(target):
    ...     pcn = wb.samplers.pcn(0.5)
    ...     return wb.run_chains(jax.random.key(0), target, pcn, num_samples=200)[1]["acceptance_rate"].mean()
    >>> rates = jax.jit(jax.vmap(rate))(grid)
    >>> bool((jnp.diff(rates) > 0).all())
    True
    """
    check_run(rng_key, target, sampler, collect=collect)
    collect = {"potential": potential} if collect is None else dict(collect)
    functions = {name: prepared(function, target) for name, function in collect.items()}
    chains, devices = (
        Chains(target, sampler.prepare(target), functions, {}),
        Devices.of(target, None, num_chains),
    )
    keys, carry, draw, _ = chains.start(rng_key, initial, devices=devices)
    if burn_in:
        steps = np.int32(1), np.int32(burn_in), np.True_
        carry, _ = chains.chunk(keys, carry, draw, *steps, max_draws=1, devices=devices)
    steps = np.int32(num_samples), np.int32(thin), np.False_
    _, draws = chains.chunk(keys, carry, draw, *steps, max_draws=num_samples, devices=devices)
    values, stats = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), draws)
    return values, stats
