"""`widebnn.BNNRegressor` against other regressors with predictive distributions, on real tables.

`python -m benchmarks.tabular run` fits and scores; `python -m benchmarks.tabular table` prints what it found.

The rules of a method were fixed before its runs. Each set is split 20 times, nine rows in ten for training,
by the seeds 0 to 19, alike for all methods; bde, whose fit takes longest, is fitted to the first ten.
Networks of ours, and those whose limit is the NNGP, have the defaults of `BNNRegressor`; its runs end with
200 effective samples and an R̂ of 1.02, or after 500 draws of each chain. Nothing is tuned on test rows.
"""
