"""Exact statements of the papers, on random problems in float64."""

import math
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.flatten_util import ravel_pytree

from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from widebnn import targets, vi
from widebnn.models import BNN, FCN
from widebnn.samplers import hmc, leapfrog
from widebnn.tables import Row, Rows

NUM_DRAWS = 16
"""Prior draws at which two potentials are compared."""
TOLERANCE = 1e-9
"""The largest error of an identity in float64."""
SIZE = ("num_train", "width", "out_features")


@experiment(SETTINGS["identities"], parts=("sizes", "noise_stds"))
def identities(sizes, noise_stds, seed) -> Iterator[Row]:
    """How far exact statements are from holding, on random problems in float64.

    Yields
    ------
    Rows with identity (a name, of a function here or in `misprints.py`), num_train, width, out_features,
    noise_std; error; and of what is misprinted the error of the formula as `printed` (None elsewhere).
    """
    for size in sizes:
        rng_key = jax.random.key(seed)
        for number in size:
            rng_key = jax.random.fold_in(rng_key, number)
        for noise_std in noise_stds:
            problem = dict(zip(SIZE, size, strict=True)) | {"noise_std": noise_std}
            for name, error in IDENTITY.items():
                with jax.enable_x64(True):  # not while the consumer of a row computes
                    right, *printed = map(float, np.ravel(error(rng_key, *size, noise_std)))
                yield (
                    {"identity": name}
                    | problem
                    | {"error": right, "printed": printed[0] if printed else None}
                )


IDENTITY: dict[str, Callable] = {}
"""By name, what measures how far it is from holding; with how far it is as printed, where that errs."""


def identity(name: str, what: str, id: str) -> Callable:
    """Register an identity, and the claim that it holds: by its largest error over all problems.

    Of what a paper misprints the least error as printed must be large, too.
    """

    def summary(rows: Rows) -> Iterator[Finding]:
        found = rows.where(identity=name)
        errors = found.column("error")
        yield Finding(f"{what}, largest of {len(errors)} problems", max(errors), below=TOLERANCE)
        if found[0]["printed"] is not None:
            yield Finding(f"{what}, as printed, least", min(found.column("printed")), above=0.01)

    identities.claim(id)(summary)
    return lambda error: IDENTITY.setdefault(name, error)


def _linear(rng_key, n, d, d_out, noise_std):
    x_key, y_key = jax.random.split(rng_key)
    return targets.linear(jax.random.normal(x_key, (n, d)), jax.random.normal(y_key, (n, d_out)), noise_std)


def network(rng_key, n, width, d_out, noise_std):
    """A network with one hidden layer of this width, three inputs and n observations."""
    x_key, y_key = jax.random.split(rng_key)
    features = FCN(3, width, rngs=nnx.Rngs(0))
    observed = (jax.random.normal(x_key, (n, 3)), jax.random.normal(y_key, (n, d_out)))
    return lambda outputs=d_out: BNN(features, outputs, noise_std), *observed


def at_draws(rng_key, target, *potentials):
    """Arrays of what these functions are at draws from the prior."""

    def at_draw(rng_key):
        position = target.draw_prior(rng_key)
        position = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), position)
        return tuple(potential(position) for potential in potentials)

    at_each = jax.jit(lambda rng_key: jax.lax.map(at_draw, jax.random.split(rng_key, NUM_DRAWS)))
    return tuple(np.asarray(u) for u in at_each(rng_key))


@identity("prior", "variation of U in φ ÷ in θ", "H-F2")
def _prior(rng_key, *problem):
    """In a linear model, how much the potential of φ varies (Hron et al. 2022, Figure 2)."""
    target = _linear(rng_key, *problem)
    before, after = at_draws(rng_key, target, target.potential, target.repriorised().potential)
    return np.ptp(after) / np.ptp(before)


@identity("spaces", "data space against feature space", "H-AB")
def _spaces(rng_key, *problem):
    """The potential of a network (Appendix B)."""
    bnn, x, y = network(rng_key, *problem)
    by_data, by_features = (targets.marginal(bnn(), x, y, space=space) for space in ("data", "feature"))
    return difference(*at_draws(rng_key, by_data, by_data.potential, by_features.potential))


@identity("outputs", "whole against columns", "H-AC")
def _outputs(rng_key, *problem):
    """The potential of a network, and those of its outputs taken alone (Appendix C)."""
    bnn, x, y = network(rng_key, *problem)
    whole = targets.marginal(bnn(), x, y)
    columns = [targets.marginal(bnn(1), x, column[:, None]) for column in y.T]

    def by_column(position):
        return jnp.sum(jnp.stack([column.potential(position) for column in columns]))

    return difference(*at_draws(rng_key, whole, whole.potential, by_column))


@identity("readout", "density of φ at one readout against another", "H-F4")
def _readout(rng_key, *problem):
    """By change of variables through T, the density of φ relative to N(0, I) (Hron et al. 2022, Figure 4)."""
    bnn, x, y = network(rng_key, *problem)
    target, standard = (targets.repriorised(bnn(), x, y), targets.standard(bnn(), x, y))

    def surprise(position):
        """Without the Jacobian of T, which is linear in the readout."""
        squares = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(position))
        return -standard.logdensity(target.to_parameters(position)) - squares / 2

    other = target.draw_prior(jax.random.fold_in(rng_key, 1)).readout.astype(jnp.float64)
    u, moved = at_draws(rng_key, target, surprise, lambda phi: surprise(phi._replace(readout=other)))
    return difference(u, moved)


