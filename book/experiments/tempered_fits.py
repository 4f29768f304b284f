"""What the experiments on temperatures of the ELBO share: fits, their rows, and trends over τ."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Annotated, Any

import jax
import numpy as np
import optax
from book.experiments.configuration import Configuration, Count, Positive
from book.experiments.fields import Seed
from book.experiments.findings import Finding
from book.experiments.ood_split import NUM_BINS, PAIRS, InAndOut, classification_summary, ood_split, rounded
from book.experiments.repeats import degrees_of_freedom
from flax import nnx
from jaxtyping import Array, Float, Key
from widebnn import vi
from widebnn._check import at_least, non_negative, one_of
from widebnn.tables import Results, Row

__all__ = ["RULE_OF_CURVES", "RULE_OF_ENTROPIES", "TemperedFits", "curves", "entropies", "flat"]


class TemperedFits(Configuration):
    """How q is fitted at each temperature, and what its predictions are made with; η = τp/N.

    σ has a long way to go, in ρ, to the prior's deviation; a fit at a large τ that stops short shows the
    start and not the optimum.
    """

    dataset: Annotated[str, partial(one_of, PAIRS), "In distribution, as `ood_split` has it."] = "mnist"
    outside: Annotated[str, "Out of distribution, likewise."] = "fashion_mnist"
    num_train: Annotated[Count, "Observations, p."] = 60_000
    num_test: Annotated[int, partial(at_least, NUM_BINS), "To test on; as many lie outside."] = 10_000
    taus: Annotated[tuple[float, ...], non_negative, "τ."] = (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0)
    num_repeats: Annotated[Count, "Fits at each τ, each with randomness of its own."] = 5
    num_epochs: Annotated[Count, "Epochs of each fit."] = 100
    batch_size: Annotated[Count, "Observations per step."] = 128
    learning_rate: Annotated[Positive, "Of Adam at the start; it falls to 0 along a cosine."] = 1e-3
    initial_std: Annotated[Positive, "Where every σ starts."] = 1e-3
    num_draws: Annotated[Count, "m, draws of the weights per prediction."] = 50
    seed: Seed = 0

    def check(self):
        """`outside` goes with `dataset` and a batch is no larger than the data."""
        one_of(PAIRS[self.dataset], outside=self.outside)
        if self.batch_size > self.num_train:
            raise ValueError(f"batch_size must be 1 to {self.num_train}; got {self.batch_size}")

    @property
    def num_batches(self) -> int:
        """Minibatches of all fits, one after another."""
        return len(self.taus) * self.num_repeats * self._steps

    @property
    def _steps(self) -> int:
        return self.num_epochs * -(-self.num_train // self.batch_size)

    def images(self, *, colour: bool) -> InAndOut:
        """The images, flat or in colour, as `ood_split` has them."""
        return ood_split(self.dataset, self.outside, self.num_train, self.num_test, colour=colour)

    def fits(
        self, images: InAndOut, model: Callable[[nnx.Rngs], Any], width: int, **options: Any
    ) -> Iterator[tuple[Row, vi.Fit]]:
        """A row and the fit that it is of, for each τ and repeat, whose randomness is the same at every τ.

        `model` makes a network of N = `width`, and `options` go to `widebnn.vi.fit`.
        """
        for tau in self.taus:
            for repeat in range(self.num_repeats):
                rng_key = jax.random.fold_in(jax.random.key(self.seed), repeat)
                fit_key, predict_key = jax.random.split(rng_key)
                fitted = vi.fit(
                    fit_key,
                    model(nnx.Rngs(jax.random.fold_in(fit_key, 0))),
                    images.x_train,
                    images.labels_train,
                    vi.cross_entropy,
                    optax.adam(optax.cosine_decay_schedule(self.learning_rate, self._steps)),
                    num_epochs=self.num_epochs,
                    batch_size=self.batch_size,
                    temperature=vi.temperature(tau, len(images.x_train), width),
                    initial_std=self.initial_std,
                    progress=False,
                    **options,
                )
                yield ({"tau": tau, "repeat": repeat} | self._row(predict_key, fitted, images), fitted)

    def _row(self, rng_key: Key[Array, ""], fitted: vi.Fit, images: InAndOut) -> Row:
        """What a fit predicts, and where its weights are."""
        x = np.concatenate([images.x_test, images.x_outside])
        probabilities = vi.predict(rng_key, fitted, x, num_samples=self.num_draws)
        inside, outside = np.split(probabilities, [len(images.x_test)])
        means, stds = flat(fitted.posterior.mean), flat(fitted.posterior.std)
        return {
            "eta": rounded(float(fitted.elbo.temperature)),
            "log_likelihood": rounded(fitted.elbo.log_likelihood[-1] / len(images.x_train)),
            "kl": rounded(fitted.elbo.kl_divergence[-1] / means.size),
            **classification_summary(inside, images.labels_test, outside),
            "mean_norm": rounded(np.sqrt(np.mean(means**2))),
            "std": rounded(stds.mean()),
            "seconds": rounded(fitted.seconds),
        }


def flat(tree: Any) -> Float[np.ndarray, " weight"]:
    """All entries of a pytree, side by side."""
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


RULE_OF_CURVES = (
    "From the smallest to the largest τ accuracy falls and NLL rises; ECE is greater in between than at "
    "both ends; where it is greatest, accuracy exceeds confidence. Errors are those of repeats, judged by "
    "Student's t."
)


def curves(results: Results) -> Iterator[Finding]:
    """Accuracy, NLL and calibration over τ."""
    rows, degrees = results.rows, degrees_of_freedom(results)
    accuracy, nll, ece, confidence = (
        rows.over("tau", column) for column in ("accuracy", "nll", "ece", "confidence")
    )
    peak = max(range(len(ece)), key=lambda i: ece[i].value)
    under = accuracy[peak] - confidence[peak]
    falls = accuracy[-1] - accuracy[0]
    yield Finding("accuracy, largest τ less smallest", falls, below=0, degrees=degrees)
    for what, number in {
        "NLL, largest τ less smallest": nll[-1] - nll[0],
        "ECE, greatest less that at the smallest τ": ece[peak] - ece[0],
        "ECE, greatest less that at the largest τ": ece[peak] - ece[-1],
        "accuracy less confidence where ECE is greatest": under,
    }.items():
        yield Finding(what, number, above=0, degrees=degrees)


RULE_OF_ENTROPIES = (
    "At the smallest τ entropies are below a quarter of their largest value inside, and higher outside; "
    "they rise from each τ to the next, inside and outside, to nine tenths of it. Errors are those of "
    "repeats, judged by Student's t."
)


def entropies(results: Results) -> Iterator[Finding]:
    """Predictive entropies over τ, inside and outside."""
    rows, degrees = results.rows, degrees_of_freedom(results)
    inside, outside = (rows.over("tau", "entropy"), rows.over("tau", "entropy_outside"))
    most = rows[0]["entropy_histogram"]["edges"][-1]  # log of the number of classes
    lead, share = outside[0] - inside[0], inside[0] / most
    yield Finding("entropy, outside less inside, smallest τ", lead, above=0, degrees=degrees)
    yield Finding("entropy inside ÷ its largest value, smallest τ", share, below=0.25, degrees=degrees)
    for name, curve in (("inside", inside), ("outside", outside)):
        least = min((b - a for a, b in pairwise(curve)), key=lambda rise: rise.value)
        what = f"entropy {name}, from one τ to the next, at least"
        yield Finding(what, least, above=0, degrees=degrees)
        what = f"entropy {name} ÷ its largest value, largest τ"
        yield Finding(what, curve[-1] / most, above=0.9, degrees=degrees)
