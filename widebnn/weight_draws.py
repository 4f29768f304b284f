"""Draws of all weights: saved in a folder, and loaded later to predict from them.

A run keeps what it collects and nothing else. Where the new inputs are not known yet, collect the weights::

    draws = wb.sample(
        rng_key, target, sampler, num_samples=100, thin=50,
        collect={"theta": wb.collectors.weights},
    )
    weights = wb.WeightDraws(bnn, draws["theta"], input_shape=data.x_train.shape[1:])
    weights.save("runs/cifar")

    # another day, without this script or the data
    weights = wb.WeightDraws.load("runs/cifar")
    mean, std = weights.mean_and_std(x)

Every draw takes the memory of the whole network: a network of a million weights in float32 takes 4 MB per
draw and chain. Where the new inputs are known beforehand, collect predictions instead.

The folder holds

- ``posterior.json``: format, network, names and shapes of the weights, and a SHA-256 of every file;
- ``weights.npy``: the draws, (chain, draw, weight), all weights of a draw in one row;
- ``scale.<name>.npy``: (chain, draw), for each scale of the network that was drawn too;
- ``check_inputs.npy`` and ``check_outputs.npy``: two inputs, and the outputs of the first draw there, by
  which `WeightDraws.load` recognises the network.
"""

import functools
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PyTree

from widebnn._arrays import NewInputs, Tabular, floating
from widebnn._check import Number, at_least
from widebnn._folder import Folder
from widebnn._pytree import Static
from widebnn.driver import Prediction
from widebnn.models._architecture import build, described, numbers
from widebnn.models.bnn import BNN
from widebnn.models.embedding import FeaturesError

__all__ = ["WeightDraws"]

FOLDER = Folder("posterior", version=1)  # as folders that were saved before say

DRAWS_AT_ONCE = 8
"""Draws that go through the network side by side."""
MAX_DRAWS_BYTES = 2**28
"""Weights that lie on the device at a time."""

Weights = Float[np.ndarray, "chain draw weight"]
Scales = Mapping[str, Float[np.ndarray, "chain draw"]]
Network = BNN | Callable[..., BNN]


