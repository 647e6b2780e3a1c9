"""Rounds of AFlow's search: their records, the draw of a parent, convergence (docs/baselines.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from baselines.aflow.workflow import Workflow
from harness.files import Declaration, Many

TOP = 3


class Failure(Declaration):
    """Training question that a workflow got wrong."""

    item: str
    output: str
    extracted: str | None  # the answer in the output


class Round(Declaration):
    """Round of the search, as checkpoints store it."""

    round: int  # counted from 1, the round of the start workflow
    parent: int | None  # round whose workflow was edited
    status: Literal["scored", "no_proposal"]
    edit: str = ""  # in short
    modification: str = ""  # the edit in the optimizer's words
    workflow: Workflow | None = None  # None if nothing was proposed
    score: float | None = None  # accuracy on the training questions in percent
    reason: str = ""  # why no workflow was proposed, in a line
    failures: Many[Failure] = ()  # sample of the questions it got wrong

    @property
    def tried(self) -> Workflow:
        """Workflow of the round; RuntimeError if it has none."""
        if self.workflow is None:
            raise RuntimeError(f"round {self.round} has no workflow")
        return self.workflow


def scores(rounds: Sequence[Round]) -> list[float]:
    """Return the scores of the rounds that have one, in percent."""
    return [entry.score for entry in rounds if entry.score is not None]


def best(rounds: Sequence[Round]) -> Round | None:
    """Return the round with the best score, the earliest of equals; None if no round has a score."""
    scored = (entry for entry in rounds if entry.score is not None)
    return max(scored, key=lambda entry: entry.score or 0.0, default=None)


def candidates(rounds: Sequence[Round], sample: int) -> list[Round]:
    """Return the rounds a parent is drawn from: the first, and the best others, the earlier of equals."""
    scored = (entry for entry in rounds[1:] if entry.score is not None)
    others = sorted(scored, key=lambda entry: entry.score or 0.0, reverse=True)
    return [rounds[0], *others[: sample - 1]]


def probabilities(scores: Sequence[float], uniform_share: float, sharpness: float) -> NDArray[np.float64]:
    """Return P_i = λ/n + (1−λ) · exp(α(s_i − s_max)) / Σ_j exp(α(s_j − s_max)), for scores in percent."""
    values = np.asarray(scores, dtype=np.float64)
    weights = np.exp(sharpness * (values - values.max()))
    return uniform_share / len(values) + (1 - uniform_share) * weights / weights.sum()


def converged(scores: Sequence[float], patience: int) -> bool:
    """Return whether the mean of the three best scores has stayed the same for ``patience`` rounds in a row."""
    means = [sum(sorted(scores[:end])[-TOP:]) / TOP for end in range(TOP, len(scores) + 1)]
    latest = means[-patience - 1 :]
    return len(latest) > patience and len(set(latest)) == 1
