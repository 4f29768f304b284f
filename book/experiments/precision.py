"""What float32 costs of the acceptance of Langevin (Hron et al. 2022, Section 4)."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.networks import network, observed
from widebnn import targets
from widebnn.tables import Measure, Row, Rows
from widebnn.tree import half_square_difference, inner_product, normal_like


@experiment(SETTINGS["precision"], parts=(("parametrisations", "step_sizes"),))
def precision(
    dataset, num_train, width, depth, parametrisations, step_sizes, num_candidates, noise_std, seed
) -> Iterator[Row]:
    """Acceptance of the same Langevin candidates in float32 and in float64.

    Each candidate is a leapfrog step in float32 from T(φ), φ ~ N(0, I), or from φ, with a fresh momentum.

    Yields
    ------
    Rows with parametrisation and candidate; the acceptance in float64, `exact`; in float32 by the difference
    of two log densities, `whole`, and by differences taken term by term as samplers of the package do,
    `differenced`.
    """
    images = observed("dense", dataset, num_train, 1)
    bnn = network("dense", images, width, depth, noise_std, seed)
    x, y = images.x_train, images.y_train
    phi = targets.repriorised(bnn, x, y)
    of_name = {"φ": phi, "θ": targets.standard(bnn, x, y)}
    for name, step_size in zip(parametrisations, step_sizes, strict=True):
        target = of_name[name]
        propose = jax.jit(_propose)
        energies = jax.jit(_energies)
        for i in range(num_candidates):
            start_key, momentum_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), i))
            start = phi.draw_prior(start_key)
            start = phi.to_parameters(start) if name == "θ" else start
            ends = propose(target, start, normal_like(momentum_key, start), step_size)
            short = [energies(target, *end) for end in ends]
            (u, m), (v, n) = ends
            squares = half_square_difference(v, u) + half_square_difference(n, m)
            with jax.enable_x64(True):
                long_target = jax.tree.map(_double, target)
                long = [energies(long_target, *jax.tree.map(_double, end)) for end in ends]
                exact = float(sum(long[0]) - sum(long[1]))
            whole = float(jnp.sum(jnp.stack(short[0])) - jnp.sum(jnp.stack(short[1])))
            apart = float(short[0][0] - short[1][0] - squares)
            found = {"exact": exact, "whole": whole, "differenced": apart}
            rates = {kind: float(np.exp(min(0.0, ratio))) for kind, ratio in found.items()}
            yield {"parametrisation": name, "candidate": i} | rates


def _propose(target, u, m, step_size):
    """Both ends of a leapfrog step whose drift is the rotation of N(0, I)."""
    slope = jax.grad(target.potential)
    c, s = jnp.cos(step_size), jnp.sin(step_size)
    kicked = jax.tree.map(lambda m, g: m - step_size / 2 * g, m, slope(u))
    v = jax.tree.map(lambda u, m: c * u + s * m, u, kicked)
    turned = jax.tree.map(lambda u, m: c * m - s * u, u, kicked)
    return (u, m), (v, jax.tree.map(lambda m, g: m - step_size / 2 * g, turned, slope(v)))


def _energies(target, u, m):
    """The potential and the two halves of squares."""
    return target.potential(u), inner_product(u, u) / 2, inner_product(m, m) / 2


def _double(leaf):
    return jnp.asarray(leaf, float) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else leaf


@precision.claim("H-32")
def float32_costs_acceptance(rows: Rows) -> Iterator[Finding]:
    for name, of in rows.by("parametrisation"):
        exact = of.column("exact")
        for kind, bounds in (("whole", {"above": 0.02}), ("differenced", {"below": 0.02})):
            change = Measure.mean(np.abs(of.column(kind) - exact))
            what = f"{name}: change of the acceptance in float32, log densities {kind}"
            known = {"degrees": len(exact) - 1, "decides": (name, kind) == ("θ", "whole")}
            yield Finding(what, change, **bounds, **known)
