"""Whitening against the change of variables done by brute force."""

import math
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy import special, stats

import widebnn as wb
from widebnn.models import _whitened_dense
from widebnn.models._whitened_dense import WhitenedDense

from .change_of_variables import assert_same_density
from .networks import embedding, log_evidence, problem

WIDTHS = (6, 5)


def assert_orthogonal_change_of_variables(bias_std=0.5, root=_whitened_dense.root):
    """U(V_1, QV_2) is minus log p(y | V_1, V_2), and (V_1, V_2) ↦ (V_1, OV_2) has the Jacobian 1.

    O is orthogonal, Q its first n rows: A and further rows of numbers, solved by their Cholesky factor.
    """
    tiny = problem(widths=WIDTHS, n=4, bias_std=bias_std)
    target = wb.targets.whitened(wb.targets.marginal(tiny.bnn, tiny.x, tiny.y))
    rest = jnp.asarray(np.random.default_rng(1).normal(size=(3, 7)))

    def orthogonal(first):
        """O, (7, 7), by the dense mathematics of `networks`."""
        psi = embedding([first["kernel"]], [first["bias"]], tiny.x, "gelu", 0.5)
        a = jnp.concatenate([jnp.sqrt(2) * psi[:, :-1], psi[:, -1:]], axis=1)
        rows = jnp.concatenate([a, rest])
        return jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(rows @ rows.T), rows, lower=True)

    @jax.jit
    def everything(theta, keys):
        flat, unravel = ravel_pytree(theta)

        def whole(flat):
            inner = unravel(flat)["layers"]
            v = jnp.concatenate([inner[1]["kernel"], inner[1]["bias"][None]])
            return jnp.concatenate([ravel_pytree(inner[0])[0], (orthogonal(inner[0]) @ v).ravel()])

        first = theta["layers"][0]
        v = jnp.concatenate([theta["layers"][1]["kernel"], theta["layers"][1]["bias"][None]])
        rotated = {"kernel": target.weights.basis.T @ first["kernel"], "bias": first["bias"]}

        def changed(key):
            moved = v + 0.5 * jax.random.normal(key, v.shape)
            inner = {"layers": {0: first, 1: {"kernel": moved[:-1], "bias": moved[-1]}}}
            position = {"layers": {0: rotated, 1: {"epsilon": (orthogonal(first) @ moved)[:4]}}}
            with mock.patch.object(_whitened_dense, "root", root):
                return -target.potential(position), log_evidence(tiny, inner)

        log_det = jnp.linalg.slogdet(jax.jacfwd(whole)(flat))[1]
        return log_det, flat @ flat, whole(flat) @ whole(flat), jax.vmap(changed)(keys)

    keys = jax.random.split(jax.random.key(0), 4)
    log_det, before, after, (found, exact) = everything(tiny.draw_parameters().inner, keys)
    assert np.allclose(log_det, 0, atol=1e-9)
    assert np.allclose(after, before), "the prior is not kept"
    assert_same_density(found, exact)


def assert_new_inputs_see_the_prior_of_the_complement(restore=WhitenedDense.restore):
    """f² at new inputs given ε: N(A*Qᵀε, |A* − A*QᵀQ|²), by the dense formula, over 20,000 keys."""
    tiny = problem(widths=(6, 3), activation="erf", n=4)
    target = wb.targets.whitened(wb.targets.marginal(tiny.bnn, tiny.x, tiny.y))
    x = np.concatenate([4 * tiny.x[:1], -3 * tiny.x[1:2]])  # within the span: h¹ is known
    position = target.draw_prior(jax.random.key(0))
    inner = jax.device_get(target.inner(position)["layers"])
    keys = jax.random.split(jax.random.key(1), 20_000)
    with mock.patch.object(WhitenedDense, "restore", restore):
        psi = jax.jit(jax.vmap(lambda key: wb.embedding(x)(target, position, key)))(keys)
    f = special.erfinv(np.asarray(psi)[:, :, :3] * math.sqrt(3))

    def design(x):
        r = np.asarray(x) @ target.weights.basis
        f1 = math.sqrt(2 / 3) * r @ inner[0]["kernel"] + 0.5 * inner[0]["bias"][None]
        h = special.erf(f1)
        return np.concatenate([math.sqrt(2 / 6) * h, np.full((len(h), 1), 0.5)], axis=1)

    a, new = design(tiny.x), design(x)
    q = np.linalg.solve(np.linalg.cholesky(a @ a.T), a)
    mean = new @ q.T @ inner[1]["epsilon"]
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

    @jax.jit
    def outputs(position, key, other):
        rows = [wb.output(x_new[i : i + 1])(target, position, key) for i in range(len(x_new))]
        whole = wb.output(x_new)
        return whole(target, position, key), jnp.concatenate(rows), whole(target, position, other)

    whole, parts, other = outputs(target.draw_prior(jax.random.key(0)), *map(jax.random.key, (1, 2)))
    assert np.allclose(whole, parts, atol=1e-9), "batches see different networks"
    assert not np.allclose(whole, other, atol=1e-3), "the key has no say"
