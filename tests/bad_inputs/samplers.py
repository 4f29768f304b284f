"""Bad inputs of samplers and their tuning."""

import math

import jax.numpy as jnp

import widebnn as wb

from .rows import KEY, SCALES, WALK, alike, flat, kw, refused, target, tuned

OTHERS = {"langevin": (0.1, 0.5), "hmc": (0.1, 3), "function_space_hmc": (0.1, 3), "elliptical_slice": ()}

ROWS = [
    *alike(
        "samplers",
        ("rwm", "pcn", "mala", "pcnl", *OTHERS),
        (target(), TypeError, "potential…a function of a position…Marginal: give target.potential"),
        (None, TypeError, "potential…a function of a position…NoneType"),
        call=lambda make, v: make(v, *OTHERS.get(make.__name__, (0.1,))),
    ),
    *alike(
        "samplers",
        ("rwm", "mala", "langevin", "hmc"),
        *[(v, f"step_size…above 0…{v}") for v in SCALES],
        ("0.1", TypeError, "step_size…number…'0.1'"),
        call=lambda make, v: make(flat, v, *OTHERS.get(make.__name__, ())[1:]),
    ),
    *alike(
        "samplers",
        ("pcn", "pcnl"),
        *[(flat, v, f"step_size…(0, 1]…{v}") for v in [0.0, 1.1, -0.5, math.nan]],
        (flat, "0.1", TypeError, "step_size…number…'0.1'"),
    ),
    *refused(
        "samplers.langevin",
        *[(flat, 0.1, v, f"damping…(0, 1]…{v}") for v in [0.0, 1.5, -1.0]],
        (flat, 0.1, 0.5, kw(num_flat=-1), "num_flat…at least 0…-1"),
        (flat, 0.1, 0.5, kw(num_flat=1), "num_flat…0 or at least 2…1"),
        (flat, 0.1, 0.5, kw(num_flat=2.5), TypeError, "num_flat…an integer…2.5"),
        (lambda: wb.samplers.langevin(0.1, 0.5).init(jnp.zeros(2)), TypeError, "rng_key…momentum"),
    ),
    *refused(
        "samplers.leapfrog",
        ((0.0, 3), "step_size…above 0…0.0"),
        ((0.1, 0), "num_steps…at least 1…0"),
        call=lambda v: wb.samplers.leapfrog(flat, *v),
    ),
    *refused("samplers.accept", (KEY, jnp.zeros(2), jnp.zeros(2), jnp.ones(2), "log_ratio…one number…(2,)")),
    *refused("samplers.hmc", (flat, 0.1, 0, "num_steps…at least 1…0")),
    *refused(
        "samplers.function_space_hmc",
        *[(flat, v, 3, f"step_size…(0, π/2]…{v}") for v in (0.0, math.nan, 1.6)],
        (flat, 0.1, 0, "num_steps…at least 1…0"),
        (flat, 0.1, 3, kw(damping=0.0), "damping…(0, 1]…0.0"),
        (flat, 0.1, kw(jitter=1.5), "jitter…[0, 1]…1.5"),
        (flat, 0.1, kw(jitter=True), TypeError, "jitter…number…True"),
        (
            lambda: wb.samplers.function_space_hmc(0.1, 3).init(jnp.zeros(2)),
            TypeError,
            "rng_key…momentum",
        ),
    ),
    *refused("samplers.elliptical_slice", (0.1, TypeError, "potential")),
    *refused(
        "samplers.unitwise",
        (lambda: wb.samplers.unitwise(), TypeError, "target…marginal…Standard"),
        (
            lambda: wb.samplers.unitwise(),
            TypeError,
            "target…marginal…Rotated",
        ),
        (lambda: wb.samplers.unitwise(3), "block_size…divide…4…got 3"),
        (lambda: wb.samplers.unitwise(0), "block_size…at least 1…0"),
    ),
    *refused(
        "samplers.alternate",
        (lambda: wb.samplers.alternate(wb.samplers.pcn(0.1), flat), TypeError, "second…a sampler"),
    ),
    *refused(
        "samplers.tuned",
        ({"make": None}, TypeError, "make…a function from a step size…None"),
        ({"make": WALK(0.1)}, TypeError, "make…a function from a step size…Sampler"),
        ({"make": float}, TypeError, "make…return a sampler…0.1"),
        *(({"target_acceptance": v}, f"target_acceptance…(0, 1)…{v}") for v in (0.0, 1.0, 1.7, math.nan)),
        ({"step_size": 2.0}, "step_size…max_step_size=1.0…2.0"),
        ({"step_size": -0.1}, "step_size…above 0…-0.1"),
        ({"max_step_size": 0.0}, "max_step_size…above 0…0.0"),
        ({"step_size": "0.1"}, TypeError, "step_size…a finite number above 0…'0.1'"),
        ({"target_acceptance": "0.5"}, TypeError, "target_acceptance…a number in (0, 1)…'0.5'"),
        ({"max_step_size": 2.0}, "max_step_size…(0, 1]…2.0"),
        call=lambda o: tuned(**o),
    ),
]
