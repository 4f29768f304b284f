"""How Markov chains move, over width, data and architecture."""
