"""The rows of the ledger, paper by paper."""

from widebnn.experiments.claims.beyond import BEYOND
from widebnn.experiments.claims.hron import HRON
from widebnn.experiments.claims.pezzetti import PEZZETTI

__all__ = ["CLAIMS"]

CLAIMS = (*HRON, *PEZZETTI, *BEYOND)
"""Every theorem, figure and algorithm of the three papers, and what the book adds."""
