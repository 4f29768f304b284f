"""scikit-learn's own checks of the estimators, every night: each fits a posterior or several.

In float64: predictions of the same rows in another order must agree to 1e-7, and float32 rounds products of
matrices by the place of a row.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import widebnn as wb

SHORT = {"width": 8, "num_chains": 2, "num_samples": 8, "thin": 1, "burn_in": 20, "random_state": 0}
SHORT |= {"until": wb.Until(None, None, seconds=1e6)}

pytestmark = [pytest.mark.nightly, pytest.mark.filterwarnings("ignore:the run ended after")]


@parametrize_with_checks(
    [
        wb.BNNRegressor(**SHORT),
        wb.BNNRegressor(),
        wb.BNNClassifier(),
        wb.BNNClassifier(**SHORT),
    ]
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)
