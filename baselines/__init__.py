"""Baselines, one module or package each."""
