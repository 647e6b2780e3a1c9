"""Runs: presets and methods, one cell of the DAG, evaluation, results."""
