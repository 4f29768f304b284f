"""Inputs that are pytrees of arrays: the same posterior as of one array, in blocks, maps and predictions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import widebnn as wb

RNG = np.random.default_rng(0)
N, NODES = 7, 4
GRAPHS = {"nodes": RNG.normal(size=(N, NODES, 3)), "edges": RNG.integers(2, size=(N, NODES, NODES))}
Y = RNG.normal(size=N)
KERNELS = [jnp.zeros((3, 6)), jnp.zeros((6, 5))]


def of_graph(kernels, x):
    h, edges = x["nodes"], x["edges"].astype(x["nodes"].dtype)
    for kernel in kernels:
        mean = (h + edges @ h) / (1 + edges.sum(axis=2, keepdims=True))
        h = jnp.tanh(jnp.sqrt(2 / len(kernel)) * (mean @ kernel))
    return h.mean(axis=1)


def of_packed(kernels, x):
    return of_graph(kernels, {"nodes": x[..., :3], "edges": x[..., 3:]})


PACKED = np.concatenate([GRAPHS["nodes"], GRAPHS["edges"]], axis=2)


def bnn(apply=of_graph, parameters=KERNELS, out_features=1):
    return wb.BNN(wb.models.from_function(apply, parameters), out_features, noise_std=0.3)


TARGETS = {
    "marginal": lambda bnn, x: wb.targets.marginal(bnn, x, Y),
    "blocks": lambda bnn, x: wb.targets.marginal(bnn, x, Y, space="feature", block_size=3),
    "standard": lambda bnn, x: wb.targets.standard(bnn, x, Y, block_size=3),
    "repriorised": lambda bnn, x: wb.targets.repriorised(bnn, x, Y),
    "jacobian": lambda bnn, x: wb.targets.jacobian(bnn, x, Y),
    "student_t": lambda bnn, x: wb.targets.student_t(bnn, x, Y),
}


@pytest.mark.slow
def test_graphs_are_what_they_are_in_one_array():
    new = jax.tree.map(lambda leaf: leaf[:2], GRAPHS)

    @jax.jit
    def answers(targets, x):
        found = {}
        for name, target in targets.items():
            u = target.draw_prior(jax.random.key(0))
            value = target.potential(u)
            found[name] = value, wb.output(x)(target, u, jax.random.key(1))
            if name == "blocks":  # whose gradient passes over the arrays of x itself
                found["gradient"] = jax.grad(target.potential)(u)
        return found

    graphs = answers({name: make(bnn(), GRAPHS) for name, make in TARGETS.items()}, new)
    packed = answers({name: make(bnn(of_packed), PACKED) for name, make in TARGETS.items()}, PACKED[:2])
    for one, other in zip(jax.tree.leaves(graphs), jax.tree.leaves(packed), strict=True):
        assert_allclose(one, other, atol=1e-10)
    assert_allclose(graphs["blocks"][0], graphs["marginal"][0], rtol=1e-10)


def test_integers_stay_integers_and_are_copied():
    x = {"tokens": np.arange(N)[:, None], "is_last": np.arange(N) == N - 1}
    apply = lambda table, x: table[x["tokens"][:, 0]] * jnp.where(x["is_last"], 2.0, 1.0)[:, None]  # noqa: E731
    target = wb.targets.marginal(bnn(apply, jnp.zeros((N, 4))), x, Y)
    x["tokens"][:] = 0
    assert target.x["tokens"].dtype == jnp.int64 and target.x["is_last"].dtype == bool
    assert_array_equal(target.x["tokens"][:, 0], np.arange(N))
    assert target.num_observations == N
    with pytest.raises(ValueError, match="x must be like the observed inputs, .*int64.*; got .*float64"):
        target.prepared({"tokens": np.zeros((2, 1)), "is_last": np.zeros(2, bool)})


def test_features_that_see_other_inputs_are_refused():
    def mixed(kernels, x):
        return of_graph(kernels, x | {"nodes": x["nodes"] - x["nodes"].mean(axis=0, keepdims=True)})

    with pytest.raises(ValueError, match="those of an input change with the others of its batch"):
        wb.targets.marginal(bnn(mixed), GRAPHS, Y)


WRONG = {
    "unlike rows": (GRAPHS | {"edges": GRAPHS["edges"][:3]}, "x must hold arrays with one row for each"),
    "a number": (GRAPHS | {"edges": 1.0}, "x must hold arrays with one row for each"),
    "NaN": (GRAPHS | {"nodes": np.full((N, NODES, 3), np.nan)}, r"x\['nodes'\] must be finite"),
    "not there": ({"nodes": GRAPHS["nodes"]}, "does not fit the network"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_trees_are_told_by_the_names_of_their_arrays(case):
    x, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        wb.targets.marginal(bnn(), x, Y)
