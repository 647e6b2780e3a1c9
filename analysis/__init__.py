"""Render tables, figures and claims from results and from the paper's numbers; nothing here calls a model."""