@dataclass(frozen=True, eq=False, repr=False)
class WeightDraws:
    """A network and draws of its weights: all that a prediction needs.

    Chains continue from their last positions, and the new draws are appended::

        options = {"initial": draws.position, "collect": ...}
        more = wb.sample(rng_key, target, sampler, num_samples=100, **options)
        weights = weights.extended(more["theta"])

    Parameters
    ----------
    network
        The network that the target was built on. Where scales were drawn too, a function from these, passed
        by keyword, to the network: ``lambda noise_std: wb.BNN(features, 1, noise_std)``.
    weights
        Draws of the weights, (chain, draw, weight), collected by `widebnn.collectors.weights`. They stay on
        the host, and may be memory-mapped.
    input_shape
        Shape of one input, such as `x_train.shape[1:]`.
    scales
        By name, a scale of the network for each draw, (chain, draw): the arguments of `network`. With a
        `widebnn.models.BNN` for `network`, its `noise_std`, `weight_std` or `bias_std`.

    Raises
    ------
    TypeError, ValueError
        If the weights are not those of the network at such inputs, not finite, or scales do not go with them.
    """

    network: Network
    weights: Weights
    input_shape: tuple[int, ...]
    scales: Scales = field(default_factory=dict)

    def __post_init__(self):
        checked = {
            "weights": _draws("weights", self.weights, ("chain", "draw", "weight")),
            "scales": {
                name: _draws(f"scales[{name!r}]", x, ("chain", "draw")) for name, x in self.scales.items()
            },
            "input_shape": _input_shape(self.input_shape),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)  # frozen from here on
        for name, x in self.scales.items():
            if x.shape != (wanted := self.weights.shape[:2]):
                raise ValueError(f"scales[{name!r}] must have shape (chain, draw) = {wanted}; got {x.shape}")
        sizes = [math.prod(leaf.shape) for leaf in jax.tree.leaves(self.template)]
        if (got := self.weights.shape[2]) != sum(sizes):
            raise ValueError(
                f"weights must have shape (chain, draw, {sum(sizes)}), as the network has at inputs of shape "
                f"{self.input_shape}; got {self.weights.shape}, {got} per draw. Draws of a rotated target go "
                "with the network that was there before the rotation"
            )

    @property
    def num_chains(self) -> int:
        """Number of chains."""
        return self.weights.shape[0]

    @property
    def num_draws(self) -> int:
        """Draws of each chain."""
        return self.weights.shape[1]

    @functools.cached_property
    def template(self) -> PyTree[jax.ShapeDtypeStruct]:
        """Shapes and dtypes of one draw as `widebnn.models.Parameters`."""
        return _template(self._first_network, self.input_shape, self.weights.dtype)

    @property
    def parameters(self) -> PyTree[Float[np.ndarray, "chain draw ..."]]:
        """All draws as `widebnn.models.Parameters`, whose leaves are arrays (chain, draw, ...)."""
        return _unravelled(self.weights, self.template)

    def outputs(
        self, x: NewInputs | Tabular, batch_size: int = 256
    ) -> Float[np.ndarray, "chain draw m d_out"]:
        """$f_θ(x)$ of every draw, without noise; logits where the network classifies.

        Parameters
        ----------
        x
            New inputs $(m, ...)$.
        batch_size
            Inputs that go through the network at a time. Besides the result, memory holds the activations of
            8 draws at these, and at most 256 MiB of draws, but at least one.

        Raises
        ------
        TypeError, ValueError
            If `x` is empty, not finite or does not fit the network, or `batch_size` is not an integer of at
            least 1.
        """
        x = self._new_inputs(x)
        d_out = self.template.readout.shape[1]
        f = np.empty((self.num_chains * self.num_draws, len(x), d_out), self.template.readout.dtype)
        for draws, rows, values in self._blocks(x, batch_size):
            f[draws, rows] = values
        return f.reshape(self.num_chains, self.num_draws, len(x), d_out)

    def mean_and_std(
        self, x: NewInputs | Tabular, batch_size: int = 256, function: Callable[[Array], Array] = lambda f: f
    ) -> Prediction:
        """Mean and standard deviation of $f_θ(x)$ over all draws, whose outputs are not kept.

        The standard deviation of an observation is $√(std² + σ²)$, with the mean of $σ²$ where $σ$ was drawn
        too.

        Parameters
        ----------
        x, batch_size
            As in `outputs`; memory does not grow with the number of draws.
        function
            Function from outputs to an array of the same shape $(..., m, d_out)$, whose moments are returned,
            such as `jax.nn.softmax` for the probabilities of classes. It must treat each input alone.

        Raises
        ------
        TypeError, ValueError
            As `outputs`.
        """
        x = self._new_inputs(x)
        shape = len(x), self.template.readout.shape[1]
        mean, squares, seen = np.zeros(shape), np.zeros(shape), np.zeros((len(x), 1))
        for draws, rows, values in self._blocks(x, batch_size, function):
            f = values.astype(np.float64)
            before, new = seen[rows], draws.stop - draws.start
            # sums of squares about two means, joined (Chan, Golub & LeVeque 1983)
            step = f.mean(axis=0) - mean[rows]
            squares[rows] += new * f.var(axis=0) + step**2 * before * new / (before + new)
            mean[rows] += step * new / (before + new)
            seen[rows] += new
        return Prediction(mean, np.sqrt(squares / seen))

    def predictive_draws(
        self, rng_key: Key[Array, ""], x: NewInputs | Tabular, batch_size: int = 256
    ) -> Float[np.ndarray, "chain draw m d_out"]:
        """$y* = f_θ(x) + σ ε$ of every draw, with the $σ$ that goes with it.

        Parameters
        ----------
        rng_key
            Key of the noise.
        x, batch_size
            As in `outputs`.

        Raises
        ------
        TypeError, ValueError
            As `outputs`.
        """
        f = self.outputs(x, batch_size)
        noise_std = self._per_draw(lambda bnn: {"noise_std": jnp.asarray(bnn.noise_std, f.dtype)})
        noise = np.asarray(jax.random.normal(rng_key, f.shape, f.dtype))
        return f + noise_std["noise_std"][:, :, None, None] * noise

    def extended(self, weights: Weights, scales: Scales | None = None) -> "WeightDraws":
        """These draws with further draws of every chain appended.

        Parameters
        ----------
        weights, scales
            As in the constructor, of the same chains.

        Raises
        ------
        TypeError, ValueError
            As the constructor, or if the number of chains or the names of the scales differ.
        """
        more = WeightDraws(self.network, weights, self.input_shape, {} if scales is None else scales)
        if (more.num_chains, more.scales.keys()) != (self.num_chains, self.scales.keys()):
            raise ValueError(
                f"weights must be of {self.num_chains} chains with the scales {sorted(self.scales)}; got "
                f"{more.num_chains} chains with the scales {sorted(more.scales)}"
            )
        joined = {name: np.concatenate([x, more.scales[name]], axis=1) for name, x in self.scales.items()}
        both = np.concatenate([self.weights, more.weights], axis=1)
        return WeightDraws(self.network, both, self.input_shape, joined)

    def save(self, folder: str | os.PathLike, overwrite: bool = False) -> None:
        """Save the draws in a folder, from which `load` restores it.

        The folder is written under a temporary name and renamed when it is complete.

        Parameters
        ----------
        folder
            A new or empty folder.
        overwrite
            Whether draws that were saved there may be replaced. Anything else never is.

        Raises
        ------
        FileExistsError
            If the folder holds anything else, or draws and `overwrite` is False.
        OSError
            If it cannot be written; what was there before is left as it was.
        """
        draws, network, outputs = self, described(self._first_network), self._outputs_to_check()
        if network is not None:
            built = functools.partial(build, network)
            named = WeightDraws(built, self.weights, self.input_shape, self._per_draw(_drawn_numbers))
            if _is_same(named._outputs_to_check(), outputs):
                draws = named
            else:  # the module was changed after it was built, and is the user's own
                network = None
        record = {
            "network": network,
            "noise_std": float(self._first_network.noise_std),
            "input_shape": list(self.input_shape),
            "weights": _layout(self.template),
            "scales": sorted(draws.scales),
        }
        arrays = {"weights": self.weights, "check_inputs": self._inputs_to_check(), "check_outputs": outputs}
        arrays |= {f"scale.{name}": x for name, x in draws.scales.items()}
        FOLDER.write(Path(folder), record, arrays, overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike, network: Network | None = None) -> "WeightDraws":
        """Load what `save` wrote; the weights are memory-mapped and read when they are used.

        Parameters
        ----------
        folder
            Folder that `save` wrote.
        network
            The network, or the function from scales to it, where the layers below the readout are not of
            `widebnn.models`. Networks of `widebnn.models` are built from what the folder says.

        Raises
        ------
        FileNotFoundError
            If the folder or one of its files is missing.
        TypeError
            If `network` is missing, or given where the folder describes it.
        ValueError
            If the folder holds something else, was written by a newer version or is damaged, or `network` is
            not the network that was saved.
        """
        path = Path(folder)
        record, arrays = FOLDER.read(path)
        scales = {name: arrays[f"scale.{name}"] for name in record["scales"]}
        description, input_shape = record["network"], tuple(record["input_shape"])
        if description is not None:
            if network is not None:
                kind = description.get("features")
                raise TypeError(
                    f"network must be left out: {path} describes it, with {kind} below the readout"
                )
            network = functools.partial(build, description)
        if network is None:
            raise TypeError(
                f"network is required: {path} holds draws of a network that is not of widebnn.models"
            )
        first = {name: float(x[0, 0]) for name, x in scales.items()}
        try:
            bnn = _at(network, first)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"network of {path} cannot be built: {error}") from error
        _check_layout(path, record["weights"], _template(bnn, input_shape, arrays["weights"].dtype))
        draws = cls(network, arrays["weights"], input_shape, scales)
        if not _is_same(draws._outputs_to_check(), arrays["check_outputs"]):
            raise ValueError(
                f"network must be the one that the draws in {path} are of: its weights have the same shapes, "
                "and with the first draw it has other outputs than when that was saved"
            )
        if not math.isclose(bnn.noise_std, wanted := record["noise_std"], rel_tol=1e-6):
            raise ValueError(
                f"network must have the noise_std {wanted:g} as {path} has; got {bnn.noise_std:g}"
            )
        return draws

    def __repr__(self) -> str:
        chains, draws, size = self.weights.shape
        scales = "".join(f", {name}" for name in self.scales)
        return f"WeightDraws({chains} chains of {draws} draws: {size:,} weights{scales})"

    @functools.cached_property
    def _first_network(self) -> BNN:
        return _at(self.network, {name: float(x[0, 0]) for name, x in self.scales.items()})

    def _per_draw(
        self, function: Callable[[BNN], dict[str, Float[Array, ""]]]
    ) -> dict[str, Float[np.ndarray, "chain draw"]]:
        """Numbers of the network at the scales of every draw."""
        scales = {name: x.ravel() for name, x in self.scales.items()}
        shape = self.weights.shape[:2]
        found = jax.vmap(lambda _, s: function(_at(self.network, s)))(np.empty(math.prod(shape)), scales)
        return {name: np.asarray(x).reshape(shape) for name, x in found.items()}

    def _new_inputs(self, x: NewInputs | Tabular) -> Float[np.ndarray, "m ..."]:
        x = np.asarray(floating(x=x), _on_device(self.weights.dtype))
        if x.shape[1:] != self.input_shape or x.size == 0:
            raise ValueError(f"x must have shape (m, {str(self.input_shape)[1:]} with m ≥ 1; got {x.shape}")
        return x

    def _blocks(
        self, x: np.ndarray, batch_size: int, function: Callable[[Array], Array] = lambda f: f
    ) -> Iterator[tuple[slice, slice, np.ndarray]]:
        """A function of the outputs of some draws at some inputs after the other, by one program."""
        # where there are few inputs, the next power of two
        size = min(at_least(1, batch_size=batch_size), 2 ** (len(x) - 1).bit_length())
        num_draws = self.num_chains * self.num_draws
        num_chunks = -(-num_draws // max(1, MAX_DRAWS_BYTES // self.weights[0, 0].nbytes))
        chunk = -(-num_draws // num_chunks)
        known = Static(self.network), Static(self.template)
        for first in range(0, num_draws, chunk):
            draws = slice(first, min(first + chunk, num_draws))
            at = np.unravel_index(_indices(first, chunk, num_draws), self.weights.shape[:2])
            weights, scales = jnp.asarray(self.weights[at]), {name: s[at] for name, s in self.scales.items()}
            for row in range(0, len(x), size):
                rows = slice(row, min(row + size, len(x)))
                values = _outputs(*known, weights, scales, x[_indices(row, size, len(x))])
                values = np.asarray(function(values))
                yield draws, rows, values[: draws.stop - first, : rows.stop - row]

    def _inputs_to_check(self) -> Float[np.ndarray, "2 ..."]:
        """Two inputs made for the purpose."""
        size = math.prod(self.input_shape)
        return np.cos(np.arange(2 * size, dtype=self.weights.dtype)).reshape(2, *self.input_shape)

    def _outputs_to_check(self) -> Float[np.ndarray, "2 d_out"]:
        """What the first draw predicts at them."""
        scales = {name: x[:1, :1] for name, x in self.scales.items()}
        first = WeightDraws(self.network, self.weights[:1, :1], self.input_shape, scales)
        with jax.default_matmul_precision("highest"):
            return first.outputs(self._inputs_to_check())[0, 0]


@jax.jit
def _outputs(
    network: Static, template: Static, weights: Array, scales: dict[str, Array], x: Float[Array, "b ..."]
) -> Float[Array, "draw b d_out"]:
    def output(draw):
        theta, scales = draw
        parts = _unravelled(theta, template.value)
        parameters = jax.tree.map(lambda part, leaf: part.astype(leaf.dtype), parts, template.value)
        return _at(network.value, scales)(parameters, x)

    return jax.lax.map(output, (weights, scales), batch_size=DRAWS_AT_ONCE)


def _unravelled(weights: Any, template: PyTree[jax.ShapeDtypeStruct]) -> Any:
    """Parameters with leaves (*batch, ...), of weights (*batch, weight)."""
    leaves, treedef = jax.tree.flatten(template)
    ends = accumulate(math.prod(leaf.shape) for leaf in leaves)
    parts = [weights[..., end - math.prod(leaf.shape) : end] for leaf, end in zip(leaves, ends, strict=True)]
    return treedef.unflatten(
        [part.reshape(*part.shape[:-1], *leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
    )


def _at(network: Network, scales: Mapping[str, Number]) -> BNN:
    """The network at the scales of one draw."""
    if isinstance(network, BNN):
        own = {"noise_std": network.noise_std, "weight_std": network.weight_std, "bias_std": network.bias_std}
        if unknown := sorted(scales.keys() - own):
            raise ValueError(
                f"scales of a BNN are {', '.join(own)}; got {', '.join(unknown)}: let network be a function "
                "of them"
            )
        return BNN(network.features, network.out_features, **own | dict(scales)) if scales else network
    if not callable(network):
        got = type(network).__name__
        raise TypeError(f"network must be a widebnn.BNN, or a function of scales to one; got {got}")
    if not isinstance(bnn := network(**scales), BNN):
        raise TypeError(f"network must be a function of scales to a widebnn.BNN; it returned {bnn!r}")
    return bnn


def _template(bnn: BNN, input_shape: tuple[int, ...], dtype: np.dtype) -> PyTree[jax.ShapeDtypeStruct]:
    x = np.zeros((1, *input_shape), _on_device(dtype))
    try:
        return bnn.template(x)
    except FeaturesError:
        raise  # whatever their shape is
    except (TypeError, ValueError) as error:
        raise ValueError(f"input_shape {input_shape} does not fit the network: {error}") from error


def _drawn_numbers(bnn: BNN) -> dict[str, Array]:
    """Those numbers of its description that come from scales."""
    return {name: x for name, x in numbers(bnn).items() if isinstance(x, jax.core.Tracer)}


def _draws(name: str, values: Any, axes: tuple[str, ...]) -> np.ndarray:
    """Finite floats, no axis of them empty; what is mapped from disk stays there."""
    values = values if isinstance(values, np.ndarray) else np.asarray(values)
    if values.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name} must hold float32 or float64; got {values.dtype}")
    if values.ndim != len(axes) or values.size == 0:
        raise ValueError(f"{name} must have shape ({', '.join(axes)}), no axis empty; got {values.shape}")
    if not np.isfinite([values.min(), values.max()]).all():  # without an array of their size
        raise ValueError(f"{name} must be finite; it has NaN or infinite entries")
    return values


def _input_shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, tuple | list) or not shape:
        raise TypeError(f"input_shape must be the shape of one input, such as x.shape[1:]; got {shape!r}")
    return tuple(at_least(1, input_shape=size) for size in shape)


def _on_device(dtype: np.dtype) -> np.dtype:
    """float64 is float32 there, unless JAX computes in it."""
    return jax.dtypes.canonicalize_dtype(dtype)


def _indices(first: int, size: int, end: int) -> Int[np.ndarray, " size"]:
    """`size` of them from the first; the last one again where there are no more."""
    return np.minimum(np.arange(first, first + size), end - 1)


def _is_same(outputs: Float[np.ndarray, "2 _d"], wanted: Float[np.ndarray, "2 _d"]) -> bool:
    """Up to the rounding of another machine."""
    error = 1e-3 * np.abs(wanted).max()
    return outputs.shape == wanted.shape and bool(np.all(np.abs(outputs - wanted) <= error))


def _layout(template: PyTree[jax.ShapeDtypeStruct]) -> list[list[Any]]:
    """Names and shapes of the weights, in the order in which they stand in a row."""
    return [
        [jax.tree_util.keystr(path, simple=True, separator="/"), list(leaf.shape)]
        for path, leaf in jax.tree.leaves_with_path(template)
    ]


def _check_layout(path: Path, saved: list[list[Any]], template: PyTree[jax.ShapeDtypeStruct]) -> None:
    wanted, found = ({name: shape for name, shape in layout} for layout in (saved, _layout(template)))
    for name in dict.fromkeys([*wanted, *found]):
        there, here = (str(tuple(side[name])) if name in side else "absent" for side in (wanted, found))
        if there != here:
            raise ValueError(
                f"network does not fit {path}: {name} is {there} there, and {here} in the network"
            )
