"""What experiments share: data, networks, posteriors, clocks."""
