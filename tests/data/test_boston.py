"""Boston housing from a file made here."""

from pathlib import Path

import numpy as np
import pytest

from widebnn.data import boston

TABLE = np.random.default_rng(0).normal(size=(506, 14)).round(3)
HEADER = "CRIM,ZN,INDUS,CHAS,NOX,RM,AGE,DIS,RAD,TAX,PTRATIO,B,LSTAT,MEDV"
CONTENT = "\n".join([HEADER, *(",".join(map(str, row)) for row in TABLE)])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WIDEBNN_DATA", str(tmp_path))
    (tmp_path / "boston").mkdir()
    (tmp_path / "boston" / "boston.csv").write_text(CONTENT)
    return tmp_path / "boston" / "boston.csv"


def test_rows_keep_their_prices(file: Path):
    data = boston()
    raw = np.hstack([data.x_scale.undo(data.x_train), data.y_scale.undo(data.y_train)])
    distances = np.abs(raw[:, None] - TABLE[None]).max(axis=2)
    assert distances.min(axis=1).max() < 1e-4
    assert len(set(distances.argmin(axis=1))) == 400
    np.testing.assert_allclose(data.x_train.std(axis=0), 1, rtol=1e-4)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CONTENT.rpartition("\n")[0], r"wanted 506 rows of 14 numbers; got \(505, 14\)"),
        (CONTENT.rpartition(",")[0], "wanted numbers in every row"),
        (CONTENT.rpartition(",")[0] + ",nan", "wanted 506 rows of 14 numbers"),
    ],
    ids=["rows", "ragged", "NaN"],
)
def test_malformed_file_is_refused(file: Path, content, message):
    file.write_text(content)
    with pytest.raises(ValueError, match=message):
        boston()
