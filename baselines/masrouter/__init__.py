"""MASRouter (Yue et al. 2025) as released: one forward pass plans a team, which then answers (D-MR-1, D-MR-6)."""

from baselines.masrouter.method import Config, MASRouter, build

__all__ = ["Config", "MASRouter", "build"]
