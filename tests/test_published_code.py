"""What the published repositories compute, written down anew, against the package on one small cell.

google/wide_bnn_sampling (commit c8e24b3): pCN is `gauss_mh`, whose `mcmc_beta` is β², and LMC is `hmc` with
one step, both on the density of a flat φ with the readout mapped through a factor of size d_L + 1; for their
proposals and acceptance see `exact/laws.py` and `samplers/test_langevin.py`.
lucia-pezzetti/Function-Space-MCMC-for-Wide-BNNs (b6400a7) has the same two with β in place of β².
THuix/bnn_mfvi (817324a): the loss of a minibatch, whose KL term is one draw of log q − log P₀, and whose
temperature has the number of weights where the paper has that of neurons.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import norm

import widebnn as wb
from benchmarks.paper_pcn import log_density as paper_density
from widebnn import vi

N, D_IN, WIDTH, D_OUT, SIGMA = 6, 3, 8, 2, 0.3
X, Y = (jnp.asarray(np.random.default_rng(i).normal(size=(N, d))) for i, d in enumerate((D_IN, D_OUT)))
ENDS = np.cumsum([D_IN * WIDTH, WIDTH, WIDTH * D_OUT, D_OUT])


def log_density(phi):
    """log p(φ | D) up to a constant: prior, likelihood and Jacobian, as the published code adds them."""
    kernel, bias, readout, readout_bias = jnp.split(phi, ENDS[:-1])
    f = jnp.sqrt(2.0) * X @ kernel.reshape(D_IN, WIDTH) / D_IN**0.5 + 0.1 * bias[None, :]
    h = jax.nn.gelu(f, approximate=False) / WIDTH**0.5
    psi = jnp.concatenate([h, jnp.full((N, 1), 0.1)], axis=1)
    factor = jnp.linalg.cholesky(psi.T @ psi + SIGMA**2 * jnp.eye(WIDTH + 1))
    mapped = jnp.concatenate([readout.reshape(WIDTH, D_OUT), readout_bias[None, :]])
    mapped = SIGMA * mapped + jax.scipy.linalg.solve_triangular(factor, psi.T @ Y, lower=True)
    mapped = jax.scipy.linalg.solve_triangular(factor, mapped, lower=True, trans="T")
    log_prior = -(jnp.sum(kernel**2) + jnp.sum(bias**2) + jnp.sum(mapped**2)) / 2
    log_likelihood = -jnp.sum((Y - psi @ mapped) ** 2) / SIGMA**2 / 2
    return log_prior + log_likelihood - D_OUT * jnp.sum(jnp.log(jnp.diag(factor)))


def test_the_published_density_is_ours():
    """Up to a constant, over draws of φ from the prior; and so is that of the peer in benchmarks."""
    features = wb.models.FCN(D_IN, WIDTH, rngs=nnx.Rngs(0))
    target = wb.targets.repriorised(wb.BNN(features, D_OUT, SIGMA), X, Y)
    peer = paper_density(target.bnn, target.template)

    @jax.jit
    @jax.vmap
    def both(key):
        phi = target.draw_prior(key)
        leaves = sorted(jax.tree.leaves(phi.inner), key=lambda leaf: -leaf.ndim)
        at = jnp.concatenate([*(leaf.ravel() for leaf in leaves), phi.readout.ravel()])
        theirs = -log_density(at) - at @ at / 2
        return target.potential(phi), theirs, -peer(ravel_pytree(phi)[0], X, Y) - at @ at / 2

    ours, theirs, timed = map(np.asarray, both(jax.random.split(jax.random.key(0), 8)))
    assert np.ptp(ours) > 1
    assert max(np.ptp(ours - theirs), np.ptp(ours - timed)) < 1e-9


def test_the_published_loss_is_the_tempered_elbo():
    """Over all minibatches, in nats: the loss times p / (number of batches), its KL term on average."""
    alpha, num_batches, prior_std = 0.5, 2, 0.2
    labels = jnp.array([0, 1, 1, 0, 1, 0])
    module = vi.TwoLayer(D_IN, WIDTH, D_OUT, rngs=nnx.Rngs(0))
    network = vi.network(module, X, jax.random.key(0))
    q = vi.mean_field(network.weights, 0.1)
    num_weights = WIDTH * (D_IN + D_OUT)
    temperature = alpha * N / num_weights

    @jax.jit
    @jax.vmap
    def loss(key):
        w = q.draw(key)
        hidden, readout = w["hidden"]["kernel"], w["readout"]["kernel"]
        outputs = jax.nn.relu(X @ hidden) @ readout / WIDTH
        nll = -jnp.take_along_axis(jax.nn.log_softmax(outputs), labels[:, None], axis=1)[:, 0]
        of_kl = jax.tree.map(
            lambda w, m, s: jnp.sum(norm.logpdf(w, m, s) - norm.logpdf(w, 0, prior_std)), w, q.mean, q.std
        )
        kl = sum(jax.tree.leaves(of_kl))
        losses = [
            (jnp.sum(batch) / temperature + kl / num_batches) * alpha * num_batches / num_weights
            for batch in jnp.split(nll, num_batches)
        ]
        return sum(losses) * N / num_batches

    losses = np.asarray(loss(jax.random.split(jax.random.key(3), 20_000)))
    error = losses.std() / len(losses) ** 0.5
    log_likelihood = network.log_likelihood(X, labels, vi.cross_entropy)
    options = {"temperature": temperature, "prior_variance": prior_std**2, "num_samples": 20_000}
    ours = vi.elbo(jax.random.key(4), q, log_likelihood, **options)
    assert error < 0.01 * abs(losses.mean())
    assert abs(float(ours.value) + losses.mean()) < 8 * error
    by_neurons = vi.temperature(alpha, N, WIDTH)
    assert by_neurons == pytest.approx(temperature * (D_IN + D_OUT))
