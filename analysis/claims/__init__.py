"""The paper's statements with numbers, as code: whether the print bears them out, and whether a run does."""
