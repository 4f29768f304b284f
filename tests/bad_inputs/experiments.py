"""Bad inputs of experiments."""

from pathlib import Path

import numpy as np
from widebnn.study import Rows

import widebnn as wb
from widebnn import experiments

from .rows import X, Y, kw, refused

CASE = experiments.architectures.scales["smoke"].cases[0]
RECURRENT = (CASE._replace(network=CASE.network._replace(architecture="recurrent")),)


ROWS = [
    *refused("experiments.find", ("P-F99", "name…'P-F1'…'suprema'…'P-F99'")),
    *refused(
        "experiments.run",
        ("V-T2", "huge", "scale…'laptop', 'paper', 'smoke'…'huge'"),
        ("V-T2", "smoke", Path(__file__).parent, "results…bad_inputs holds…none of these"),
        ("V-T2", "smoke", __file__, NotADirectoryError, "results…is a file"),
    ),
    *refused(
        "experiments.ResNet",
        (kw(norms=("batch", "layer")), "norms…'none'…'layer'"),
    ),
    *refused(
        "experiments.shipped",
        ("P-F1", "paper", FileNotFoundError, "results…over_width_paper…over_width_laptop"),
    ),
    *refused(
        "experiments.report",
        ("P-F99", "row…'P-F1'…'P-F99'"),
        ("P-F1", experiments.shipped("unitwise"), "results…over_width…'unitwise'"),
    ),
    *(
        row
        for name, one in experiments.EXPERIMENTS.items()
        for row in refused(
            f"experiments.{name}", (lambda one=one: one("smoke"), TypeError, "config…instance of…'smoke'")
        )
    ),
    *refused(
        "experiments.ledger",
        ("nowhere", FileNotFoundError, "results…no 'nowhere'"),
        (__file__, NotADirectoryError, "results…is a file"),
    ),
    # Of configurations the checks of one field, which are tested with their class, and of fields together.
    *refused(
        "experiments.OverWidth",
        (kw(samplers=("gibbs",), num_steps=(1,)), "sampler…'pCN'…'gibbs'"),
        (kw(num_steps=(1,)), "num_steps…one entry for each…(1,)"),
    ),
    *refused(
        "experiments.Convergence",
        (kw(num_steps=(1,)), "num_steps…one entry for each…(1,)"),
        (kw(num_steps=(1,) * 5), "num_steps…at least 800…(1, 1, 1, 1, 1)"),
    ),
    *refused(
        "experiments.convergence_summary",
        (np.zeros((2, 7)), "draws…8 draws…(2, 7)"),
        (np.zeros((1, 8)), "draws…two chains…(1, 8"),
    ),
    *refused(
        "experiments.trace_summary",
        (np.zeros((2, 8)), "draws…(chain, draw, feature)…(2, 8)"),
        (np.zeros((2, 8, 2)), kw(thin=0), "thin…at least 1…0"),
    ),
    *refused("experiments.OverReg", (kw(num_steps=3), "num_steps…at least 2 · thin…3")),
    *refused("experiments.IteratedMaps", (kw(rates=(0.0,)), "rate…above 0…0.0")),
    *refused("experiments.Approximations", (kw(num_classes=10), "num_classes…2 to 9…10")),
    *refused(
        "experiments.LangevinGain",
        (kw(least_acceptance=0.99), "least_acceptance…below target_acceptance…0.99 and 0.985"),
    ),
    *refused(
        "experiments.Architectures",
        (kw(cases=RECURRENT), "architecture…'residual'…'recurrent'"),
        (kw(cases=(CASE,), thin=3), "thin…a multiple of num_kicks=4…3"),
    ),
    *refused("experiments.StepCost", (kw(networks=()), "networks…at least one entry…()")),
    *refused("experiments.GradientGain", (kw(num_tuned_steps=79), "num_tuned_steps…at least 80…79")),
    *refused("experiments.Theorems", (kw(num_chains=1), "num_chains…at least 2…1")),
    *refused("experiments.Identities", (kw(sizes=((8, 0, 1),)), "sizes…at least 1…0")),
    *refused("experiments.Counterexample", (kw(num_draws=1), "num_draws…at least 2…1")),
    *refused("experiments.Algorithms", (kw(cases=("MALA",)), "cases…'pCNL, U = 0'…'MALA'")),
    *refused("experiments.Whitening", (kw(widths=(32, 64)), "widths…at least 33…32")),
    *refused("experiments.Rivals", (kw(contenders=("NUTS",)), "contenders…'BlackJAX NUTS'…'NUTS'")),
    *refused("experiments.Unitwise", (kw(num_sweeps=7), "num_sweeps…at least 8…7")),
    *refused("experiments.Efficiency", (kw(samplers=("pCN", "gibbs")), "samplers…'unit-wise'…'gibbs'")),
    *refused("experiments.SoftmaxMaps", (kw(maps=("probit",)), "maps…'Laplace'…'probit'")),
    *refused("experiments.Landscape", (kw(momentum=1.0), "momentum…[0, 1)…1.0")),
    *refused(
        "experiments.PublishedPCNL",
        (kw(leapfrog_steps=(10,)), "leapfrog_steps…one entry for each of widths…(10,)"),
    ),
    *refused(
        "experiments.published_potential",
        (wb.targets.linear(X, Y, 0.1), TypeError, "target…repriorised…Linear"),
    ),
    *refused(
        "experiments.published_marginal", (wb.targets.linear(X, Y, 0.1), TypeError, "target…network…Linear")
    ),
    *refused(
        "experiments.Tempering",
        (kw(dataset="digits"), "outside…'digits'…'fashion_mnist'"),
        (kw(num_train=100, batch_size=101), "batch_size…1 to 100…101"),
    ),
    *refused("experiments.TemperedFits", (kw(dataset="imagenet"), "dataset…'mnist'…'imagenet'")),
    *refused(
        "experiments.tempering",
        (
            lambda: next(
                experiments.tempering(
                    experiments.Tempering(dataset="digits", outside="digits", num_train=1_000)
                )
            ),
            "num_train…at most…1000",
        ),
    ),
    *refused("experiments.curve", (0, "num_train…at least 1…0")),
    *refused("experiments.maximise", (3.0, np.zeros(2), TypeError, "function…pytree…3.0")),
    *refused(
        "experiments.ood_split",
        ("imagenet", "svhn", 10, 10, "dataset…'mnist'…'imagenet'"),
        ("mnist", "svhn", 10, 10, "outside…'fashion_mnist'…'svhn'"),
        ("digits", "digits", 10, 0, "num_test…at least 1…0"),
    ),
    *refused(
        "experiments.classification_summary",
        (np.full((2, 2), 0.5), np.zeros(2, int), np.full((2, 3), 1 / 3), "outside…2 classes…3"),
    ),
    *refused("experiments.Collapse", (kw(losses=("hinge",)), "losses…'square'…'hinge'")),
    *refused("experiments.ElboRatio", (kw(num_train=(10,)), "num_train…one entry for each…(10,)")),
    *refused("experiments.MeanFieldGap", (kw(num_samples=1), "num_samples…at least 2…1")),
    *refused("experiments.Suprema", (kw(max_std=0.01), "max_std…above min_std=0.01")),
    *refused("experiments.Concentration", (kw(deltas=(1.5,)), "deltas…(0, 1)…1.5")),
    *refused(
        "experiments.softmax_maps", (1, "num_classes…at least 2…1"), (2.0, TypeError, "num_classes…2.0")
    ),
    *refused("experiments.series", (Rows(), "pCN", 0.1, "rows…'pCN'…0.1")),
]
