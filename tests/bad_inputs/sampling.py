"""Bad inputs of the driver, checkpoints and streams."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import widebnn as wb
from widebnn import streaming

from .rows import KEY, X, flat, kw, refused, target, tuned


def sample(**options):
    flat_target = wb.targets.from_potential(flat, jnp.zeros(2))
    options = {"sampler": wb.samplers.pcn(0.5), "target": flat_target, "num_samples": 2} | options
    options = {"burn_in": 0, "num_chains": 1} | options
    sampler, problem = options.pop("sampler"), options.pop("target")
    return wb.sample(options.pop("rng_key", KEY), problem, sampler, progress=False, **options)


def mesh(**axes):
    """One on paper, of more devices than there are."""
    return jax.sharding.Mesh(np.resize(jax.devices(), tuple(axes.values())), tuple(axes))


def streamed(**options):
    """The summary of no values."""
    start = streaming.start(jnp.zeros(2), wb.Stream(jnp.sum, **options))
    return wb.Streamed(jax.device_get(start))


@dataclass(frozen=True)
class Silent(wb.samplers.pcn):
    """Does not report its acceptance."""

    def step(self, target, rng_key, state):
        return super().step(target, rng_key, state)[0], ()


NOWHERE = wb.targets.from_potential(lambda u: jnp.log(-jnp.sum(u**2)), jnp.zeros(2))
COMPLEX_ONE = jax.ShapeDtypeStruct((2,), jnp.complex64)
COMPLEX = {"u": lambda _, u: jax.lax.complex(u, u)}
PCN, ONE = wb.samplers.pcn(0.5), {"u": flat}
LIGHT = wb.Stream(wb.potential, batches=False)


def smc(**options):
    options = {"target": wb.targets.from_potential(flat, jnp.zeros(2)), "rng_key": KEY} | options
    return wb.smc(options.pop("rng_key"), options.pop("target"), progress=False, **options)


ROWS = [
    *refused(
        "widebnn.smc",
        ({"sampler": wb.samplers.unitwise()}, TypeError, "target…units…_FromPotential"),
        *[({"ess": v}, "ess…in (0, 1)") for v in (0, 1, math.nan)],
        ({"temperatures": "0.5"}, TypeError, "temperatures…numbers"),
        *[({"temperatures": v}, "temperatures…increase from above 0 to 1") for v in ([], [0, 1], [0.5])],
        ({"collect": {"u": lambda target, u: (u, u)}}, TypeError, "collect['u']…one array"),
        ({"mesh": mesh(chain=3)}, "mesh…'chain' of 3"),
        ({"target": NOWHERE}, "potential…finite at draws from N(0, I)…at none"),
        call=lambda options: smc(**options),
    ),
    *refused("widebnn.Particles", (lambda: smc(num_particles=2).log_evidence_interval(1.0), "level…(0, 1)")),
    *refused("automatic.auto", ("pcn", TypeError, "target…widebnn.targets…str")),
    *refused(
        "driver.sample",
        (lambda: sample(sampler=None, initial=jnp.zeros((4, 2))), "initial…None where sampler is"),
        (lambda: sample(predict_at=X), TypeError, "target…predictive_mean…has none"),
        (lambda: sample(target=target(), predict_at=X[:, :2]), "x…(m, 3,)…(4, 2)"),
        (lambda: sample(num_positions=3), "num_positions…even…3"),
        (lambda: sample(num_positions=0).predict(X), "predict…positions"),
        (lambda: sample(rng_key=jax.random.split(KEY)), "rng_key…one key…(2,)"),
        (lambda: sample(stream=flat), TypeError, "stream…a dict from names to functions…<function"),
        (lambda: sample(sampler=tuned(sampler=Silent(0.1)), burn_in=2), TypeError, "sampler…acceptance_rate"),
        (lambda: sample(until=wb.Until(), collect={}, stream={"u": LIGHT}), "until…look at…batches=True"),
        (lambda: sample(until=wb.Until(), collect=COMPLEX), TypeError, "until…real numbers…complex"),
        (lambda: sample(sampler=tuned(), burn_in=0), "burn_in…at least 1…tuned…got 0"),
        (lambda: sample(initial=jnp.zeros((2, 3)), num_chains=2), "initial…(2, 2)…(2, 3)"),
        (lambda: sample(target=NOWHERE), "potential…finite…nan"),
        (lambda: sample(collect={"u": 3}), TypeError, "collect…3"),
        (lambda: sample(stream=COMPLEX), TypeError, "stream…real numbers…complex"),
        (lambda: sample(num_samples=2**30, thin=2), "num_samples…at most 2147483647…2147483648"),
        (lambda: sample(collect={"u": lambda _, u: (u, u)}), TypeError, "collect['u']…one array"),
    ),
    *refused(
        "driver.sample",
        ({"mesh": mesh(model=1)}, 'mesh…"chain" and "data"…model'),
        ({"mesh": mesh(chain=2), "num_chains": 3}, "mesh…'chain' of 2…chains…3"),
        ({"mesh": mesh(data=3), "target": target()}, "mesh…'data' of 3…observations…4"),
        ({"mesh": mesh(data=3)}, "mesh…'data' of 3…observations…None"),
        call=lambda options: sample(**options),
    ),
    *refused("driver.run_chains", (KEY, target(), PCN, kw(num_samples=2, collect=ONE), TypeError, "of (u)")),
    *refused(
        "driver.Draws",
        (lambda: sample(collect={}).to_datatree(), "to_datatree…collect={}"),
        (lambda: sample()["prediction"], KeyError, "'prediction'…not collected…['potential']"),
    ),
    *refused(
        "stopping.Until",
        *[(400, v, "rhat…above") for v in (1, 0.5, -1.0, math.nan)],
        (None, None, "ess, rhat and seconds…not all be None"),
        (kw(names="potential"), TypeError, "names…['potential']…'potential'"),
    ),
    *refused(
        "streaming.start", (COMPLEX_ONE, wb.Stream(jnp.sum), TypeError, "streamed…real numbers…complex")
    ),
    *refused(
        "streaming.Streamed",
        (lambda: streamed(batches=False).effective_sample_size, "batch means…batches=True"),
        (lambda: streamed().rhat, "batch means…two values…0"),
    ),
]
