"""What a person wants to read of one trajectory, whatever the method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.agents.trajectory import Call
from harness.benchmarks.items import Item, Verdict
from harness.llm.request import Message


@dataclass(frozen=True, slots=True)
class Said:
    """One use of a model.

    Attributes:
        call: As it was charged.
        messages: The prompt, ``None`` where the cell's log lies here no longer.
        reply: The text of the reply, empty where the call failed; ``None`` as ``messages``.
    """

    call: Call
    messages: tuple[Message, ...] | None
    reply: str | None


@dataclass(frozen=True, slots=True)
class Choice:
    """One decision, by the method's own name for it.

    Attributes:
        name: What was decided, as in ``role`` or ``action``.
        slot: Tells decisions of one step and name apart.
        choice: What was taken.
        options: Among how many.
        probability: With which it was taken; ``None`` where nothing was drawn.
    """

    name: str
    slot: int
    choice: str
    options: int
    probability: float | None


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate of Gated-Memory Routing.

    Attributes:
        is_open: The outcome.
        probability: That of the gate being open, whatever the outcome; ``None`` where nothing was drawn: the outcome is
            then the only one.
    """

    is_open: bool
    probability: float | None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trajectory.

    Attributes:
        number: Counted from 1; 0 for what is decided before the first.
        role: Who acts, where the step is one agent's and a policy chose it.
        backbone: The model behind the role, likewise.
        choices: All other decisions of the step but those of the gates.
        retrieved: What memory held before the step, by the number of the step that stored it, and whether the agent saw
            it; empty for a method without gates.
        written: Whether the contribution was stored; ``None`` for a method without gates.
        halted: Whether the trajectory ended here; ``None`` likewise.
        calls: What was asked of models, in order.
    """

    number: int
    role: Choice | None
    backbone: Choice | None
    choices: tuple[Choice, ...]
    retrieved: Mapping[int, Gate]
    written: Gate | None
    halted: Gate | None
    calls: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Totals:
    """What a trajectory took; costs in the paper's unit.

    Attributes:
        calls: Number of calls.
        prompt_tokens: Of all calls.
        completion_tokens: Of all calls.
        cost_total: Price of all calls.
        cost_steps: Price without the final aggregation.
        depth: Number of steps executed.
        utility: What a learned method maximises; ``None`` for the others.
    """

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_total: float
    cost_steps: float
    depth: int
    utility: float | None


@dataclass(frozen=True, slots=True)
class Record:
    """One trajectory of one cell.

    Attributes:
        item: The question, and its gold answer.
        answer: The text that was graded.
        verdict: The grade, and what was extracted from the answer.
        totals: What it took.
        steps: The steps, in order.
        final: The calls of the final aggregation, which is no step; empty where there is none.
    """

    item: Item
    answer: str
    verdict: Verdict
    totals: Totals
    steps: tuple[Step, ...]
    final: tuple[Said, ...]
