"""A framework for experiments, the claims that rest on them, and their results.

The experiments themselves are in `widebnn.experiments`.
"""

from widebnn.study.claim import VERDICTS, Chains, Claim, Finding, verdict
from widebnn.study.configuration import Configuration
from widebnn.study.experiment import Experiment, experiment
from widebnn.study.measure import Measure
from widebnn.study.results import Results, config_hash, device, load, load_or_run, place, save
from widebnn.study.rows import Row, Rows, Table
from widebnn.study.trends import exponent, vanishing

__all__ = [
    "VERDICTS",
    "Chains",
    "Claim",
    "Configuration",
    "Experiment",
    "Finding",
    "Measure",
    "Results",
    "Row",
    "Rows",
    "Table",
    "config_hash",
    "device",
    "experiment",
    "exponent",
    "load",
    "load_or_run",
    "place",
    "save",
    "vanishing",
    "verdict",
]
