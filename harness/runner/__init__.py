"""Runs: presets, methods, cells, evaluation, results."""
