"""The settings of Puppeteer, with the values of D-PUP-1 to D-PUP-8."""

from __future__ import annotations

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from harness.declarations import Declaration
from harness.runner.method import ByBenchmark

UpdateMode = Literal["batched", "per_question"]
Selection = Literal["sample", "greedy"]


class Config(Declaration):
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

    epochs: ByBenchmark[NonNegativeInt]
    batch: PositiveInt = 16
    max_steps: PositiveInt = 6
    lr: NonNegativeFloat = 1e-4
    gamma: NonNegativeFloat = 0.99
    entropy_weight: NonNegativeFloat = 1.0
    step_weight: NonNegativeFloat = 1.0
    update: UpdateMode = "batched"
    paths: PositiveInt = 1
    selection: Selection = "sample"
