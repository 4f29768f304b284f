"""How fast a device is at what experiments spend their time on: measured, or from a card's data sheet.

A step of a sampler takes the time to start its operations and the time of their arithmetic. In a narrow
network the first is nearly all, in a wide one the second; a card is far ahead of a CPU in the second alone.
"""

import time
from typing import NamedTuple

import jax
from flax import nnx

from widebnn import samplers, targets
from widebnn.models import BNN, FCN
from widebnn.study.results import device

__all__ = ["A100", "CARDS", "H100", "T4", "Speed", "measured_speed", "operations"]


class Speed(NamedTuple):
    """What a step costs on a device: `latency` seconds, and one for each `flops` of its operations.

    Attributes
    ----------
    device
        Its name, as `widebnn.study.device` has it.
    flops
        Operations on float32 numbers per second, in steps of the experiments' sizes.
    latency
        Seconds of a step that has next to nothing to compute.
    basis
        Where the numbers come from, in words.
    """

    device: str
    flops: float
    latency: float
    basis: str


def _card(device: str, tflops: float) -> Speed:
    basis = (
        f"not measured on this card: a quarter of the {tflops:g} TFLOP/s on its data sheet, and 50 "
        "operations a step that take 10 µs each to start"
    )
    return Speed(device, flops=tflops * 1e12 / 4, latency=50 * 10e-6, basis=basis)


T4 = _card("Tesla T4", 8.1)
"""The card of Colab's free runtime; its speed is a guess from the data sheet.

The guess has 50 operations per step, where a step of pCN compiles to some forty.
"""
A100 = _card("NVIDIA A100", 19.5)
H100 = _card("NVIDIA H100", 66.9)
CARDS = (T4, A100, H100)
"""By float32 without tensor cores, which round to fewer digits than acceptances bear; the H100 is SXM5."""


def measured_speed() -> Speed:
    """The speed of the device at hand, by steps of pCN on a narrow and a wide network; takes a few seconds.

    Each is the fastest of three runs: what else the device does can only slow a run down.
    """
    narrow, wide = _seconds_per_step(8, 8, 200), _seconds_per_step(256, 4_096, 10)
    # Where the arithmetic of the wide step drowns in the scatter of its start, a tenth of it is taken.
    arithmetic = max(wide - narrow, wide / 10)
    return Speed(device(), operations(256, 4_096) / arithmetic, narrow, "measured here")


def operations(n: int, width: int) -> float:
    """Of a step of pCN with rotated inputs: XW and ΨΨᵀ, n² × width each, and a Cholesky factor, n³/3."""
    return 4.0 * n**2 * width + n**3 / 3


def _seconds_per_step(n: int, width: int, num_steps: int) -> float:
    x = jax.random.normal(jax.random.key(0), (n, n))
    bnn = BNN(FCN(n, width, rngs=nnx.Rngs(0)), 1, noise_std=0.1)
    target = targets.marginal(bnn, x, x[:, :1])
    sampler = samplers.pcn(target.potential, step_size=0.1)

    @jax.jit
    def run(state, rng_key):
        def step(i, state):
            return sampler.step(jax.random.fold_in(rng_key, i), state)[0]

        return jax.lax.fori_loop(0, num_steps, step, state)

    state = sampler.init(target.draw_prior(jax.random.key(1)))
    state = jax.block_until_ready(run(state, jax.random.key(2)))  # compiles
    seconds = []
    for number in range(3):
        start = time.perf_counter()
        state = jax.block_until_ready(run(state, jax.random.key(number)))
        seconds.append(time.perf_counter() - start)
    return min(seconds) / num_steps
