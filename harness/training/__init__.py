"""Training: the loop over attempts, and what learners with a network share."""
