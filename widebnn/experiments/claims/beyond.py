"""What reaches beyond the three papers."""

from widebnn.experiments.claims.measures import chosen, difference, mean, ratio, values
from widebnn.study import Claim, Finding, Measure, Results

__all__ = ["BEYOND"]


def _approximations(results: Results) -> list[Finding]:
    def distance(method: str) -> Measure:
        return mean(chosen(results.rows, method=method), "total_variation")

    near = distance("φ ~ N(0, I)")
    others = [
        name for name in values(results.rows, "method") if name.startswith("VI") or name == "deep ensemble"
    ]
    findings = [Finding("φ ~ N(0, I) ÷ a second chain", ratio(near, distance("MCMC again")), below=2)]
    findings += [
        Finding(f"{name} ÷ φ ~ N(0, I)", ratio(distance(name), near), above=1) for name in ("NNGP", *others)
    ]
    spread = mean(chosen(results.rows, method="deep ensemble"), "deviation_ratio")
    return [*findings, Finding("predictive deviation, deep ensemble ÷ MCMC", spread, below=1)]


def _published(results: Results) -> list[Finding]:
    findings = []
    for row in results.rows:
        chain, exact, published = (
            Measure(row[f"misfit_{name}"], row[f"misfit_{name}_error"])
            for name in ("chain", "exact", "published")
        )
        shift = Measure(row["potential_shift"], row["potential_shift_error"])
        std = Measure(row["train_std_ratio"], row["train_std_ratio_error"])
        off, on = difference(exact, chain), difference(chain, published)
        scale = abs(off.value)
        width = f"width {row['width']:,}"
        findings += [
            Finding(f"{width}: mean of Φ, posterior less published chain", off, above=0),
            Finding(
                f"{width}: mean of Φ, chain less its law, of that difference",
                ratio(on, Measure(scale)),
                above=-0.2,
                below=0.2,
            ),
            Finding(f"{width}: shift of U in its posterior deviations", shift, above=0),
            Finding(f"{width}: deviation of f at training images, published ÷ posterior", std, below=1),
        ]
    return findings


BEYOND = (
    Claim(
        "X-3",
        "",
        "T(φ) with φ ~ N(0, I) is nearly as close to MCMC as a second chain is; VI and ensembles are "
        "farther off.",
        experiment="approximations",
        summarise=_approximations,
        rule="By total variation of class probabilities from those of MCMC: φ ~ N(0, I) is within twice the"
        " distance of a second chain; the infinite width, every VI and the ensemble are farther than "
        "it; and the ensemble's predictive deviation is too small.",
        chapter="17-approximations",
        figure="fig-approximations",
    ),
    Claim(
        "X-4",
        "Published code",
        "The published pCNL samples another law than the posterior, in which the likelihood counts twice "
        "for the readout.",
        experiment="published_pcnl",
        summarise=_published,
        rule="At each width its chain misfits the training data less than the posterior does, as its "
        "closed-form law says (to a fifth of the difference), the potential is shifted, and the "
        "deviation of f is too small at training images.",
        errs=True,
        chapter="10-errata",
        figure="fig-misfit",
    ),
)
