"""How MASRouter is trained, and what its tools may see."""

from __future__ import annotations

import string
from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from harness.declarations import Declaration
from harness.runner.method import ByBenchmark

VisibleTests = Literal["first", "all"]
# Agents are told apart by letters.
MOST_AGENTS = len(string.ascii_uppercase)


class Config(Declaration):
    """The settings of MASRouter, with the released values where they do not depend on the benchmark (D-MR-9).

    Attributes:
        epochs: Passes over the training questions, by benchmark, with a ``default`` for those not named; 0 leaves the
            router as initialised.
        kappa: Weight κ of cost in the utility, in the same form (D-MR-5).
        batch: Questions of one update.
        max_agents: Most agents of a team.
        lr: Learning rate of Adam.
        vae_weight: Weight of the losses of the autoencoders.
        visible_tests: What tools may run: the examples that the question shows, the ``first`` test on MBPP, or ``all``
            tests where they are plain asserts (D-MR-2).
    """

    epochs: ByBenchmark[NonNegativeInt]
    kappa: ByBenchmark[NonNegativeFloat]
    batch: PositiveInt = 16
    max_agents: Annotated[int, Field(ge=1, le=MOST_AGENTS)] = 6
    lr: NonNegativeFloat = 0.01
    vae_weight: NonNegativeFloat = 0.001
    visible_tests: VisibleTests = "first"
