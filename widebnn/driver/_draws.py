"""The result of a run: what was collected and streamed, positions, and predictions from them."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree, Real

from widebnn import _archive
from widebnn._arrays import NewInputs, Tabular
from widebnn._check import one_key
from widebnn._compile import refuse_fork
from widebnn.automatic import auto
from widebnn.collectors import Collector, observation, prepared
from widebnn.diagnostics import convergence
from widebnn.driver._end import Stopped
from widebnn.driver.stopping import MIN_DRAWS
from widebnn.driver.streaming import Batches, Streamed, Sum, Summary
from widebnn.targets._base import Target

if TYPE_CHECKING:
    from pandas import DataFrame
    from xarray import DataTree

TOLD = ("step_size", "thin", "burn_in", "seconds", "stopped", "reason")
SAVED = ("collected", "stats", "streamed", "position", "positions")
"""What of a run is saved as numbers and words, and what as arrays."""
SUMMARY: Any = Summary(0, 0, Sum(0, 0), Sum(0, 0), Batches(0, 0, 0, Sum(0, 0)))  # pyright: ignore
"""The structure of one."""
OF_POTENTIALS = 1e-3
"""Difference up to which two are the same: other processors round differently."""
GROUPS = ("log_likelihood", "posterior_predictive")
"""Names under which what is collected is a group of its own in ArviZ."""


class Prediction(NamedTuple):
    """Mean and standard deviation over draws, each $(m, d_out)$."""

    mean: Float[np.ndarray, "m d_out"]
    std: Float[np.ndarray, "m d_out"]


@dataclass(frozen=True, eq=False, repr=False)
class Draws:
    """Result of a run.

    Attributes
    ----------
    collected
        A dict of arrays (chain, draw, ...) of the functions that were collected.
    stats
        A dict of arrays (chain, draw) of what the sampler reports, such as "acceptance_rate" and
        "is_accepted", each the mean over the steps between draws. Where nothing was collected there is one
        column, the mean over all steps after burn-in.
    streamed
        A dict of summaries of the functions that were streamed.
    position
        Last position of every chain, leaves (chain, ...), from which another run can continue.
    step_size
        Step size that tuning found; None where nothing was tuned.
    thin
        Steps from one draw to the next.
    burn_in
        Number of first steps, of which nothing was kept.
    seconds
        Wall time of burn-in and sampling, without compilation; of all calls together where a run was resumed
        from a checkpoint.
    stopped
        What ended the run: "num_samples", all draws were made; "converged", the criteria of `until` were
        met; "seconds", the time limit of `until`; "interrupted", Ctrl-C.
    reason
        The same in a sentence, with the number of draws and, given `until`, the entries that mix worst.
    positions
        Positions evenly spaced over the run, leaves (chain, kept, ...); None where none were asked for.
    target
        The target that was sampled; None in a run that was loaded without it.
    """

    collected: dict[str, np.ndarray]
    stats: dict[str, np.ndarray]
    streamed: dict[str, Streamed]
    position: PyTree
    step_size: float | None
    thin: int
    burn_in: int
    seconds: float
    stopped: Stopped = "num_samples"
    reason: str = ""
    positions: PyTree | None = None
    target: Target | None = None

    _told: ClassVar[tuple[str, ...]] = TOLD

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.collected:
            raise KeyError(f"{name!r} was not collected; there are {sorted(self.collected)}")
        return self.collected[name]

    def __repr__(self) -> str:
        shapes = [f"{name} {x.dtype}{list(x.shape)}" for name, x in self.collected.items()]
        shapes += [f"{name} streamed {list(x.summary.origin.shape)}" for name, x in self.streamed.items()]
        return f"Draws({'; '.join([self.reason, *shapes])})"

    @property
    def acceptance_rate(self) -> float:
        """Mean acceptance rate over all chains and steps after burn-in."""
        return float(self.stats["acceptance_rate"].mean())

    def summary(self) -> "DataFrame":
        """A table of what was collected and streamed: entries, smallest ESS and largest $R̂$ of each.

        Its corner holds the number of chains, acceptance and seconds. Of what was collected they are those of
        `widebnn.diagnostics.convergence`, of what was streamed those of `widebnn.streaming.Streamed`; NaN
        where they cannot be told.
        """
        import pandas

        rows = {}
        for name, values in self.collected.items():
            known = values.shape[1] >= MIN_DRAWS and values.size > 0 and np.isfinite(values).all()
            found = convergence(values) if known else None
            rows[name] = values[0, 0].size, found and found.ess, found and found.rhat
        for name, streamed in self.streamed.items():
            known = streamed.count > 1
            found = (streamed.effective_sample_size, streamed.rhat) if known else (None, None)
            rows[name] = streamed.mean.size, *found
        told = [
            [size, *(np.nan if of is None else worst(of) for worst, of in zip((np.nanmin, np.nanmax), found))]
            for size, *found in rows.values()
        ]
        num_chains = len(self.stats["acceptance_rate"])
        corner = f"{num_chains} chains, acceptance {self.acceptance_rate:.2f}, {self.seconds:.1f} s"
        columns = pandas.Index(["entries", "ESS", "R̂"], name=corner)
        return pandas.DataFrame(told, index=list(rows), columns=columns).round({"ESS": 0, "R̂": 3})

    def predict(self, x: NewInputs | Tabular, rng_key: Key[Array, ""] | None = None) -> Prediction:
        """Mean and standard deviation of observations $y*$ at new inputs, from the positions that were kept.

        Under Gaussian noise the readout is integrated out at each position. The deviation contains the noise,
        whatever the likelihood is: it is infinite under Student's noise of at most two degrees of freedom.
        Of a classifier they are mean and standard deviation of the probabilities over the posterior.

        Parameters
        ----------
        x
            New inputs $(m, ...)$.
        rng_key
            Key for the weights that new inputs alone look at, in `widebnn.targets.rotated` and
            `widebnn.targets.whitened`: each position draws its own.

        Returns
        -------
        Prediction
            Mean and standard deviation, each $(m, d_out)$.

        Raises
        ------
        ValueError
            If no positions were kept, or the run was loaded without its target.
        TypeError
            If the target has no such predictions.
        """
        if self.positions is None or self.target is None:
            raise ValueError(
                "predict needs positions and their target: give sample num_positions=64, and load a target"
            )
        refuse_fork()
        key = jax.random.key(0) if rng_key is None else one_key(rng_key=rng_key)
        positions = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), self.positions)
        asked = prepared(observation(x), self.target)
        mean, variance = jax.device_get(_predicted(self.target, positions, key, asked))
        return Prediction(mean.mean(axis=0), np.sqrt(mean.var(axis=0) + variance.mean(axis=0)))

    def to_datatree(self, observed: Real[Array | np.ndarray, "n ..."] | None = None) -> "DataTree":
        """An ArviZ `DataTree` with the groups `posterior` and `sample_stats`, and up to three others.

        What was collected as "log_likelihood" or "posterior_predictive" becomes the variable `y` of the group
        of that name, from which `arviz.loo` and ArviZ's posterior-predictive checks work::

            collect={
                "potential": wb.potential,
                "log_likelihood": wb.log_likelihood,
                "posterior_predictive": wb.predictive_draw(x),
            }

        Parameters
        ----------
        observed
            $y$, which becomes the variable `y` of the group `observed_data`; there is no such group unless it
            is given.

        Raises
        ------
        ValueError
            If nothing was collected, or `observed` has another shape than the predictive draws.
        """
        import arviz

        if not self.collected:
            raise ValueError(
                "to_datatree needs draws; with collect={} there are summaries alone, in `streamed`"
            )

        stats = dict(self.stats)
        if "diverging" in stats:
            stats["diverging"] = stats["diverging"] > 0
        posterior = dict(self.collected)
        groups = {name: {"y": posterior.pop(name)} for name in GROUPS if name in posterior}
        if observed is not None:
            groups["observed_data"] = {"y": (y := np.asarray(observed))}
            predicted = self.collected.get("posterior_predictive")
            if predicted is not None and y.shape != (wanted := predicted.shape[2:]):
                raise ValueError(f"observed must have the shape {wanted} of predictive draws; got {y.shape}")
        tree = arviz.from_dict({"posterior": posterior, "sample_stats": stats} | groups)
        tree["posterior"].attrs |= {name: getattr(self, name) for name in self._told[1:]}
        return tree

    def save(self, path: str | os.PathLike, overwrite: bool = False) -> None:
        """Save the run in a file, from which `load` restores it bit for bit.

        The file is one of `numpy.load`, without pickles: ``collected f`` is the array that was collected as
        "f", and ``record`` holds the numbers and words in JSON. It is written under a temporary name and
        renamed when it is complete.

        Parameters
        ----------
        path
            A new file.
        overwrite
            Whether a file that is there may be replaced.

        Raises
        ------
        FileExistsError
            If there is a file and `overwrite` is False.
        OSError
            If it cannot be written; what was there before is left as it was.
        """
        path = Path(path)
        if path.exists() and not overwrite:
            raise FileExistsError(f"path must be a new file; {path} exists: overwrite=True replaces it")
        summaries = {name: streamed.summary for name, streamed in self.streamed.items()}
        trees = map(_by_name, (summaries, self.position, self.positions))
        groups = dict(zip(SAVED, (self.collected, self.stats, *trees)))
        record = {name: _plain(getattr(self, name)) for name in self._told} | {
            "names": {group: list(members) for group, members in groups.items()},
            "streams": list(summaries),
            "potential": self.target and _potential(self.target, self.position),
        }
        arrays = {
            f"{group} {name}": array for group, members in groups.items() for name, array in members.items()
        }
        _archive.write(path, "run", record, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike, target: Target | None = None) -> "Draws":
        """Load a run that `save` wrote.

        Parameters
        ----------
        path
            File that `save` wrote.
        target
            The target that was sampled, made anew from the same data and network; where
            `widebnn.automatic.auto` chose coordinates, the posterior as it was given, or in those
            coordinates. It says how a position is built from its arrays, so that chains can continue from
            it, and its potential at the last position is compared with that of the run. Without it,
            `position` is a dict from the path of each leaf to its array.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file holds something else, was written by a newer version or is damaged, or `target` is
            not the target that was sampled.
        """
        record, arrays = _archive.read(Path(path), "run")
        collected, stats, summaries, position, positions = (
            {name: arrays[f"{group} {name}"] for name in record["names"][group]} for group in SAVED
        )
        positions = positions or None
        if target is not None:
            target = _as_sampled(target, position, record["potential"])
            structure = jax.tree.structure(target.template)
            position = structure.unflatten(position.values())
            positions = positions and structure.unflatten(positions.values())
        like = jax.tree.structure(dict.fromkeys(record["streams"], SUMMARY))
        built = like.unflatten(summaries.values())
        streamed = {name: Streamed(built[name]) for name in record["streams"]}
        told = {name: record[name] for name in cls._told}
        return cls(collected, stats, streamed, position, **told, positions=positions, target=target)


@jax.jit
def _predicted(target: Target, positions: PyTree, rng_key: Key[Array, ""], asked: Collector) -> Any:
    """Means (position, m, d_out) and variances, one position after another."""

    def at(position_and_key):
        position, key = position_and_key
        found = asked(target, position, key)
        mean, variance = found if isinstance(found, tuple) else (found, jnp.zeros(len(found), found.dtype))
        return mean, variance.reshape(len(mean), -1)  # one for all outputs, or one for each

    keys = jax.random.split(rng_key, len(jax.tree.leaves(positions)[0]))
    return jax.lax.map(at, (positions, keys))


def _as_sampled(target: Target, position: dict[str, np.ndarray], potential: float | None) -> Target:
    """The target as it is, or in the coordinates that `auto` chooses, where the run is in these."""
    shapes, found = {name: leaf.shape[1:] for name, leaf in position.items()}, []
    for make in (lambda: target, lambda: auto(target).target):
        one = make()
        found.append({name: leaf.shape for name, leaf in _by_name(one.template).items()})
        if found[-1] != shapes:
            continue
        if potential is None:
            return one
        found.append(_potential(one, jax.tree.structure(one.template).unflatten(position.values())))
        if np.isclose(found[-1], potential, OF_POTENTIALS, OF_POTENTIALS, equal_nan=True):
            return one
    raise ValueError(
        f"target must be the one that was sampled, with positions of shapes {shapes} and the potential "
        f"{potential} at the last one of the first chain; got {found}"
    )


@jax.jit
def _at(target: Target, position: PyTree) -> Float[Array, ""]:
    return target.potential(position)


def _potential(target: Target, position: PyTree) -> float:
    """At the position of the first chain."""
    return float(_at(target, jax.tree.map(lambda leaf: np.asarray(leaf[0]), position)))


def _plain(value: Any) -> Any:
    """As JSON has it."""
    return value.tolist() if isinstance(value, np.ndarray) else value


def _by_name(tree: PyTree) -> dict[str, Any]:
    """Leaves by their paths, in their order."""
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree.leaves_with_path(tree)}
