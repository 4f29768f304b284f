"""Bad inputs of samplers and their tuning."""

import math

import jax.numpy as jnp

import widebnn as wb

from .rows import KEY, SCALES, alike, flat, kw, position, refused, target, tuned


def bind(sampler, kind="marginal"):
    return sampler.bind(target(kind))


OTHERS = {"langevin": (0.5,), "hmc": (3,), "function_space_hmc": (3,)}

ROWS = [
    *alike(
        "samplers",
        ("rwm", "mala", "langevin", "hmc"),
        *[(v, f"step_size…above 0…{v}") for v in SCALES],
        ("0.1", TypeError, "step_size…number…'0.1'"),
        call=lambda make, v: make(v, *OTHERS.get(make.__name__, ())),
    ),
    *alike(
        "samplers",
        ("pcn", "pcnl"),
        *[(v, f"step_size…(0, 1]…{v}") for v in [0.0, 1.1, -0.5, math.nan]],
        ("0.1", TypeError, "step_size…number…'0.1'"),
    ),
    *alike(
        "samplers",
        ("pcn", "elliptical_slice", "from_blackjax"),
        (flat, TypeError, "target…widebnn.targets…function"),
        call=lambda make, v: make(*{"pcn": (0.1,), "from_blackjax": (print,)}.get(make.__name__, ())).bind(v),
    ),
    *refused("samplers.from_blackjax", (0.1, TypeError, "make…a function…0.1")),
    *refused(
        "samplers.langevin",
        (0.1, 0.5, kw(num_flat=1), "num_flat…0 or at least 2…1"),
        (
            lambda: wb.samplers.langevin(0.1, 0.5).init(target(), position()),
            TypeError,
            "rng_key…momentum",
        ),
    ),
    *refused(
        "samplers.leapfrog",
        ((0.1, 0), "num_steps…at least 1…0"),
        call=lambda v: wb.samplers.leapfrog(flat, *v),
    ),
    *refused("samplers.accept", (KEY, jnp.zeros(2), jnp.zeros(2), jnp.ones(2), "log_ratio…one number…(2,)")),
    *refused(
        "samplers.function_space_hmc",
        *[(v, 3, f"step_size…(0, π/2]…{v}") for v in (0.0, math.nan, 1.6)],
        (0.1, kw(jitter=1.5), "jitter…[0, 1]…1.5"),
        (
            lambda: wb.samplers.function_space_hmc(0.1, 3).init(target(), position()),
            TypeError,
            "rng_key…momentum",
        ),
    ),
    *refused(
        "samplers.unitwise",
        (lambda: bind(wb.samplers.unitwise(), "standard"), TypeError, "target…marginal…Standard"),
        (lambda: wb.samplers.unitwise().step(target(), KEY, None), TypeError, "target…prepare(target)"),
        (lambda: bind(wb.samplers.unitwise(3)), "block_size…divide…4…got 3"),
    ),
    *refused(
        "samplers.alternate",
        (wb.samplers.pcn(0.1), flat, TypeError, "second…widebnn.samplers…function"),
    ),
    *refused(
        "samplers.tuned",
        ({"sampler": None}, TypeError, "sampler…widebnn.samplers…None"),
        ({"sampler": wb.samplers.elliptical_slice()}, TypeError, "sampler…a step size…elliptical_slice"),
        *(({"target_acceptance": v}, f"target_acceptance…(0, 1)…{v}") for v in (0.0, 1.0, 1.7, math.nan)),
        ({"sampler": wb.samplers.rwm(2.0)}, "step_size…max_step_size=1.0…2.0"),
        ({"max_step_size": 2.0}, "max_step_size…(0, 1]…2.0"),
        call=lambda o: tuned(**o),
    ),
]
