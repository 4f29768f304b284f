"""Side-by-side timings: ours against a peer, in the same run, on the same data."""
