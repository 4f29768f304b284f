"""Shortcuts that Hron et al. (2022) describe: for R in Appendix E.2, for T in Appendix B."""

import math
import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from book.experiments.clock import on_one_thread
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.networks import in_span, network, observed
from book.experiments.trends import exponent
from widebnn import targets
from widebnn.tables import Measure, Row, Rows


@experiment(SETTINGS["log_determinants"], parts="regs")
def log_determinants(
    dataset, num_train, width, regs, num_probes, order, num_draws, noise_std, seed
) -> Iterator[Row]:
    """The log determinant of R at prior draws: exact, and by Taylor's series and Hutchinson's probes.

    Yields
    ------
    Rows with reg, λ, and draw; the log |det ∂R/∂φ|, `exact` and `approximate`; and its sign.
    """
    images = in_span(observed("dense", dataset, num_train, 1))
    bnn = network("dense", images, width, 1, noise_std, seed)
    x, y = images.x_train, images.y_train
    for reg in regs:
        exact = targets.jacobian(bnn, x, y, reg)
        probed = targets.jacobian(bnn, x, y, reg, num_probes, order, jax.random.key(seed))

        def both(key, exact=exact, probed=probed):
            phi = exact.draw_prior(key)
            found = exact.log_jacobian(phi), probed.log_jacobian(phi), exact.orientation(phi)
            return jnp.stack(found)

        keys = jax.random.split(jax.random.key(seed), num_draws)
        for i, found in enumerate(np.asarray(jax.jit(lambda keys, f=both: jax.lax.map(f, keys))(keys))):
            numbers = zip(("exact", "approximate", "sign"), map(float, found), strict=True)
            yield {"reg": reg, "draw": i} | dict(numbers)


@log_determinants.claim("H-E2a")
def approximation_is_close(rows: Rows) -> Iterator[Finding]:
    for reg, of in rows.by("reg"):
        off = np.std(of.column("approximate") - of.column("exact")) / np.std(of.column("exact"))
        error = off / math.sqrt(2 * (len(of) - 1))
        what = f"λ = {reg:g}: deviation of the error ÷ deviation of log |det ∂R|"
        yield Finding(what, Measure(float(off), error), below=0.1)


@experiment(SETTINGS["readout_cost"], parts="spaces")
def readout_cost(spaces, nums_train, widths, num_rounds, seed) -> Iterator[Row]:
    """Processor seconds of the readout's posterior mean and log determinant, in data and in feature space.

    Yields
    ------
    Rows with space, num_train, width and seconds, the least of all rounds.
    """
    for space in spaces:
        sizes = [*((n, min(widths)) for n in nums_train), *((min(nums_train), d) for d in widths)]
        for n, d in dict.fromkeys(sizes):
            psi_key, y_key = jax.random.split(jax.random.key(seed))
            psi, y = jax.random.normal(psi_key, (n, d)) / math.sqrt(d), jax.random.normal(y_key, (n, 1))

            @jax.jit
            def run(psi, y, space=space):
                posterior = targets.readout_posterior(psi, y, jnp.float32(0.01), space)
                return posterior.mean(), posterior.log_det()

            jax.block_until_ready(run(psi, y))
            taken = []
            with on_one_thread():
                for _ in range(num_rounds):
                    before = time.process_time()
                    jax.block_until_ready(run(psi, y))
                    taken.append(time.process_time() - before)
            yield {"space": space, "num_train": n, "width": d, "seconds": min(taken)}


@readout_cost.claim("H-AB2")
def cubic_in_one(rows: Rows) -> Iterator[Finding]:
    bounds: dict[tuple[str, str], dict[str, Any]] = {
        ("feature", "width"): {"above": 2},
        ("data", "width"): {"below": 2},
        ("data", "num_train"): {"above": 2},
        ("feature", "num_train"): {"below": 2},
    }
    for (space, over), bound in bounds.items():
        other = "num_train" if over == "width" else "width"
        of = rows.where(space=space)
        of = of.where(**{other: min(of.values(other))})
        last = Rows(sorted(of, key=lambda row: row[over])[-2:])
        slope = exponent(last.column(over).tolist(), [Measure(row["seconds"]) for row in last])
        name = "d_L" if over == "width" else "n"
        yield Finding(f"{space} space: exponent of the time in {name}, last two sizes", slope, **bound)
