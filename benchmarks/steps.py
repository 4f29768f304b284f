"""What a step costs: our pCN against the papers', and repriorisation against none."""

import time
from collections.abc import Callable, Iterator

import jax
from flax import nnx

import widebnn as wb
from benchmarks.paper_pcn import pcn_steps
from benchmarks.timing import Comparison, compare

__all__ = ["pcn_step_vs_paper", "repriorised_overhead"]

STEP_SIZE = 0.1


def network(data: wb.data.Dataset, width: int) -> wb.BNN:
    """The papers' network: one hidden layer, GELU, σ = 0.1."""
    features = wb.models.FCN(data.x_train.shape[1], width, depth=1, rngs=nnx.Rngs(0))
    return wb.BNN(features, data.y_train.shape[1], noise_std=0.1)


def compiled_steps(
    sampler: wb.samplers.Sampler, target: wb.targets.Target, num_steps: int
) -> Callable[[], float]:
    """A function that makes `num_steps` steps through the driver and returns milliseconds a step."""

    def run() -> float:
        draws = wb.sample(
            jax.random.key(0), sampler, target, num_samples=1, thin=num_steps, burn_in=1, progress=False
        )
        return 1e3 * draws.seconds / (num_steps + 1)

    return run


def python_steps(run: Callable[[int], float], num_steps: int) -> Callable[[], float]:
    """The same for a sampler that is called from Python step by step."""
    run(2)  # compiles

    def timed() -> float:
        start = time.perf_counter()
        run(num_steps)
        return 1e3 * (time.perf_counter() - start) / num_steps

    return timed


def pcn_step_vs_paper(data: wb.data.Dataset, widths: tuple[int, ...]) -> Iterator[Comparison]:
    """Our pCN step (rotated, marginal, data space) against the papers' algorithm."""
    for width in widths:
        bnn = network(data, width)
        target = wb.targets.rotated(wb.targets.marginal(bnn, data.x_train, data.y_train, space="data"))
        sampler = wb.samplers.pcn(target.potential, STEP_SIZE)
        yield compare(
            f"pcn_step_vs_paper_{width}",
            compiled_steps(sampler, target, num_steps=max(50, 200_000 // width)),
            python_steps(pcn_steps(bnn, data.x_train, data.y_train, STEP_SIZE), max(5, 10_000 // width)),
        )


def repriorised_overhead(data: wb.data.Dataset, widths: tuple[int, ...]) -> Iterator[Comparison]:
    """A Langevin step in φ (all of it, not rotated) against one in θ: what the map itself costs."""
    for width in widths:
        bnn = network(data, width)
        steps = []
        for make in (wb.targets.repriorised, wb.targets.standard):
            target = make(bnn, data.x_train, data.y_train)
            sampler = wb.samplers.langevin(target.potential, step_size=1e-3, damping=0.1)
            steps.append(compiled_steps(sampler, target, num_steps=max(10, 20_000 // width)))
        yield compare(f"repriorised_overhead_{width}", *steps)
