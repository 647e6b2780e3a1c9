"""Gated-Memory Routing, the paper's method. Like every method it exports ``Config`` and ``build``."""

from gmr.config import Config
from gmr.method import GMR, build

__all__ = ["GMR", "Config", "build"]
