"""Gated-Memory Routing, the paper's own method.

From the outside a method like any other: ``Config`` and ``build``. Inside, in the order of the paper: :mod:`.config` is
what a router is made of and chooses from, :mod:`.networks` are its equations, :mod:`.router` decides with them one step
at a time, :mod:`.rollout` walks one question through Algorithm 1, :mod:`.padded` computes the log-probabilities of many
walks again, :mod:`.training` learns from them, :mod:`.method` is the training and the test.
"""

from gmr.config import Config
from gmr.method import GMR, build

__all__ = ["GMR", "Config", "build"]
