"""Pezzetti, Favaro, Peluchetti (2025): pCN and pCNL."""

import math

from widebnn.experiments.claims.measures import chosen, difference, ratio, values
from widebnn.study import Claim, Finding, Measure, Results

__all__ = ["PEZZETTI"]

BETWEEN = "share of variance between chains"
WAVES = 0.25  # at U = 0, two runs of a dozen correlation times differ in it by less, 19 times of 20
LEAST_ESS = 10  # fewer effective samples are a guess, whatever their decimals


def _rates(rows: list[dict], sampler: str) -> list[Measure]:
    """The acceptance over width."""
    found = sorted(chosen(rows, sampler=sampler), key=lambda row: row["width"])
    return [Measure(row["acceptance"], row["acceptance_error"]) for row in found]


def _greatest(measures: list[Measure]) -> Measure:
    return max(measures, key=lambda m: m.value)


def _disagreement(results: Results) -> list[Finding]:
    findings = []
    for quantity in ("weights", "predictions"):
        pcn, pcnl = (_rhat_squared(results, name, quantity) for name in ("pCN", "pCNL"))
        fall = difference(pcn[-1], pcn[0])
        findings += [
            Finding(f"pCN, {quantity}: widest less narrowest", fall, below=0),
            Finding(f"pCN, {quantity}: widest", pcn[-1], below=1.2),
            Finding(f"pCNL, {quantity}: greatest over widths", _greatest(pcnl), below=1.2),
        ]
    lmc = _rhat_squared(results, "Langevin", "weights")
    rise = difference(lmc[-1], lmc[0])  # too small to be told without a standard error
    return [*findings, Finding("LMC, weights: widest less narrowest", rise, above=0)]


def _rhat_squared(results: Results, sampler: str, quantity: str) -> list[Measure]:
    """The mean at the last checkpoint, over width; projections are independent, predictions are not."""
    found = []
    for row in _at_the_end(results, sampler):
        value, deviation = (row[f"rhat_squared{part}_{quantity}"] for part in ("", "_std"))
        if value is None:  # chains that do not move
            found.append(Measure(math.inf))
        elif quantity == "weights":
            found.append(Measure(value, deviation / math.sqrt(results.config["num_projections"])))
        else:
            found.append(Measure(value))
    return found


def _at_the_end(results: Results, sampler: str) -> list[dict]:
    rows = sorted(chosen(results.rows, sampler=sampler), key=lambda row: (row["width"], row["step"]))
    return [row for row in rows if "pc_drift" in row]


def _langevin_traces(results: Results) -> list[Finding]:
    between = _between(results, "Langevin")
    return [Finding(f"{BETWEEN}: widest less narrowest", between[-1] - between[0], above=WAVES)]


def _pcn_traces(results: Results) -> list[Finding]:
    between = _between(results, "pCN")
    return [Finding(f"{BETWEEN}: widest less narrowest", between[-1] - between[0], below=-WAVES)]


def _pcnl_traces(results: Results) -> list[Finding]:
    pcnl, pcn = _between(results, "pCNL")[0], _between(results, "pCN")[0]
    return [
        Finding(f"{BETWEEN}, narrowest: pCNL", pcnl, below=WAVES),
        Finding(f"{BETWEEN}, narrowest: pCNL less pCN", pcnl - pcn, below=-WAVES),
    ]


def _between(results: Results, sampler: str) -> list[float]:
    """Over width; NaN where no chain moves."""
    found = [row["pc_between"] for row in _at_the_end(results, sampler)]
    return [math.nan if share is None else share for share in found]


SETTING = ("architecture", "dataset", "depth")


