"""How well p observations tell the limit functional: up to O(p^{-1/2}) (Huix et al. 2022, eq. 27)."""

import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from book.experiments.ascent import random_posterior
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.trends import exponent
from widebnn import data, vi
from widebnn.tables import Measure, Results, Row

COIN = (2,), (0.4,)
"""p and δ at which tosses of a fair coin keep the bound, and would not with 1/δ in the place of 2/δ."""


@experiment(SETTINGS["concentration"])
def concentration(num_train, deltas, num_replicates, width, prior_variance, seed) -> Iterator[Row]:
    """The limit functional over samples of the data.

    Hoeffding's bound M_G √(log(2/δ)/(2p)) on |F^p_τ(ν) − R_τ(ν)|, where the paper has log(δ/2).

    F^p_τ is F̃/p and R_τ its mean over the population. KL terms cancel: what is left is a mean of p losses
    G̃(ν; (x, y)) = ℓ(E f(x), y) less that over the population, here all digits, so that M_G, the largest loss
    in it, and R_τ(ν) are exact.

    Yields
    ------
    Rows with losses, "digits" or "coin", num_train p, delta; rms of the difference over replicates and its
    standard error rms_error; std of one loss; bound M_G √(log(2/δ)/(2p)); quantile of the absolute difference
    at 1 − δ; exceedance, the share of replicates beyond the bound; exceedance_short, beyond what 1/δ makes of
    it in the place of 2/δ.
    Losses of a coin are 0 or 1: none with that largest loss vary more.
    """
    rng = np.random.default_rng(seed)  # one stream, so that there are no parts
    populations = {
        "digits": (_losses(width, prior_variance, seed), num_train, deltas),
        "coin": (np.array([0.0, 1.0]), *COIN),
    }
    for name, (losses, sizes, at) in populations.items():
        for p in sizes:
            yield from ({"losses": name} | row for row in _deviations(rng, num_replicates, losses, p, at))


def _deviations(rng, num_replicates, losses: np.ndarray, p: int, deltas) -> Iterator[Row]:
    """Of the mean of p losses from that of all, against the bound at each δ."""
    means = np.array([losses[rng.integers(len(losses), size=p)].mean() for _ in range(num_replicates)])
    difference = means - losses.mean()
    rms = np.sqrt(np.mean(difference**2))
    for delta in deltas:
        bound, short = (losses.max() * np.sqrt(np.log(k / delta) / (2 * p)) for k in (2, 1))
        yield {
            "num_train": p,
            "delta": delta,
            "rms": float(rms),
            "rms_error": float(np.std(difference**2) / (2 * rms * np.sqrt(num_replicates))),
            "std": float(losses.std()),
            "bound": float(bound),
            "quantile": float(np.quantile(np.abs(difference), 1 - delta)),
            "exceedance": float(np.mean(np.abs(difference) > bound)),
            "exceedance_short": float(np.mean(np.abs(difference) > short)),
        }


@concentration.claim("V-C")
def keeps_the_corrected_bound(results: Results) -> Iterator[Finding]:
    replicates = results.settings["num_replicates"]
    digits, coin = (results.rows.where(losses=name) for name in ("digits", "coin"))

    def share(value: float) -> Measure:
        return Measure(value, math.sqrt(max(value * (1 - value), 1 / replicates) / replicates))

    for of, rows in (("", digits), ("losses of 0 or 1, ", coin)):
        for delta, of_delta in rows.by("delta"):
            beyond = share(float(max(of_delta.column("exceedance"))))
            what = f"{of}δ = {delta:g}: share beyond M√(log(2/δ)/(2p)), greatest over p"
            yield Finding(what, beyond, below=delta)
    (toss,) = coin
    what = f"losses of 0 or 1, δ = {toss['delta']:g}: share beyond M√(log(1/δ)/(2p))"
    yield Finding(what, share(toss["exceedance_short"]), above=toss["delta"])
    any_delta = digits.where(delta=digits[0]["delta"])
    slope = exponent(sorted(any_delta.values("num_train")), any_delta.over("num_train", "rms", "rms_error"))
    yield Finding("exponent of the deviation in p", slope, above=-0.6, below=-0.4)


def _losses(width, prior_variance, seed) -> np.ndarray:
    """ℓ(E f(x), y) of all digits at one ν."""
    dataset = data.digits(1_796, 1)
    x = jnp.asarray(np.concatenate([dataset.x_train, dataset.x_test]))
    labels = jnp.asarray(np.concatenate([dataset.y_train, dataset.y_test]).argmax(axis=1))
    key = jax.random.key(seed)
    net = vi.network(vi.TwoLayer(x.shape[1], width, 10, rngs=nnx.Rngs(0)), x, key)
    q = random_posterior(key, net, 1.0, prior_variance)
    return np.asarray(vi.cross_entropy(vi.output_moments(q, x).mean, labels), np.float64)
