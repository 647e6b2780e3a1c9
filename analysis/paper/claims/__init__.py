"""Statements of the paper with numbers, as code: whether its own tables support them, and whether a run does."""
