"""The paper's statements with numbers, as code: whether its own tables support them, and whether a run does."""
