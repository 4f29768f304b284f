"""`widebnn.BNNRegressor` and `widebnn.BNNClassifier` as they come, against others on small tables.

`taskset -c 0 python -m benchmarks.tabular --methods NAME` fits and scores on one core, a process for each
method, so that each compiles its own programs.

The rules of a method were fixed before its runs, and nothing is tuned on test rows. Each set is split five
times by the seeds 0 to 4, alike for all methods: nine rows in ten to train on, three in four of classes. Ours
have their defaults, "NNGP" is their limit, and "64 units" the network that they choose among; where that is
what the default took, the two are one fit. bde's rows are of an earlier run on the same splits, whose seconds
and widths of intervals are not known.
"""
