"""Theorems and identities of the papers, in numbers."""
