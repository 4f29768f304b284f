"""Tables of bad inputs, one for each module."""

from . import (
    data,
    diagnostics,
    experiments,
    landscape,
    models,
    nngp,
    plots,
    posterior,
    samplers,
    sampling,
    study,
    targets,
    vi,
)

NETWORKS = [data, models, targets, nngp, samplers, sampling, posterior, vi]
STUDIES = [diagnostics, landscape, plots, study, experiments]
ROWS = [row for table in NETWORKS + STUDIES for row in table.ROWS]
