"""The search as numbers and records: rounds, the draw of a parent, what was tried, when to stop (docs/baselines.md)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from baselines.aflow.workflow import Workflow, workflow_of

Outcome = Literal["scored", "no_proposal"]
TOP = 3


class Failure(NamedTuple):
    """A training question that a workflow got wrong: its id, the text it gave, and the answer found in it."""

    item: str
    output: str
    extracted: str | None


@dataclass(frozen=True, slots=True)
class Round:
    """One round of the search, counted from 1, the round of the start workflow.

    Attributes:
        parent: The round whose workflow was edited, ``None`` for the first.
        edit: The edit in short.
        modification: The edit in the optimizer's words.
        workflow: What was tried, ``None`` where nothing was proposed.
        score: Accuracy on the training questions in percent, ``None`` unless scored.
        success: Whether the score is strictly better than the parent's.
        calls: Calls of the workflow; ``cost`` is theirs, in the paper's unit.
        proposals: Calls of the optimizer, failed ones among them; ``proposal_cost`` is theirs.
        reason: Why no workflow was proposed, in a line.
        failures: Some of the questions it got wrong, in an order drawn at random.
    """

    number: int
    parent: int | None
    status: Outcome
    edit: str = ""
    modification: str = ""
    workflow: Workflow | None = None
    score: float | None = None
    success: bool | None = None
    calls: int = 0
    cost: float = 0.0
    proposals: int = 0
    proposal_cost: float = 0.0
    reason: str = ""
    failures: tuple[Failure, ...] = ()

    @property
    def tried(self) -> Workflow:
        """The workflow of a round that has one."""
        if self.workflow is None:
            raise RuntimeError(f"round {self.number} has no workflow")
        return self.workflow

    def to_facts(self) -> dict[str, Any]:
        """The form that checkpoints keep."""
        rest = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            "round": rest.pop("number"),
            **rest,
            "workflow": self.workflow.to_json() if self.workflow else None,
            "failures": [failure._asdict() for failure in self.failures],
        }

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Round:
        """The inverse of :meth:`to_facts`."""
        fields = {
            **facts,
            "number": facts["round"],
            "workflow": workflow_of(facts["workflow"]) if facts["workflow"] else None,
            "failures": tuple(Failure(**failure) for failure in facts["failures"]),
        }
        del fields["round"]
        return cls(**fields)


def scored(rounds: Sequence[Round]) -> list[tuple[float, Round]]:
    """Score and round, of the rounds that have a score."""
    return [(one.score, one) for one in rounds if one.score is not None]


def best(rounds: Sequence[Round]) -> Round | None:
    """The round with the best score, the earliest of equals; ``None`` before any was scored."""
    found = max(scored(rounds), key=lambda pair: (pair[0], -pair[1].number), default=None)
    return None if found is None else found[1]


def candidates(rounds: Sequence[Round], sample: int) -> list[Round]:
    """The rounds a parent is drawn from: always the first, and the best others, the earlier of equals."""
    others = sorted(scored(rounds[1:]), key=lambda pair: (-pair[0], pair[1].number))
    return [rounds[0], *(one for _, one in others[: sample - 1])]


def probabilities(scores: Sequence[float], uniform_share: float, sharpness: float) -> NDArray[np.float64]:
    """P_i = λ/n + (1−λ) · exp(α(s_i − s_max)) / Σ_j exp(α(s_j − s_max)), for scores in percent."""
    values = np.asarray(scores, dtype=np.float64)
    weights = np.exp(sharpness * (values - values.max()))
    return uniform_share / len(values) + (1 - uniform_share) * weights / weights.sum()


def children(rounds: Sequence[Round], parent: Round) -> list[Round]:
    """The rounds that tried an edit of a parent."""
    return [one for one in rounds if one.parent == parent.number and one.workflow is not None]


def converged(scores: Sequence[float], patience: int) -> bool:
    """Whether the mean of the three best scores has stayed the same for a number of rounds in a row.

    Fewer than three scores have no such mean.
    """
    means = [sum(sorted(scores[:end])[-TOP:]) / TOP for end in range(TOP, len(scores) + 1)]
    latest = means[-patience - 1 :]
    return len(latest) > patience and len(set(latest)) == 1
