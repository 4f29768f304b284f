"""From arrays to intervals: Bayesian neural networks behind scikit-learn's interface.

All that these classes do is a few lines of the package: standardise the data, put a network and the priors of
its scales into `widebnn.targets.scaled`, start at the scales of the infinitely wide network where these are
known, run `widebnn.sample` with `widebnn.samplers.with_scales`, and average predictions over the draws. Of an
infinitely wide network the Gaussian process at the most probable scales takes the place of the draws.
"""

from widebnn.estimators._classifier import BNNClassifier
from widebnn.estimators._network import SCALES
from widebnn.estimators._regressor import BNNRegressor

__all__ = ["SCALES", "BNNClassifier", "BNNRegressor"]
