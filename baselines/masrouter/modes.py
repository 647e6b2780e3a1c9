"""The six modes of collaboration as data: who speaks when, and what each one sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.llm.request import Style

Edges = Literal["none", "chain", "complete"]

_REFLECT = (
    "Search your own answer for errors, mend those you find, and give it once more in the same format. Where you find "
    "none, repeat it as it is."
)


@dataclass(frozen=True, slots=True)
class Mode:
    """One way for a team to work together.

    Attributes:
        name: Its name in results.
        description: What the router knows of it.
        rounds: How often each agent speaks. From the second round on, an agent sees what the others said in the round
            before, and not what it said itself.
        edges: Whom an agent sees in the first round: nobody, the agent before it, or all agents before it.
        note: What every agent is told beyond its role.
        style: How explicitly every agent is to reason; ``None`` for its role's own way.
        second_call: What an agent whose role has no second call is asked in one; ``None`` for no such call.
    """

    name: str
    description: str
    rounds: int = 1
    edges: Edges = "none"
    note: str = ""
    style: Style | None = None
    second_call: str | None = None

    @property
    def profile(self) -> str:
        """The text that stands for the mode in an embedding: ``name : description``."""
        return f"{self.name} : {self.description}"

    def before(self, slot: int) -> range:
        """The slots, counted from 0, that a slot sees in the first round."""
        first = {"none": slot, "chain": max(slot - 1, 0), "complete": 0}[self.edges]
        return range(first, slot)

    def layers(self, agents: int) -> tuple[tuple[int, ...], ...]:
        """The slots in the order of their turns; those of one layer do not wait for each other."""
        if self.edges == "none":
            return (tuple(range(agents)),)
        return tuple((slot,) for slot in range(agents))


MODES: tuple[Mode, ...] = (
    Mode("IO", "One agent alone reads the question and states its answer at once."),
    Mode(
        "CoT",
        "One agent alone reasons its way to the answer in explicit steps.",
        note="Think the problem through step by step before you commit to an answer.",
        style="step_by_step",
    ),
    Mode(
        "Chain",
        "Several agents work in a row; each one receives what the agent before it produced and builds on it.",
        edges="chain",
    ),
    Mode(
        "FullConnected",
        "Several agents share everything; each one receives the work of every agent that had its turn earlier.",
        edges="complete",
    ),
    Mode(
        "Debate",
        "Several agents argue over two rounds; having heard each other's positions they dispute them until one stands.",
        rounds=2,
        note="This is a debate: take a position that differs from the answers of the other agents or opposes them.",
    ),
    Mode(
        "Reflection",
        "Several agents each look back on their own answer, search it for errors and correct it.",
        second_call=_REFLECT,
    ),
)
