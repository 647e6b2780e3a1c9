"""The search as numbers and records: rounds, the draw of a parent, what was tried, when to stop (docs/baselines.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from baselines.aflow.workflow import Workflow
from harness.files import Declaration, Many

TOP = 3


class Failure(Declaration):
    """A training question that a workflow got wrong."""

    item: str
    output: str
    extracted: str | None  # the answer found in the output


class Round(Declaration):
    """One round of the search, as checkpoints keep it."""

    round: int  # counted from 1, the round of the start workflow
    parent: int | None  # the round whose workflow was edited
    status: Literal["scored", "no_proposal"]
    edit: str = ""  # in short
    modification: str = ""  # the edit in the optimizer's words
    workflow: Workflow | None = None  # what was tried, ``None`` where nothing was proposed
    score: float | None = None  # accuracy on the training questions in percent
    success: bool | None = None  # whether the score is strictly better than the parent's
    calls: int = 0  # of the workflow
    cost: float = 0.0  # of these, in the paper's unit
    proposals: int = 0  # calls of the optimizer, failed ones among them
    proposal_cost: float = 0.0
    reason: str = ""  # why no workflow was proposed, in a line
    failures: Many[Failure] = ()  # some of the questions it got wrong, in an order drawn at random

    @property
    def tried(self) -> Workflow:
        """The workflow of a round that has one."""
        if self.workflow is None:
            raise RuntimeError(f"round {self.round} has no workflow")
        return self.workflow


def scored(rounds: Sequence[Round]) -> list[tuple[float, Round]]:
    """Score and round, of the rounds that have a score."""
    return [(one.score, one) for one in rounds if one.score is not None]


def best(rounds: Sequence[Round]) -> Round | None:
    """The round with the best score, the earliest of equals; ``None`` before any was scored."""
    found = max(scored(rounds), key=lambda pair: (pair[0], -pair[1].round), default=None)
    return None if found is None else found[1]


def candidates(rounds: Sequence[Round], sample: int) -> list[Round]:
    """The rounds a parent is drawn from: always the first, and the best others, the earlier of equals."""
    others = sorted(scored(rounds[1:]), key=lambda pair: (-pair[0], pair[1].round))
    return [rounds[0], *(one for _, one in others[: sample - 1])]


def probabilities(scores: Sequence[float], uniform_share: float, sharpness: float) -> NDArray[np.float64]:
    """P_i = λ/n + (1−λ) · exp(α(s_i − s_max)) / Σ_j exp(α(s_j − s_max)), for scores in percent."""
    values = np.asarray(scores, dtype=np.float64)
    weights = np.exp(sharpness * (values - values.max()))
    return uniform_share / len(values) + (1 - uniform_share) * weights / weights.sum()


def children(rounds: Sequence[Round], parent: Round) -> list[Round]:
    """The rounds that tried an edit of a parent."""
    return [one for one in rounds if one.parent == parent.round and one.workflow is not None]


def converged(scores: Sequence[float], patience: int) -> bool:
    """Whether the mean of the three best scores has stayed the same for a number of rounds in a row."""
    means = [sum(sorted(scores[:end])[-TOP:]) / TOP for end in range(TOP, len(scores) + 1)]
    latest = means[-patience - 1 :]
    return len(latest) > patience and len(set(latest)) == 1