def difference(a, b):
    """The largest, in units of how much the first varies."""
    return np.abs(a - b).max() / np.ptp(a)


@identity("stable step", "gain measured against formula", "H-AD")
def _stable_step(rng_key, *problem):
    """The largest stable leapfrog step in φ over that in θ, against √(1 + ‖XᵀX‖/σ²) (Appendix D)."""
    target = _linear(rng_key, *problem)
    measured = _largest_stable_step(target.repriorised()) / _largest_stable_step(target)
    predicted = np.sqrt(1 + np.linalg.norm(target.x, 2) ** 2 / target.noise_std**2)
    return abs(measured / predicted - 1)


def _largest_stable_step(target) -> float:
    """Found by bisection, without the formula for its limit.

    A step is a linear map of position and momentum, and stable if no eigenvalue leaves the unit circle.
    """
    low, high = 0.0, 4.0  # at U = 0 the limit is 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if np.abs(np.linalg.eigvals(np.asarray(_one_step(target, middle)))).max() < 1 + 1e-6:
            low = middle
        else:
            high = middle
    return low


@jax.jit
def _one_step(target, step_size):
    zero = jnp.zeros(target.template.shape)
    flat, unravel = ravel_pytree((zero, zero))

    def move(flat):
        u, m = unravel(flat)
        state, m, _ = leapfrog(target.potential, step_size, 1)(hmc(1.0, 1).init(target, u), m)
        return ravel_pytree((state.position, m))[0]

    return jax.jacfwd(move)(flat)


@identity("minibatches", "sampled gradients and sums of minibatches against the ELBO's", "V-A1")
def _bayes_by_backprop(rng_key, n, width, d_out, noise_std):
    """Huix et al. 2022, Algorithm 1."""
    _, x, y = network(rng_key, n, width, d_out, noise_std)
    net = vi.network(vi.TwoLayer(3, width, d_out, rngs=nnx.Rngs(0)), x, jax.random.key(0))
    q = vi.mean_field(jax.tree.map(lambda leaf: leaf.astype(jnp.float64), net.weights), noise_std)

    @jax.jit
    def objective(rows, share):
        log_likelihood = net.log_likelihood(x[rows], y[rows], vi.square)
        return vi.elbo(rng_key, q, log_likelihood, temperature=share, num_samples=2).value

    whole = objective(np.arange(n), 1.0)
    batches = np.array_split(np.random.default_rng(0).permutation(n), min(n, 4))
    kinds = [np.asarray(vi.kl_weights(len(batches), kind)) for kind in ("uniform", "geometric")]
    shares = [float(abs(sum(map(objective, batches, weights)) / whole - 1)) for weights in kinds]
    gradients = jax.jit(lambda q: _gradients(rng_key, q, net.log_likelihood(x, y, vi.square)))
    return max(*shares, *map(float, gradients(q)))


def _gradients(rng_key, q: vi.MeanField, log_likelihood: Callable):
    """How far (84) and the corrected (85) are from the gradient of log L, and on average of the KL."""
    draw = q.draw(jax.random.split(rng_key, 1)[0])  # the one that the package makes of this key
    z = jax.tree.map(lambda w, mean, std: (w - mean) / std, draw, q.mean, q.std)
    of_likelihood = _step(q, z, lambda w, q: log_likelihood(w))
    derivative = jax.grad(lambda q: vi.expectation(rng_key, q, log_likelihood))(q)

    v = 0.2  # the prior variance

    def log_ratio(w, q):
        """log q(w) − log P₀(w), up to a constant."""

        def term(w, mean, std):
            return jnp.sum(w**2 / v - ((w - mean) / std) ** 2 - 2 * jnp.log(std)) / 2

        return sum(jax.tree.leaves(jax.tree.map(term, w, q.mean, q.std)))

    # Three nodes of Gauss and Hermite: of each weight the step is a polynomial of degree 2 in its own z.
    low, middle, high = (
        _step(q, jax.tree.map(lambda leaf, node=node: jnp.full_like(leaf, node), q.mean), log_ratio)
        for node in (-math.sqrt(3), 0.0, math.sqrt(3))
    )
    mean = jax.tree.map(lambda a, b, c: a / 6 + 2 * b / 3 + c / 6, low, middle, high)
    of_kl = jax.grad(vi.kl_divergence)(q, v)
    return _relative(of_likelihood, derivative), _relative(mean, of_kl)


def _step(q: vi.MeanField, z, g: Callable) -> vi.MeanField:
    """Δμ, (84) of Huix et al. 2022, and Δρ, (85) with −ρ for ρ, at w = μ + σz, σ = log(1 + exp ρ)."""
    w = jax.tree.map(lambda mean, std, z: mean + std * z, q.mean, q.std, z)
    by_w, own = jax.grad(g, (0, 1))(w, q)
    rho = jax.tree.map(lambda dw, z, rho, own: dw * z / (1 + jnp.exp(-rho)) + own, by_w, z, q.rho, own.rho)
    return vi.MeanField(jax.tree.map(jnp.add, by_w, own.mean), rho)


def _relative(found: vi.MeanField, right: vi.MeanField):
    a, b = (ravel_pytree(tree)[0] for tree in (found, right))
    return jnp.abs(a - b).max() / jnp.abs(b).max()
