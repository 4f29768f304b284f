"""Bad inputs of samplers and their tuning."""

import jax.numpy as jnp

import widebnn as wb

from .rows import KEY, flat, kw, position, refused, target, tuned

SLICE = wb.samplers.elliptical_slice()


def bind(sampler, kind="marginal"):
    return sampler.bind(target(kind))


ROWS = [
    *refused("samplers.pcn", (1.1, "step_size…(0, 1]…1.1")),
    *refused("samplers.elliptical_slice", (lambda: SLICE.bind(flat), TypeError, "target…function")),
    *refused("samplers.from_blackjax", (0.1, TypeError, "make…a function…0.1")),
    *refused(
        "samplers.langevin",
        (0.1, 0.5, kw(num_flat=1), "num_flat…0 or at least 2…1"),
        (lambda: wb.samplers.langevin(0.1, 0.5).init(target(), position()), TypeError, "rng_key…momentum"),
    ),
    *refused("samplers.accept", (KEY, jnp.zeros(2), jnp.zeros(2), jnp.ones(2), "log_ratio…one number…(2,)")),
    *refused(
        "samplers.function_space_hmc",
        (1.6, "step_size…(0, π/2]…1.6"),
        (0.1, kw(jitter=1.5), "jitter…[0, 1]…1.5"),
    ),
    *refused(
        "samplers.unitwise",
        (lambda: wb.samplers.unitwise().step(target(), KEY, None), TypeError, "target…prepare(target)"),
        (lambda: bind(wb.samplers.unitwise(3)), "block_size…divide…4…got 3"),
    ),
    *refused(
        "samplers.tuned",
        ({"sampler": wb.samplers.elliptical_slice()}, TypeError, "sampler…a step size…elliptical_slice"),
        ({"target_acceptance": 1.0}, "target_acceptance…(0, 1)…1.0"),
        ({"sampler": wb.samplers.rwm(2.0)}, "step_size…max_step_size=1.0…2.0"),
        call=lambda o: tuned(**o),
    ),
]
