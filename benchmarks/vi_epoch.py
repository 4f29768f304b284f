"""An epoch of Bayes by Backprop on MNIST against the same in plain PyTorch."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import numpy as np
import optax
from flax import nnx

import widebnn as wb
from benchmarks.timing import Comparison, can_run, compare

BATCH_SIZE, LEARNING_RATE, PRIOR_VARIANCE = 128, 1e-2, 0.04
PEER = Path(__file__).with_name("torch_bayes_by_backprop.py")
TORCH_PYTHON = os.environ.get("TORCH_PYTHON", sys.executable)
"""The interpreter that has PyTorch: this one with the extra `bench`, or that of another environment."""


@contextmanager
def torch_epochs(
    data: wb.data.Dataset, width: int, temperature: float
) -> Iterator[Callable[[], tuple[float, float]]]:
    """A function that runs one epoch in another process: milliseconds, and its mean objective."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(
            file,
            x=data.x_train,
            y=data.labels_train,
            width=width,
            batch_size=BATCH_SIZE,
            temperature=temperature,
            prior_variance=PRIOR_VARIANCE,
        )
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen([TORCH_PYTHON, PEER, file], **pipes) as process:
            process.stdout.readline()  # its version, when it is ready

            def epoch() -> tuple[float, float]:
                process.stdin.write("\n")
                process.stdin.flush()
                milliseconds, objective = process.stdout.readline().split()
                return float(milliseconds), float(objective)

            yield epoch
            process.stdin.close()


def our_epochs(data: wb.data.Dataset, width: int, temperature: float, num_epochs: int) -> wb.vi.Fit:
    """The same fit by this package."""
    model = wb.vi.TwoLayer(data.x_train.shape[1], width, len(data.classes), rngs=nnx.Rngs(0))
    return wb.vi.fit(
        jax.random.key(0),
        model,
        data.x_train,
        data.labels_train,
        wb.vi.cross_entropy,
        optax.adam(LEARNING_RATE),
        num_epochs=num_epochs,
        batch_size=BATCH_SIZE,
        temperature=temperature,
        prior_variance=PRIOR_VARIANCE,
        progress=False,
    )


def vi_epoch_vs_torch(data: wb.data.Dataset, width: int = 400) -> Comparison:
    """One epoch with one draw of the weights a step; ours with the closed-form KL, theirs with the draw's.

    Both take the same data, model, optimiser, batches and temperature (τ = 10⁻³), and report both terms of
    the ELBO; theirs also updates accuracy and ECE at every step and reads them back, as the published code
    does.
    """
    temperature = wb.vi.temperature(1e-3, len(data.x_train), width)
    with torch_epochs(data, width, temperature) as theirs:
        theirs()  # warms up
        row = compare(
            "vi_epoch_vs_torch",
            lambda: 1e3 * our_epochs(data, width, temperature, 1).seconds,
            lambda: theirs()[0],
            rounds=5,
        )
    row["unit"] = "ms/epoch"
    return row


def vi_epoch() -> Iterator[Comparison]:
    """The row on MNIST; none, and why, where there is no PyTorch."""
    if not can_run("vi_epoch_vs_torch", TORCH_PYTHON, "torch", "PyTorch"):
        return
    data = wb.data.mnist(num_train=60_000, num_test=1)
    yield vi_epoch_vs_torch(data)
