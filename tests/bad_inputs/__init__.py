"""Tables of bad inputs, one for each module."""

from . import (
    data,
    diagnostics,
    landscape,
    models,
    nngp,
    plots,
    samplers,
    sampling,
    scales,
    tables,
    targets,
    vi,
)

NETWORKS = [data, models, targets, nngp, samplers, sampling, vi, scales]
STUDIES = [diagnostics, landscape, plots, tables]
ROWS = [row for table in NETWORKS + STUDIES for row in table.ROWS]
