"""The settings of Puppeteer, with the values of D-PUP-1 to D-PUP-8."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.checks import check_choice, check_epochs, check_number, check_whole

UpdateMode = Literal["batched", "per_question"]
Selection = Literal["sample", "greedy"]

_CHOICES: Mapping[str, Any] = {"update": UpdateMode, "selection": Selection}


@dataclass(frozen=True)
class Config:
    """How the policy is trained and how it decides.

    Attributes:
        epochs: Passes over the training questions, by benchmark, with a ``default`` for those not named; 0 leaves the
            policy as initialised.
        batch: Questions of one ``batched`` update.
        max_steps: Most steps D of a path (D-PUP-3).
        lr: Learning rate of Adam.
        gamma: Discount of later rewards.
        entropy_weight: Weight of a question's mean entropy (D-PUP-8).
        step_weight: Factor κ on the cost of a step (D-PUP-6).
        update: ``batched`` freezes the policy over ``batch`` questions and takes one step of the optimiser for all of
            them; ``per_question`` takes one after every question, one question at a time, as upstream (D-PUP-8).
        paths: Most paths W of a question; 1 never splits (D-PUP-3).
        selection: How actions are chosen at test time. Training always samples, since it has to explore (D-PUP-4).
    """

    epochs: Mapping[str, int]
    batch: int = 16
    max_steps: int = 6
    lr: float = 1e-4
    gamma: float = 0.99
    entropy_weight: float = 1.0
    step_weight: float = 1.0
    update: UpdateMode = "batched"
    paths: int = 1
    selection: Selection = "sample"

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        for name in ("batch", "max_steps", "paths"):
            check_whole(name, getattr(self, name), 1)
        for name in ("lr", "gamma", "entropy_weight", "step_weight"):
            check_number(name, getattr(self, name), 0)
        check_epochs(self.epochs)
