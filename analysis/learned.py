"""What a learning method learned, and from how much: the policy it ended with, and what its training used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from analysis.measures import Measurement
from analysis.results import Cell
from analysis.traces import attempts_of_a_question, read_table, updates
from harness.runner.config import methods
from harness.runner.method import settings_of

CALLS = "training_calls.parquet"
# What a policy chooses among several, by name in the table of decisions.
CHOICES = ("backbone", "role", "mode", "action")
GREEDY = "greedy"
ENTROPY = (
    "Entropy: of the trained policy's choices on the test questions, in percent of a uniform choice among the same "
    "options (100: random, 0: always the same)."
)


@dataclass(frozen=True, slots=True)
class Choice:
    """One kind of choice of a trained policy, on the test questions.

    Attributes:
        entropy: Of the choice, in percent of that of a uniform one among the same options; ``None`` where nothing was
            drawn. A mean over drawn choices of -log π, which a uniform policy puts at 100, give or take chance.
        top: The option that was chosen most.
        share: How often it was, in percent.
    """

    entropy: float | None
    top: str
    share: float


@dataclass(frozen=True, slots=True)
class Budget:
    """What a training or search used; a mean over trainings where there are several.

    Attributes:
        questions: Different training questions.
        passes: Over them: epochs, or the rounds of a search.
        trajectories: Graded attempts at a question.
        updates: Steps of the optimiser; of a search, workflows that were scored.
        calls: Every use of a model, an optimizer's included.
        tokens: Prompt and completion tokens of these.
        cost: Their cost in the paper's unit.
    """

    questions: float
    passes: float
    trajectories: float
    updates: float
    calls: float
    tokens: float
    cost: float


def is_learner(measurement: Measurement) -> bool:
    """Whether every seed left the tables of a training."""
    return all((cell.folder / CALLS).is_file() for cell in measurement.cells)


def budget(measurement: Measurement) -> Budget:
    """The mean over the seeds.

    Raises:
        UserError: A table of the training is missing or damaged.
    """
    found = [_budget(cell) for cell in measurement.cells]
    return Budget(*(fmean(getattr(one, name) for one in found) for name in Budget.__dataclass_fields__))


def _budget(cell: Cell) -> Budget:
    calls = read_table(cell.folder / CALLS, ("prompt_tokens", "completion_tokens", "cost"))
    log = updates(cell)
    if log.empty:
        return Budget(*[0] * len(Budget.__dataclass_fields__))
    attempts = log.groupby("epoch")["trajectories"].sum()
    return Budget(
        questions=round(attempts.iloc[0] / attempts_of_a_question(cell)),
        passes=len(attempts),
        trajectories=float(attempts.sum()),
        updates=len(log),
        calls=len(calls),
        tokens=float(calls[["prompt_tokens", "completion_tokens"]].to_numpy().sum()),
        cost=float(calls["cost"].sum()),
    )


def choices(measurement: Measurement) -> dict[str, Choice]:
    """The kinds of choices that a trained policy makes; none for a search. Means over the seeds.

    The option chosen most is that of all seeds together.

    Raises:
        UserError: A table is missing or damaged.
    """
    found = [_drawn(cell) for cell in measurement.cells]
    return {name: _choice([one[name] for one in found]) for name in CHOICES if all(name in one for one in found)}


def _drawn(cell: Cell) -> Mapping[str, _Drawn]:
    """The choices of a cell by name.

    What the step limit forces is no choice and is left out; what is chosen greedily or from one option has no entropy.
    """
    rows = read_table(cell.folder / "decisions.parquet", ("name", "step", "choice", "options", "log_prob"))
    entry = methods().get(cell.run.method)
    settings = settings_of(entry.module, entry.config) if entry else None
    is_greedy = GREEDY in (getattr(settings, "decode", None), getattr(settings, "selection", None))
    kept = rows[rows["name"].isin(CHOICES) & (rows["step"] <= getattr(settings, "max_steps", np.inf))]
    return {
        str(name): _Drawn(
            None
            if is_greedy or own["options"].max() == 1
            else -100 * own["log_prob"].mean() / np.log(own["options"]).mean(),
            own["choice"].value_counts(normalize=True).to_dict(),
        )
        for name, own in kept.groupby("name")
    }


@dataclass(frozen=True, slots=True)
class _Drawn:
    """One kind of choice of one cell: its entropy as in :class:`Choice`, and the share of each option, a fraction."""

    entropy: float | None
    shares: Mapping[str, float]


def _choice(seeds: Sequence[_Drawn]) -> Choice:
    options = sorted({option for one in seeds for option in one.shares})
    shares = {option: 100 * fmean(one.shares.get(option, 0.0) for one in seeds) for option in options}
    top = max(shares, key=shares.__getitem__)
    entropies = [one.entropy for one in seeds if one.entropy is not None]
    return Choice(fmean(entropies) + 0.0 if entropies else None, top, shares[top])
