"""All experiments, and the row of the ledger for each claim."""

import os
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from book.experiments.claims import CLAIMS, Claim
from book.experiments.experiment import Experiment, checked
from book.experiments.ledger import Entry
from widebnn._check import one_of
from widebnn.scale import SCALES
from widebnn.tables import Results

__all__ = ["EXPERIMENTS", "find", "ledger", "report", "stored"]

MODULES = """
theorems identities misprints counterexample algorithms unitwise whitening rivals efficiency over_width
gradient_gain convergence langevin_gain architectures step_cost published_pcnl landscape over_reg
iterated_maps softmax_maps collapse mean_field_gap suprema concentration elbo_ratio resnet
tempering approximations
"""


def registered(modules: Iterable[str], claims: Iterable[Claim]) -> dict[str, Experiment]:
    """The experiments of these modules by name.

    Raises
    ------
    ValueError
        If a claim has no findings in the experiment that it names, or findings have no claim.
    """
    every = (vars(import_module(f"book.experiments.{name}")).values() for name in modules)
    found = [one for values in every for one in values if isinstance(one, Experiment)]
    experiments = {one.name: one for one in dict.fromkeys(found)}
    served = {(id, name) for name, one in experiments.items() for id in one.findings}
    worded = {(claim.id, claim.experiment) for claim in claims}
    for id, name in sorted(worded - served):
        raise ValueError(f"claims.yml has {id} of {name}, which yields no findings for it")
    for id, name in sorted(served - worded):
        raise ValueError(f"{name} yields findings for {id}, of which claims.yml says nothing")
    return experiments


EXPERIMENTS = registered(MODULES.split(), CLAIMS.values())
"""By name."""


def find(name: str) -> Experiment:
    """The experiment of this name, or the one that serves the row of the ledger with this id.

    Raises
    ------
    ValueError
        If there is none; the message says which there are.
    """
    known = EXPERIMENTS | {id: EXPERIMENTS[claim.experiment] for id, claim in CLAIMS.items()}
    return known[one_of(known, name=name)]


def stored(experiment: Experiment, folder: str | os.PathLike) -> dict[str, Path]:
    """Files with its results in a folder, by scale, the smallest first."""
    paths = {scale: Path(folder) / f"{experiment.name}_{scale}.json" for scale in SCALES}
    return {scale: path for scale, path in paths.items() if path.exists()}


def report(row: str, results: Results) -> Entry:
    """The row of the ledger with this id, by the results of one run.

    Raises
    ------
    ValueError
        If there is no such row, or the results are of another experiment.
    """
    claim = CLAIMS[one_of(CLAIMS, row=row)]
    if results.name != claim.experiment:
        raise ValueError(
            f"results must be those of {claim.experiment}, on which {row} rests; got {results.name!r}"
        )
    return Entry(claim, EXPERIMENTS[claim.experiment], results)


def ledger(folder: str | os.PathLike) -> list[Entry]:
    """Every row of the ledger by the results in a folder.

    The largest scale that has results counts, beside it what else the claim names; smoke scale, which tests
    code and not claims, never does.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If there is no such folder.
    ValueError, FileExistsError
        If the folder holds other things and no results, or they are damaged or of other settings.
    """
    if not Path(folder).exists():
        raise FileNotFoundError(f"results must be a folder of results; there is no {str(folder)!r}")
    checked(folder)
    found = {
        name: [one.load(at, one.settings(s)) for s, at in stored(one, folder).items() if s != "smoke"]
        for name, one in EXPERIMENTS.items()
    }

    def entry(claim: Claim) -> Entry:
        results = found[claim.experiment][-1] if found[claim.experiment] else None
        others = [run for name in claim.beside for run in found[name] if run is not results]
        return Entry(claim, EXPERIMENTS[claim.experiment], results, others)

    return [entry(claim) for claim in CLAIMS.values()]
