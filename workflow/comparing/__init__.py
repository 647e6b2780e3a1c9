"""Two rows of a run on the same questions."""
