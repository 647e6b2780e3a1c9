"""Gated-Memory Routing, the paper's own method.

From the outside a method like any other: ``Config`` and ``build``. Inside, in the order of the paper: :mod:`.config` is
what a router is made of and chooses from, :mod:`.networks` are its equations, :mod:`.router` decides with them,
:mod:`.policy` is the two uses of its decisions, sampling and computing again, :mod:`.rollout` walks one question
through Algorithm 1, :mod:`.training` learns from such walks, :mod:`.method` is the training and the test.
"""

from gmr.config import Config
from gmr.method import GMR, build

__all__ = ["GMR", "Config", "build"]
