"""Whether the data prefer a finite network to its limit: log Z_d = log Z_∞ + c₁/d, from draws of one unit."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from widebnn._arrays import Inputs, Observations, Tabular
from widebnn._check import Number, at_least, one_key, positive
from widebnn.models import BNN, FCN
from widebnn.nngp.kernels import nngp_kernel
from widebnn.tree import normal_like

__all__ = ["EvidenceSlope", "evidence_slope"]

UNITS_AT_ONCE = 4_096
MIN_UNITS = 16_384
"""Units before which no error is trusted: fourth moments have heavy tails."""


class EvidenceSlope(NamedTuple):
    """$log Z_d = log Z_∞ + c₁/d + O(d⁻²)$ at width $d$, in nats; see `evidence_slope`.

    Attributes
    ----------
    log_evidence
        $log Z_∞ = log p(y | X)$ of the Gaussian process.
    slope
        $c₁$: above 0 where the data prefer a finite network.
    error
        Standard error of $c₁$ from the draws of units.
    num_units
        Number of units that were drawn.
    """

    log_evidence: float
    slope: float
    error: float
    num_units: int


def evidence_slope(
    bnn: BNN,
    x: Inputs | Tabular,
    y: Observations | Tabular,
    rng_key: Key[Array, ""] | None = None,
    *,
    relative_error: Number = 0.1,
    max_units: int = 2**17,
) -> EvidenceSlope:
    """Evidence of a network with one hidden layer over its width, without any chain.

    $K̂ − K$ is a mean over $d$ independent units, so that to first order in $1/d$ the evidence depends on
    moments of one of them. With $p$ the outputs of a unit at the data, times $σ_W$ of the readout,
    $K_0 = E ppᵀ$, $α_j = K_σ²⁻¹y_:j$, $q = pᵀK_σ²⁻¹p$, $s = ∑_j (α_jᵀp)²$ and $h = d_out q − s$,

    $$c₁ = ½ E[(h − E h)²/4 − s q + ½ d_out q²] + ½ B,$$

    with $B = ∑_j α_jᵀK_0K_σ²⁻¹K_0α_j − ½ d_out tr (K_σ²⁻¹K_0)²$, and $E h$ known from $K_0$. Where
    $d$ is not large beside $|c₁|$ the evidence leaves this line.

    Width and scales are confounded until the scales are chosen: at scales that do not suit, $c₁$ is positive
    on most data, since a mixture over $K̂$ is more forgiving. Take the most probable scales of the limit,
    as ``BNNRegressor(width=math.inf)`` finds them; a large positive $c₁$ there says that features are worth
    learning.

    Parameters
    ----------
    bnn
        A network whose features are a `widebnn.models.FCN` with one hidden layer, of any width.
    x, y
        Inputs $(n, ...)$ and observations $(n, d_out)$, or $(n,)$ where there is one output.
    rng_key
        Key of the units; ``jax.random.key(0)`` unless given.
    relative_error
        Units are drawn until the standard error is at most this share of $|c₁|$, or `max_units` are there.
        Fourth moments of a unit have heavy tails: the error of few units is too small.
    max_units
        Most units that are drawn.

    Raises
    ------
    ValueError
        If the network has not one hidden layer: in deeper ones $E K̂ ≠ K$ at order $1/d$, and $c₁$ is no
        moment of one unit. If $K_σ²$ is singular.

    Examples
    --------
    >>> import numpy as np
    >>> from flax import nnx
    >>> import widebnn as wb
    >>> x = np.linspace(-1, 1, 8)[:, None]
    >>> bnn = wb.BNN(wb.models.FCN(1, 64, rngs=nnx.Rngs(0)), 1, noise_std=0.3)
    >>> found = wb.nngp.evidence_slope(bnn, x, np.sin(3 * x), relative_error=1.0)
    >>> found.num_units >= 16_384
    True
    """
    import scipy.linalg

    from widebnn.targets._network import check_inputs, check_observations  # which take this package along

    x = check_inputs(bnn, x)
    y = np.asarray(check_observations(bnn, x, y), np.float64)
    features = bnn.features.module
    if type(features) is not FCN or features.depth != 1:
        layers = f"{features.depth} of them" if type(features) is FCN else type(features).__name__
        raise ValueError(
            f"bnn must have features with one hidden layer, FCN of depth 1; got {layers}: only there c₁ "
            "comes from draws of one unit. Of deeper networks compare log_evidence of widebnn.smc over widths"
        )
    rng_key = jax.random.key(0) if rng_key is None else one_key(rng_key=rng_key)
    positive(relative_error=relative_error)
    at_least(1, max_units=max_units)
    if np.shape(bnn.noise_std)[1:] not in ((), (1,)):
        raise ValueError("bnn must have one noise_std for all outputs")

    n, d_out = y.shape
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        kernel = np.asarray(nngp_kernel(bnn)(jnp.asarray(np.asarray(x, np.float64))))
    try:
        noise = np.asarray(bnn.noise_std, np.float64) ** 2 * np.eye(n)  # one number, or one per observation
        factor = np.linalg.cholesky(kernel + noise)
    except np.linalg.LinAlgError:
        raise ValueError(f"noise_std must be larger: K + σ²I is singular; got {bnn.noise_std}") from None
    whitening = scipy.linalg.solve_triangular(factor, np.eye(n), lower=True)  # L⁻¹, of K_σ² = LLᵀ
    white = whitening @ y  # L⁻¹y, so that αᵀp = (L⁻¹y)ᵀ(L⁻¹p)
    inner = whitening @ (kernel - float(bnn.bias_std) ** 2) @ whitening.T  # L⁻¹K₀L⁻ᵀ
    limit = -(np.sum(white**2) + d_out * (2 * np.log(np.diag(factor)).sum() + n * math.log(2 * math.pi))) / 2

    mean = d_out * np.trace(inner) - np.sum(white * (inner @ white))
    known = np.sum((inner @ white) ** 2) - d_out * np.sum(inner**2) / 2
    values = np.empty(0)
    slope, error = math.nan, math.inf
    while len(values) < max_units and (len(values) < MIN_UNITS or error > float(relative_error) * abs(slope)):
        units = _units(bnn, x, jax.random.fold_in(rng_key, len(values)))
        whitened = whitening @ np.asarray(units, np.float64)
        q = np.sum(whitened**2, axis=0)
        s = np.sum((white.T @ whitened) ** 2, axis=0)
        new = ((d_out * q - s - mean) ** 2 / 4 - s * q + d_out * q**2 / 2 + known) / 2
        values = np.concatenate([values, new])
        slope, error = values.mean(), values.std(ddof=1) / math.sqrt(len(values))
    return EvidenceSlope(float(limit), float(slope), float(error), len(values))


@jax.jit
def _units(bnn: BNN, x: Float[Array, "n ..."], rng_key: Key[Array, ""]) -> Float[Array, "n unit"]:
    """Outputs p of independent units at the data, from networks drawn from the prior."""
    width = jax.eval_shape(bnn.embedding, bnn.features.template, x).shape[1] - bnn.has_bias

    def of_network(key):
        psi = bnn.embedding(normal_like(key, bnn.features.template), x)
        return math.sqrt(width) * psi[:, :width]

    keys = jax.random.split(rng_key, -(-UNITS_AT_ONCE // width))
    return jnp.concatenate(jax.vmap(of_network)(keys), axis=1)
