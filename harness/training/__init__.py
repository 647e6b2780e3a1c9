"""Training: the loop over epochs, checkpoints, and what learners with a network share."""
