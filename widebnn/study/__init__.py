"""A framework for declared experiments, the claims that rest on them, and their results; it knows none."""
