"""What the paper does not have: paired tests, bounds of the pool, errors, training, Inspect logs, outcomes."""
