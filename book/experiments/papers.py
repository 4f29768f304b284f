"""What the papers state of their experiments, and why a configuration named "paper" differs where it does."""

from typing import Any, NamedTuple

__all__ = ["OWN", "STATED", "Stated"]


class Stated(NamedTuple):
    """A setting of a paper, under the name that a field of the configuration has.

    Attributes
    ----------
    value
        As the paper has it.
    where
        A section or figure of it.
    why_not
        Why the configuration has another value; empty where it has this one.
    """

    value: Any
    where: str
    why_not: str = ""


_HRON = {
    "dataset": Stated("cifar10", "Hron et al., §4"),
    "noise_std": Stated(0.1, "Hron et al., §4"),
    "depth": Stated(3, "Hron et al., §4.2.1"),
    "num_steps": Stated(3_000_000, "Hron et al., §4.2.1 and 4.2.2"),
    "least_acceptance": Stated(0.98, "Hron et al., §4"),
    "num_projections": Stated(100, "Hron et al., §4.1.2"),
}
_OF_WIDTH = _HRON | {
    "burn_in": Stated(20_000, "Hron et al., §4.2.1"),
    "thin": Stated(25, "Hron et al., §4.2.1"),
    "num_test": Stated(5_000, "Hron et al., §4.2.1"),
    "num_chains": Stated(1, "Hron et al., §4.2.1", "several chains tell the error of each number"),
}
_OF_STEPS = _HRON | {"thin": Stated(100, "Hron et al., §4.2.2")}
_PEZZETTI = {
    "dataset": Stated("cifar10", "Pezzetti et al. 2025, §4"),
    "num_train": Stated(256, "Pezzetti et al. 2025, §4.2"),
    "noise_std": Stated(0.1, "Pezzetti et al. 2024, §4"),
    "thin": Stated(25, "Pezzetti et al. 2025, §4.2"),
}
_OVER_WIDTH = _PEZZETTI | {
    "widths": Stated(
        (512, 1_024, 2_048, 4_096, 8_192), "Pezzetti et al. 2025, §4.2", "Figure 1 of 2024 begins at 128"
    ),
    "step_sizes": Stated((0.2, 0.1, 0.01), "Pezzetti et al. 2024, Figure 2"),
    "num_steps": Stated(
        (1_000_000,) * 3,
        "Pezzetti et al. 2025, §4.2",
        "a second LMC run too, and in Figure 1 random walk, which they argue against",
    ),
    "burn_in": Stated(
        20_000, "Pezzetti et al. 2025, §4.2", "500 proposals of tuned HMC come nearer to the posterior"
    ),
}
_HUIX = {"num_draws": Stated(50, "Huix et al., §4: m"), "num_repeats": Stated(5, "Huix et al., §4")}

STATED: dict[str, dict[str, Stated]] = {
    "gain_over_width": _OF_WIDTH
    | {
        "widths": Stated((32, 64, 128, 384, 512, 768, 1_024), "Hron et al., §4.2.1"),
        "num_train": Stated((256,), "Hron et al., §4.2.1"),
    },
    "gain_over_data": _OF_WIDTH | {"widths": Stated((512,), "Hron et al., Figure 7")},
    "gain_dense": _OF_STEPS
    | {
        "widths": Stated((1_024,), "Hron et al., Figure 8"),
        "num_train": Stated((1_024, 10_240, 40_960), "Hron et al., Figure 8"),
        "reg_grows": Stated(False, "Hron et al., §4.2.2: λ = σ²"),
    },
    "gain_resnet": {name: one for name, one in _OF_STEPS.items() if name != "depth"}
    | {
        "widths": Stated((512,), "Hron et al., Figure 8"),
        "num_train": Stated((1_024, 10_240), "Hron et al., Figure 8"),
        "reg_grows": Stated(True, "Hron et al., §4.2.2: λ = nσ²"),
    },
    "over_reg": {
        "regs": Stated(
            (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0),
            "Hron et al., Figure 10",
            "λ = 100 shows where T is the identity",
        ),
        "dataset": Stated("cifar10", "Hron et al., Figure 10"),
    },
    "softmax_gain": {
        "dataset": Stated("cifar10", "Hron et al., Figure 11: as Figure 7"),
        "num_train": Stated(256, "Hron et al., Figure 11: as Figure 7"),
        "depth": Stated(3, "Hron et al., Figure 11: as Figure 7"),
        "widths": Stated((32, 64, 128, 384, 512, 768, 1_024), "Hron et al., §4.2.1"),
        "noise_std": Stated(0.1, "Hron et al., §4"),
        "num_steps": Stated(100_000, "Hron et al., Figure 11"),
        "target_acceptance": Stated(0.9, "Hron et al., Figure 11"),
    },
    "over_width": _OVER_WIDTH,
    "mixing_over_width": _OVER_WIDTH,
    "gradient_gain": _PEZZETTI
    | {
        "width": Stated(8_192, "Pezzetti et al. 2025, §4.2"),
        "step_size": Stated(0.2, "Pezzetti et al. 2024, Figure 2"),
        "num_steps": Stated(1_000_000, "Pezzetti et al. 2025, §4.2"),
    },
    "convergence": _PEZZETTI
    | {
        "widths": Stated((512, 1_024, 2_048, 4_096), "Pezzetti et al. 2024, Figure 3"),
        "step_size": Stated(0.1, "Pezzetti et al. 2024, Appendix B.1"),
        "num_steps": Stated(
            (20_000,) * 3,
            "Pezzetti et al. 2025, Appendix B.1",
            "LMC runs with two dampings, and pCN at U = 0 too",
        ),
        "num_checkpoints": Stated(4, "Pezzetti et al. 2025, Appendix B.1"),
        "num_chains": Stated(3, "Pezzetti et al. 2025, Appendix B.1"),
    },
    "tempering": _HUIX
    | {
        "dataset": Stated("mnist", "Huix et al., §4"),
        "prior_variance": Stated(0.2, "Huix et al., §4; Appendix C.3 states a deviation of 0.2"),
        "local": Stated(False, "Huix et al., Appendix D"),
    },
    "resnet": _HUIX
    | {
        "dataset": Stated("cifar10", "Huix et al., §4"),
        "outside": Stated("svhn", "Huix et al., Appendix C.4"),
        "num_test": Stated(5_000, "Huix et al., Appendix C.4"),
        "augment": Stated(True, "Huix et al., §4"),
        "norms": Stated(
            ("batch",), "Huix et al., §4", "scaled convolutions without a normaliser are compared"
        ),
    },
    "elbo_ratio": {
        "datasets": Stated(("mnist", "boston"), "Huix et al., Appendix C.1"),
        "initial_std": Stated(0.001, "Huix et al., Appendix C.1"),
        "prior_variances": Stated(
            (0.2,), "Huix et al., Appendix C.1", "0.04 is that of the published code, compared beside it"
        ),
    },
}
"""By experiment and field."""

OWN = {
    "no paper has it": "unitwise whitening rivals efficiency published_pcnl approximations architectures",
    "a remark without settings": "iterated_maps laplace_map",
    "theorems and algorithms, for which no sizes are stated": "theorems identities counterexample algorithms "
    "collapse mean_field_gap suprema concentration",
    "figures that state no sizes beside n = 128 and width 128, or none": "landscape step_cost",
}
"""Experiments of which the papers state no settings, by the reason; "paper" is what a GPU makes of them."""
