"""Puppeteer (Dang et al. 2025): a learned policy says which agent of one backbone speaks next (docs/baselines.md).

From the outside a method like any other: ``Config`` and ``build``. Inside, :mod:`.agents` are the ten agents and what
they are told, :mod:`.policy` decides who is next and walks one question, :mod:`.method` learns from the walks.
"""

from baselines.puppeteer.method import Puppeteer, build
from baselines.puppeteer.policy import Config

__all__ = ["Config", "Puppeteer", "build"]
