"""Gated-Memory Routing, the paper's own method.

From the outside a method like any other: ``Config`` and ``build``. Inside, from the bottom up: :mod:`.latents`,
:mod:`.state_encoder`, :mod:`.allocation`, :mod:`.gates` and :mod:`.halting` are the networks, :mod:`.router` puts them
together, :mod:`.rollout` walks one question through Algorithm 1, :mod:`.padded` computes the log-probabilities of many
walks again, :mod:`.objective` and :mod:`.update` learn from them, :mod:`.method` is the training and the test.
"""

from gmr.config import Config
from gmr.method import GMR, build

__all__ = ["GMR", "Config", "build"]
