"""Rows: choosing, grouping, means over repeats, and what a table shows."""

import html.parser
import math

import numpy as np
import pytest

from widebnn.tables import Measure, Rows

ROWS = Rows(
    {"width": width, "name": name, "seed": seed, "rate": rate, "rate_error": 0.1}
    for width, name, seed, rate in (
        (8, "pCN", 0, 0.5),
        (8, "pCN", 1, 0.7),
        (2, "pCN", 0, 0.1),
        (2, "pCN", 1, 0.3),
        (2, "LMC", 0, None),
    )
)


def test_rows_are_chosen_by_their_entries():
    assert [row["rate"] for row in ROWS.where(width=8)] == [0.5, 0.7]
    assert isinstance(ROWS.where(width=8), Rows)
    assert ROWS.where(width=8, seed=1) == [ROWS[1]]
    assert ROWS.where(width=3) == [] == Rows().where(width=3)
    assert ROWS.one(name="LMC")["rate"] is None
    for wanted, count in (({"width": 8}, 2), ({"width": 3}, 0)):
        with pytest.raises(ValueError, match=f"one row with .*; there are {count}"):
            ROWS.one(**wanted)


def test_groups_come_in_the_order_of_the_rows():
    assert [(width, len(rows)) for width, rows in ROWS.by("width")] == [(8, 2), (2, 3)]
    assert [key for key, _ in ROWS.by("width", "name")] == [(8, "pCN"), (2, "pCN"), (2, "LMC")]
    assert ROWS.values("name") == ["pCN", "LMC"]
    assert Rows([*ROWS, {"width": 2}]).values("name") == ["pCN", "LMC"]


def test_a_quantity_over_a_column_has_errors_over_repeats():
    narrow, wide = ROWS.where(name="pCN").over("width", "rate")  # in the order of width
    assert narrow == pytest.approx((0.2, 0.1)) and wide == pytest.approx((0.6, 0.1))


def test_a_single_row_has_the_error_of_its_column():
    (one,) = ROWS.where(seed=0, width=8).over("width", "rate", "rate_error")
    assert one == Measure(0.5, 0.1)
    assert ROWS.where(seed=0, width=8).measure("rate") == Measure(0.5, None)
    assert math.isnan(ROWS.where(name="LMC").measure("rate").value)
    with pytest.raises(ValueError, match="at least one row to measure 'rate'"):
        Rows().measure("rate")


def test_columns_are_arrays_with_nan_for_none():
    np.testing.assert_array_equal(ROWS.column("rate"), [0.5, 0.7, 0.1, 0.3, np.nan])
    assert ROWS.column("width").dtype.kind == "i" and ROWS.column("name")[0] == "pCN"


@pytest.mark.parametrize(
    "look",
    [
        lambda: ROWS.where(depth=1),
        lambda: ROWS.column("depth"),
        lambda: ROWS.over("depth", "rate"),
        lambda: ROWS.table({"depth": "{depth:.2f}"}),
    ],
    ids=range(4),
)
def test_an_unknown_column_is_an_error_that_names_those_there_are(look):
    with pytest.raises(ValueError, match="'width', 'name', 'seed', 'rate', 'rate_error'; got 'depth'"):
        look()


def test_a_table_is_aligned_in_a_terminal():
    rows = Rows([{"R̂": 1.23456, "n": 16_384, "who": "pCN"}, {"R̂": None, "n": 8, "who": "a"}])
    assert str(rows.table(["who", "R̂", "n"])) == "who     R̂       n\npCN  1.23  16,384\na       —       8"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.123456, "0.123"),
        (0.0, "0.00"),
        (12_345.6, "12,346"),
        (1e-5, "1.00e-05"),
        (None, "—"),
        (np.int64(1_024), "1,024"),
        (True, "yes"),
        (Measure(1.234, 0.081), "1.234 ± 0.081"),
        (Measure(math.nan), "—"),
    ],
)
def test_numbers_are_rounded(value, words):
    assert Rows([{"x": value}]).table(["x"]).cells == ((words,),)


def test_a_column_may_be_made_of_others():
    table = ROWS.where(seed=0).table(
        {
            "width": "width",
            "rate (seed)": "{rate:.2f} ({seed})",
            "doubled": lambda row: Measure(2 * (row["rate"] or math.nan), 0.2),
        }
    )
    assert table.headers == ("width", "rate (seed)", "doubled")
    assert table.cells[0] == ("8", "0.50 (0)", "1.00 ± 0.20")
    assert table.cells[2] == ("2", "— (0)", "—")
    assert table.is_name == (False, False, False)


def test_a_notebook_shows_a_table():
    class Cells(html.parser.HTMLParser):
        found = ()

        def handle_data(self, data):
            self.found += (data,) if data.strip() else ()

    parser = Cells()
    parser.feed(Rows([{"a": "<b>", "n": 3}, {"a": "c & d", "n": 4}]).table(["a", "n"])._repr_html_())
    assert parser.found == ("a", "n", "<b>", "3", "c & d", "4")


def test_a_table_without_rows_has_its_headers():
    assert str(Rows().table(["width", "rate"])) == "width  rate"


def test_errors_over_splits_are_those_of_splits_that_overlap():
    """By Nadeau and Bengio the correlation of two splits is the share of the rows to test on."""
    scores = np.array([1.0, 2.0, 4.0, 5.0])
    found = Measure.over_splits(scores, test_share=0.2)
    assert found == pytest.approx((3.0, np.std(scores, ddof=1) * math.sqrt(1 / 4 + 0.25)))
    assert Measure.over_splits(scores).error > Measure.mean(scores).error
