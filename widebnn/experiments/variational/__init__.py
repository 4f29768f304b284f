"""Mean-field variational inference of wide networks, and what else approximates a posterior."""
