"""Whitening against the change of variables done by brute force."""

import math
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy import stats

import widebnn as wb
from widebnn.models import _whitened_dense
from widebnn.models._whitened_dense import WhitenedDense

from .networks import embedding, log_evidence, problem

WIDTHS = (6, 5)


def assert_orthogonal_change_of_variables(bias_std=0.5, root=_whitened_dense.root):
    """U(V_1, QV_2) is minus log p(y | V_1, V_2), and (V_1, V_2) ↦ (V_1, OV_2) has the Jacobian 1.

    O is orthogonal, Q its first n rows: A and further rows of numbers, solved by their Cholesky factor.
    """
    tiny = problem(widths=WIDTHS, n=4, bias_std=bias_std)
    target = wb.targets.whitened(wb.targets.marginal(tiny.bnn, tiny.x, tiny.y))
    rest = jnp.asarray(np.random.default_rng(1).normal(size=(3, 7)))
    theta = tiny.draw_parameters().inner
    first = theta["layers"][0]

    def orthogonal(first):
        """O, (7, 7), by the dense mathematics of `networks`."""
        psi = embedding([first["kernel"]], [first["bias"]], tiny.x, "gelu", 0.5)
        a = jnp.concatenate([jnp.sqrt(2) * psi[:, :-1], psi[:, -1:]], axis=1)
        rows = jnp.concatenate([a, rest])
        return jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(rows @ rows.T), rows, lower=True)

    flat, unravel = ravel_pytree(theta)

    def whole(flat):
        inner = unravel(flat)["layers"]
        v = jnp.concatenate([inner[1]["kernel"], inner[1]["bias"][None]])
        return jnp.concatenate([ravel_pytree(inner[0])[0], (orthogonal(inner[0]) @ v).ravel()])

    log_det = jnp.linalg.slogdet(jax.jacfwd(whole)(flat))[1]
    assert jnp.allclose(log_det, 0, atol=1e-9)
    assert jnp.allclose(whole(flat) @ whole(flat), flat @ flat), "the prior is not kept"
    v = jnp.concatenate([theta["layers"][1]["kernel"], theta["layers"][1]["bias"][None]])
    rotated = target.weights.basis.T @ first["kernel"]
    found = []
    for seed in range(3):
        change = 0.5 * jax.random.normal(jax.random.key(seed), v.shape)
        inner = {"layers": {0: first, 1: {"kernel": (v + change)[:-1], "bias": (v + change)[-1]}}}
        epsilon = (orthogonal(first) @ (v + change))[:4]
        position = {"layers": {0: {"kernel": rotated, "bias": first["bias"]}, 1: {"epsilon": epsilon}}}
        with mock.patch.object(_whitened_dense, "root", root):
            found.append((-target.potential(position), log_evidence(tiny, inner)))
    found, exact = np.array(found).T
    assert np.ptp(exact) > 0.1, "the positions do not differ"
    error = (found - found[0]) - (exact - exact[0])
    assert np.allclose(error, 0, atol=1e-8), f"{found} where {exact} is right"


def assert_new_inputs_see_the_prior_of_the_complement(restore=WhitenedDense.restore):
    """f² at new inputs given ε: N(A*Qᵀε, |A* − A*QᵀQ|²), by the dense formula, over 20,000 keys."""
    tiny = problem(widths=(6, 3), activation="erf", n=4)
    target = wb.targets.whitened(wb.targets.marginal(tiny.bnn, tiny.x, tiny.y))
    x = jnp.concatenate([4 * tiny.x[:1], -3 * tiny.x[1:2]])  # within the span: h¹ is known
    position = target.draw_prior(jax.random.key(0))
    inner = target.inner(position)["layers"]
    keys = jax.random.split(jax.random.key(1), 20_000)
    with mock.patch.object(WhitenedDense, "restore", restore):
        psi = jax.jit(jax.vmap(lambda key: target.embedding_at(x)(position, key)))(keys)
    f = np.asarray(jax.scipy.special.erfinv(psi[:, :, :3] * math.sqrt(3)))

    def design(x):
        r = x @ target.weights.basis
        f1 = math.sqrt(2 / 3) * r @ inner[0]["kernel"] + 0.5 * inner[0]["bias"][None]
        h = jax.scipy.special.erf(f1)
        return np.concatenate([math.sqrt(2 / 6) * h, np.full((len(h), 1), 0.5)], axis=1)

    a, new = design(tiny.x), design(x)
    q = np.linalg.solve(np.linalg.cholesky(a @ a.T), a)
    mean = new @ q.T @ np.asarray(inner[1]["epsilon"])
    rest = new - new @ q.T @ q
    for i in range(len(x)):
        for unit in range(3):
            law = stats.norm(mean[i, unit], np.linalg.norm(rest[i]))
            assert stats.kstest(f[:, i, unit], law.cdf).pvalue > 1e-6, "the law of new inputs is another"
    exact = rest @ rest.T
    scale = np.sqrt(2 * np.outer(np.diag(exact), np.diag(exact)) / len(keys))
    assert np.all(np.abs(np.cov(f[:, :, 0].T) - exact) < 5 * scale), "new inputs do not share a draw"


def assert_batches_share_a_draw(target, x_new):
    """One key, one network: row by row as all at once."""
    position, key = target.draw_prior(jax.random.key(0)), jax.random.key(1)
    whole = target.output(x_new)(position, key)
    parts = [target.output(x_new[i : i + 1])(position, key) for i in range(len(x_new))]
    assert jnp.allclose(whole, jnp.concatenate(parts), atol=1e-9), "batches see different networks"
    other = target.output(x_new)(position, jax.random.key(2))
    assert not jnp.allclose(whole, other, atol=1e-3), "the key has no say"
