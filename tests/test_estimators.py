"""scikit-learn estimators: its own checks, and what their users expect."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from widebnn.estimators import BNNClassifier, BNNRegressor

SHORT = {"width": 8, "num_chains": 2, "num_samples": 8, "thin": 1, "burn_in": 20, "random_state": 0}
ESTIMATORS = [
    BNNRegressor(**SHORT),
    BNNClassifier(**SHORT),
    BNNClassifier(likelihood="gaussian", **SHORT),
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("float32"),
    pytest.mark.filterwarnings("ignore:.*not converged"),
]


@parametrize_with_checks(ESTIMATORS)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)
