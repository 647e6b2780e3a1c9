"""How MASRouter is trained, and what its tools may see."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from harness.checks import check_choice, check_epochs, check_number, check_weights, check_whole

VisibleTests = Literal["first", "all"]
# Agents are told apart by letters.
MOST_AGENTS = len(string.ascii_uppercase)


@dataclass(frozen=True)
class Config:
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

    epochs: Mapping[str, int]
    kappa: Mapping[str, float]
    batch: int = 16
    max_agents: int = 6
    lr: float = 0.01
    vae_weight: float = 0.001
    visible_tests: VisibleTests = "first"

    def __post_init__(self) -> None:
        check_epochs(self.epochs)
        check_weights("kappa", self.kappa)
        for name in ("batch", "max_agents"):
            check_whole(name, getattr(self, name), 1)
        if self.max_agents > MOST_AGENTS:
            raise ValueError(f"max_agents is {self.max_agents}; expected at most {MOST_AGENTS}")
        for name in ("lr", "vae_weight"):
            check_number(name, getattr(self, name), 0)
        check_choice("visible_tests", self.visible_tests, VisibleTests)
