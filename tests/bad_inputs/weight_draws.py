"""Bad inputs of draws that are put away."""

import numpy as np

import widebnn as wb

from .rows import KEY, X_NAN, X, bnn, refused

THETA = np.ones((2, 3, 3 * 4 + 4 + 5 * 2))
"""Draws of the weights of `bnn()`."""
STD = {"noise_std": np.full((2, 3), 0.1)}


def made(**options):
    return wb.WeightDraws(**({"network": bnn(), "weights": THETA, "input_shape": (3,)} | options))


ROWS = [
    *refused(
        "collectors.weights",
        (wb.targets.linear(X, X, 0.1), X, TypeError, "target…to_parameters…Linear"),
    ),
    *refused(
        "weight_draws.WeightDraws",
        *[
            (lambda v=v: made(weights=v), *wanted)
            for v, *wanted in [
                (THETA[0], "weights…(chain, draw, weight)…(3, 26)"),
                (THETA[:, :0], "weights…no axis empty…(2, 0, 26)"),
                (THETA[..., 1:], "weights…(chain, draw, 26)…(3,)…(2, 3, 25)…before the rotation"),
                (THETA * np.nan, "weights…finite"),
                (THETA.astype(int), TypeError, "weights…float32 or float64…int64"),
                ("theta", TypeError, "weights…float32…<U5"),
            ]
        ],
        (lambda: made(network=3), TypeError, "network…widebnn.BNN…int"),
        (lambda: made(network=lambda noise_std: 3, scales=STD), TypeError, "network…widebnn.BNN…3"),
        (lambda: made(input_shape=3), TypeError, "input_shape…x.shape[1:]…3"),
        (lambda: made(input_shape=X), TypeError, "input_shape…x.shape[1:]"),
        (lambda: made(input_shape=()), TypeError, "input_shape…()"),
        (lambda: made(input_shape=(0,)), "input_shape…at least 1…0"),
        (lambda: made(input_shape=(2,)), "input_shape (2,) does not fit the network"),
        (
            lambda: made(scales={"noise_std": np.ones((2, 2))}),
            "scales['noise_std']…(2, 3)…(2, 2)",
        ),
        (lambda: made(scales={"tau": STD["noise_std"]}), "scales of a BNN…noise_std…got tau"),
        (lambda: made(scales={"noise_std": -STD["noise_std"]}), "noise_std…above 0…-0.1"),
        (lambda: made().outputs(X[:, :2]), "x…(m, 3,)…(4, 2)"),
        (lambda: made().outputs(X_NAN), "x…finite"),
        (lambda: made().outputs(X, 0), "batch_size…at least 1…0"),
        (lambda: made().mean_and_std(X[:0]), "x…m ≥ 1…(0, 3)"),
        (lambda: made().predictive_draws(KEY, X, 2.5), TypeError, "batch_size…integer…2.5"),
        (lambda: made().extended(THETA[:1]), "weights…2 chains…got 1 chains"),
        (lambda: made().extended(THETA[..., 1:]), "weights…26…25"),
        (lambda: made().extended(THETA, STD), "weights…scales []…['noise_std']"),
        (lambda: wb.WeightDraws.load("absent"), FileNotFoundError, "folder…posterior.json…absent"),
    ),
]