def _left_open(results: Results) -> list[Finding]:
    settings = list(dict.fromkeys(tuple(row[name] for name in SETTING) for row in results.rows))
    of_setting = {one: chosen(results.rows, **dict(zip(SETTING, one))) for one in settings}
    findings = []
    for (architecture, dataset, depth), rows in of_setting.items():
        what = f"{architecture}, {dataset}, depth {depth}"
        rates = {name: _rates(rows, name) for name in ("pCN", "pCNL", "Langevin")}
        for name in ("pCN", "pCNL"):
            rise = difference(rates[name][-1], rates[name][0])
            findings.append(Finding(f"{what}: {name}, widest less narrowest", rise, above=0))
        above = difference(rates["pCNL"][-1], rates["pCN"][-1])
        findings.append(Finding(f"{what}: pCNL less pCN, widest", above, above=0))
        gaps = [difference(a, b) for a, b in zip(rates["pCNL"], rates["Langevin"], strict=True)]
        widens = difference(gaps[-1], gaps[0])
        findings.append(Finding(f"{what}: pCNL less LMC, widest less narrowest", widens, above=0))
    longest = max(of_setting.values(), key=len)
    gains = _gains(longest, results.config["num_chains"])
    widens = ratio(gains[-1], gains[0]) if len(gains) > 1 else Measure(math.nan)
    what = "ESS of U, pCNL ÷ pCN, over most widths: widest ÷ narrowest that is resolved"
    return [*findings, Finding(what, widens, above=1)]


def _gains(rows: list[dict], num_chains: int) -> list[Measure]:
    """Effective samples a step of pCNL over those of pCN, in the order of width, where both are known."""
    gains = []
    for width in sorted(values(rows, "width")):
        pair = [chosen(rows, width=width, sampler=name)[0] for name in ("pCNL", "pCN")]
        if all((row["ess_potential"] or 0.0) * row["num_steps"] * num_chains >= LEAST_ESS for row in pair):
            gains.append(ratio(*(Measure(row["ess_potential"], row["ess_potential_error"]) for row in pair)))
    return gains


PEZZETTI = (
    Claim(
        "P-F3",
        "Figure 3",
        "R-hat of three chains falls below 1.2 earlier in wider networks for pCN and pCNL, and not for LMC.",
        "5,000 to 20,000 steps at β = 0.1, widths 512 to 4,096",
        experiment="convergence",
        summarise=_disagreement,
        rule="The paper's R-hat, a ratio of variances, at the last checkpoint, mean over projections of the "
        "weights and over predictions: that of pCN is smaller at the widest network than at the narrowest "
        "and below 1.2 there, that of pCNL is below 1.2 at every width, and that of LMC, of the weights, is "
        "greater at the widest than at the narrowest. Of predictions there is no standard error.",
        chapter="18-convergence",
        figure="fig-rhat",
    ),
    Claim(
        "P-F4",
        "Figure 4",
        "Traces of the first two principal components: LMC mixes worse in wider networks.",
        "traces",
        experiment="convergence",
        summarise=_langevin_traces,
        rule="The share of the variance of the first two principal components that is between chains is "
        "greater at the widest network than at the narrowest, by a quarter at least: almost so much of it "
        "there can be where nothing is wrong.",
        chapter="18-convergence",
        figure="fig-traces-langevin",
    ),
    Claim(
        "P-F5",
        "Figure 5",
        "Traces of the first two principal components: pCN becomes steadier in wider networks.",
        "traces",
        experiment="convergence",
        summarise=_pcn_traces,
        rule="The share of the variance of the first two principal components that is between chains is "
        "smaller at the widest network than at the narrowest, by a quarter at least.",
        chapter="18-convergence",
        figure="fig-traces-pcn",
    ),
    Claim(
        "P-F6",
        "Figure 6",
        "Traces of the first two principal components: pCNL mixes well at small widths too.",
        "traces",
        experiment="convergence",
        summarise=_pcnl_traces,
        rule="At the narrowest network less than a quarter of the variance of the first two principal "
        "components is between chains, and less than under pCN by a quarter at least.",
        chapter="18-convergence",
        figure="fig-traces-pcnl",
    ),
    Claim(
        "P-X",
        "Section 5",
        "The trends hold in deeper networks, other architectures and on other data, and gaps widen with the"
        " width.",
        "left open",
        experiment="architectures",
        summarise=_left_open,
        rule="In every setting pCN and pCNL, as corrected, accept more at the widest network than at the "
        "narrowest, pCNL accepts more than pCN at the widest, and its lead over LMC is greater there than at "
        "the narrowest. With one hidden layer on CIFAR-10, up to width 16,384, the ratio of its effective "
        "samples of U to those of pCN grows too, over the widths at which there are ten of each.",
        chapter="21-left-open",
        figure="fig-left-open",
    ),
)
