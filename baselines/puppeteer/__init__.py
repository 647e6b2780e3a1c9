"""Puppeteer (Dang et al. 2025): a learned policy says which agent of one backbone speaks next (docs/baselines.md).

From the outside a method like any other: ``Config`` and ``build``. Inside, from the bottom up: :mod:`.actions` are the
agents, :mod:`.path` is what a line of work has brought so far, :mod:`.prompts` and :mod:`.agents` let an agent speak,
:mod:`.state` and :mod:`.policy` decide who is next, :mod:`.rollout` walks one question, :mod:`.answer` closes it,
:mod:`.trace`, :mod:`.rewards` and :mod:`.update` learn from it, :mod:`.method` is the training and the test.
"""

from baselines.puppeteer.config import Config
from baselines.puppeteer.method import Puppeteer, build

__all__ = ["Config", "Puppeteer", "build"]
