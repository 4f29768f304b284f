"""Bad inputs of scales and studies."""

from widebnn import experiments, study

from .rows import kw, refused

CONFIG = experiments.SoftmaxMaps()
ROWS_OF_TWO = study.Rows([{"width": 8}, {"width": 16}])
CLAIM = experiments.CLAIMS[0]


def declared(**changes):
    options = {"scales": {"smoke": CONFIG}} | changes
    return study.experiment("nothing", **options)(rows)


def rows(config):
    yield {}


ROWS = [
    *refused(
        "scale.at_scale",
        (kw(laptop=1), "choices…'smoke'…['laptop']"),
        (kw(smoke=1, huge=2), "choices…'paper'…huge"),
    ),
    *refused(
        "study.experiment",
        (lambda: declared(scales={"huge": CONFIG}), "scale…'smoke'…got 'huge'"),
        (lambda: declared(parts="depths"), "parts…'widths'…got 'depths'"),
    ),
    *refused("study.config_hash", ({"n": 3}, TypeError, "config…dataclass")),
    *refused(
        "study.save",
        (
            "no such folder/rows.json",
            experiments.OverWidth(),
            study.Rows(),
            0.0,
            FileNotFoundError,
            "no such folder",
        ),
    ),
    *refused(
        "study.load",
        ("nothing.json", experiments.OverWidth(), FileNotFoundError, "path…nothing.json…run the experiment"),
    ),
    *refused(
        "study.load_or_run",
        ("rows.json", "laptop", lambda config: [], TypeError, "config…dataclass…'laptop'"),
    ),
    *refused("study.Configuration", (lambda: experiments.Suprema(taus=()), "taus…at least one entry…()")),
    *refused("study.Experiment", (lambda: declared()(3), TypeError, "config…SoftmaxMaps…got 3")),
    *refused(
        "study.Rows",
        (lambda: ROWS_OF_TWO.where(depth=1), "column…'width'…got 'depth'"),
        (lambda: ROWS_OF_TWO.one(width=3), "rows…one row…there are 0"),
        (lambda: study.Rows().measure("width"), "rows…at least one row…got none"),
    ),
    *refused("study.exponent", ([8, 16], [study.Measure(1.0)], "found…over; got 1 for 2")),
    *refused(
        "study.vanishing",
        (lambda: list(study.vanishing("gap", [8], [study.Measure(1.0)])), "found…two or more…got 1 for 1"),
    ),
    *refused("study.verdict", (lambda: study.verdict(CLAIM, [0.3]), TypeError, "findings…Finding…0.3")),
    *refused("study.place", ("results", 3, TypeError, "config…dataclass…3")),
]
