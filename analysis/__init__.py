"""The paper as data, and everything rendered from results: nothing here calls a model."""
