"""The driver: many chains of any sampler, keeping functions of the state and never the network."""

from widebnn.driver import checkpoints, stopping, streaming
from widebnn.driver._draws import Draws, Prediction
from widebnn.driver._pure import run_chains
from widebnn.driver._sample import sample

__all__ = ["Draws", "Prediction", "checkpoints", "run_chains", "sample", "stopping", "streaming"]
