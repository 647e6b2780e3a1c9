"""Quantitative statements of the paper as code, judged by the paper's own tables and by a run."""
