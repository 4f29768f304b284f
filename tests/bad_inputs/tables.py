"""Bad inputs of scales and tables."""

from widebnn.tables import Rows

from .rows import kw, refused

ROWS_OF_TWO = Rows([{"width": 8}, {"width": 16}])

ROWS = [
    *refused(
        "scale.at_scale",
        (kw(laptop=1), "choices…'smoke'…['laptop']"),
        (kw(smoke=1, huge=2), "choices…'paper'…huge"),
    ),
    *refused("tables.Rows", (lambda: ROWS_OF_TWO.where(depth=1), "column…'width'…got 'depth'")),
    *refused(
        "tables.results",
        ("walk", "name…'over_width'…got 'walk'"),
        ("over_width", "huge", "scale…'laptop'…got 'huge'"),
    ),
    *refused(
        "tables.read",
        ("nothing.json", FileNotFoundError, "nothing.json"),
        (__file__, "path tables.py holds no results"),
    ),
]
