"""Algorithms as printed and published, against the right ones."""
