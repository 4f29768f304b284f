"""From arrays to intervals: Bayesian neural networks behind scikit-learn's interface.

All that these classes do is a few lines of the package: standardise the data, find the most probable scales
of the infinitely wide network, and ask by `widebnn.nngp.evidence_slope` whether a finite one has more
evidence. If not, the Gaussian process at these scales is the answer. Else a network and the priors of its
scales go into `widebnn.targets.scaled`, `widebnn.smc` or `widebnn.sample` draws from it, whichever way is
shorter, and predictions are averaged over the draws.
"""

from widebnn.estimators._classifier import BNNClassifier
from widebnn.estimators._network import SCALES
from widebnn.estimators._regressor import BNNRegressor

__all__ = ["SCALES", "BNNClassifier", "BNNRegressor"]
