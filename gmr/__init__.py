"""Gated-Memory Routing, the paper's own method: a method like any other, by ``Config`` and ``build``."""

from gmr.config import Config
from gmr.method import GMR, build

__all__ = ["GMR", "Config", "build"]
