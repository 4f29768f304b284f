"""What a run is asked for, seen to be right before anything is computed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, PyTree

from widebnn._check import at_least, brief, one_key, one_of
from widebnn.automatic import auto
from widebnn.collectors import Collector, check, potential, prediction, prepared
from widebnn.driver._chains import Chains
from widebnn.driver._devices import Devices
from widebnn.driver.checkpoints import Checkpoint, digest
from widebnn.driver.stopping import Until
from widebnn.samplers._base import Sampler
from widebnn.samplers._tuned import tuned
from widebnn.targets._base import Target

MAX_SAMPLES, NUM_POSITIONS = 10_000, 64
"""Where they are not given."""
MAX_POSITIONS_BYTES = 2**28
MAX_STEPS = 2**31 - 1  # what an int32 counts


class Plan:
    """The arguments of `widebnn.sample`, each given or chosen; what is wrong with one is said here."""

    def __init__(
        self,
        rng_key: Any,
        target: Any,
        sampler: Any,
        *,
        num_samples: int | None,
        thin: int,
        burn_in: int,
        num_chains: int,
        predict_at: Any,
        num_positions: int | None,
        collect: Mapping[str, Collector] | None,
        stream: Mapping[str, Collector] | None,
        initial: PyTree,
        until: Until | None,
        checkpoint: Checkpoint | None,
        mesh: Mesh | None,
        progress: bool,
    ):
        check_run(rng_key, target, sampler, checkpoint, collect=collect, stream=stream)
        if until is not None and not isinstance(until, Until):
            raise TypeError(f"until must be a widebnn.Until; got {brief(until)}")
        if sampler is None:
            if initial is not None:
                raise ValueError("initial must be None where sampler is: choose both by widebnn.auto(target)")
            target, sampler, reason = auto(target)
            if progress:
                print(reason)
        if num_samples is None:
            num_samples, until = MAX_SAMPLES, Until() if until is None else until
        self.rng_key, self.target, self.sampler, self.initial = rng_key, target, sampler, initial
        self.num_samples, self.thin = at_least(1, num_samples=num_samples), at_least(1, thin=thin)
        self.burn_in, self.num_chains = at_least(0, burn_in=burn_in), at_least(1, num_chains=num_chains)
        if num_positions is None:
            of_position = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(target.template))
            num_positions = min(NUM_POSITIONS, MAX_POSITIONS_BYTES // (num_chains * of_position) // 2 * 2)
        self.num_positions = at_least(0, num_positions=num_positions)
        if num_positions % 2:
            raise ValueError(f"num_positions must be even; got {num_positions}")
        if self.num_steps > MAX_STEPS:
            raise ValueError(
                f"burn_in + num_samples * thin must be at most {MAX_STEPS}; got {self.num_steps}"
            )
        if isinstance(sampler, tuned) and burn_in == 0:
            raise ValueError("burn_in must be at least 1 where the sampler is tuned; got 0")
        self.collect = {"potential": potential} if collect is None else dict(collect)
        self.stream = dict(stream or {})
        if predict_at is not None:
            self.stream["prediction"] = prediction(predict_at)
            until = until and replace(until, names=until.names or ["prediction"])
        self.until = until
        self.devices = Devices.of(target, mesh, num_chains)
        wanted = jax.tree.map(lambda leaf: (num_chains, *leaf.shape), target.template)
        if initial is not None and wanted != (got := jax.tree.map(jnp.shape, initial)):
            raise ValueError(f"initial must have leaves of shapes (num_chains, ...) = {wanted}; got {got}")
        for name in until.names or () if until is not None else ():
            one_of([*self.collect, *self.stream], **{"until.names": name})
        if until is not None and until.looks and not self.collect and not self.stream:
            raise ValueError("until must have something to look at: collect it, or stream it")

    @property
    def num_steps(self) -> int:
        """Of each chain, burn-in and all draws together."""
        return self.burn_in + self.num_samples * self.thin

    def num_draws(self, num_steps: int) -> int:
        """Of each chain after so many steps; below 0 during burn-in."""
        return (num_steps - self.burn_in) // self.thin

    def chains(self) -> Chains:
        """What the programs of the run are given."""
        chains = Chains(
            self.target,
            self.sampler.prepare(self.target),
            {name: prepared(function, self.target) for name, function in self.collect.items()},
            {name: prepared(function, self.target) for name, function in self.stream.items()},
            self.num_positions,
        )
        return self.devices.shard_data(chains)

    def check_values(self, collected: Mapping[str, Array]) -> None:
        """See that `until` can look at what is collected."""
        for name, value in collected.items():
            if self.until is not None and not jnp.isdtype(value.dtype, ("bool", "integral", "real floating")):
                raise TypeError(f"until looks at real numbers; collect[{name!r}] returns {value.dtype}")

    def configuration(self) -> dict[str, Any]:
        """What must be the same for a run to be resumed, besides its program and its data."""
        return {
            "rng_key": f"{jax.random.key_impl(self.rng_key)} {jax.random.key_data(self.rng_key)}",
            "num_chains": self.num_chains,
            "thin": self.thin,
            "burn_in": self.burn_in,
            "sampler": {
                jax.tree_util.keystr(path): float(leaf)
                for path, leaf in jax.tree_util.tree_leaves_with_path(self.sampler)
                if jnp.ndim(leaf) == 0
            },
            "initial": None if self.initial is None else digest(self.initial),
        }


def check_run(rng_key: Any, target: Any, sampler: Any, checkpoint: Any = None, **functions: Any) -> None:
    """See that what chains and particles are given is of the right type."""
    if not isinstance(target, Target):
        raise TypeError(
            "target must be one of widebnn.targets, such as from_potential(potential, template); "
            f"got {type(target).__name__}"
        )
    one_key(rng_key=rng_key)
    if sampler is not None and not isinstance(sampler, Sampler | tuned):
        raise TypeError(
            "sampler must be one of widebnn.samplers, such as pcn(0.1), or one of BlackJAX by "
            f"samplers.from_blackjax(make); got {brief(sampler)}"
        )
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        raise TypeError(f"checkpoint must be a widebnn.Checkpoint; got {brief(checkpoint)}")
    for name, given in functions.items():
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"{name} must be a dict from names to functions; got {brief(given)}")
        for key, function in (given or {}).items():
            check(f"{name}[{key!r}]", function)
