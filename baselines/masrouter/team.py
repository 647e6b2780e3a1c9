"""A team at work: who is asked when, what each agent sees, and what comes of it (D-MR-2, D-MR-7)."""

from __future__ import annotations

import ast
import dataclasses
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from baselines.masrouter.formats import formats_of
from baselines.masrouter.modes import Mode
from harness.agents.activation import act
from harness.agents.prompts import Record
from harness.agents.roles import Role
from harness.agents.trajectory import Context, Decision
from harness.benchmarks.items import Item
from harness.benchmarks.programs import parse
from harness.concurrency import gather

THIS_ROUND = "What other agents have said in this round:"
PREVIOUS_ROUND = "What the other agents said in the previous round:"


class Agent(NamedTuple):
    """One slot of a team.

    Attributes:
        role: Who it is.
        backbone: Key of the backbone behind it.
    """

    role: Role
    backbone: str


@dataclass(frozen=True, slots=True)
class Team:
    """What the router decided: a mode and its agents, in the order of their slots."""

    mode: Mode
    agents: tuple[Agent, ...]


def letter(slot: int) -> str:
    """What tells an agent from the others in a prompt, for slots counted from 0."""
    return string.ascii_uppercase[slot]


def said(texts: Sequence[str]) -> Iterator[int]:
    """The slots that said something; one whose call failed stays silent and is shown to nobody."""
    return (slot for slot, text in enumerate(texts) if text.strip())


async def work(team: Team, item: Item, context: Context) -> list[str]:
    """Let a team go through all rounds of its mode.

    Args:
        team: Who works, and how.
        item: The question, with the examples that tools may run.
        context: Where models and tools are.

    Returns:
        What each agent said in the last round, by slot; the empty text of one that stayed silent.
    """
    previous: list[str] = []
    for number in range(1, team.mode.rounds + 1):
        previous = await _Round(team, item, context, number, previous).run()
    return previous


class _Round:
    """One round of a team.

    Args:
        team: Who works, and how.
        item: The question, with the examples that tools may run.
        context: Where models and tools are.
        number: Counted from 1.
        previous: What was said in the round before, by slot.
    """

    def __init__(self, team: Team, item: Item, context: Context, number: int, previous: Sequence[str]) -> None:
        self._team = team
        self._item = item
        self._context = context
        self._number = number
        self._previous = previous
        self._said = [""] * len(team.agents)

    async def run(self) -> list[str]:
        for layer in self._team.mode.layers(len(self._team.agents)):
            texts = await gather(self._turn(slot) for slot in layer)
            for slot, text in zip(layer, texts, strict=True):
                self._said[slot] = text
        return self._said

    async def _turn(self, slot: int) -> str:
        records = self._visible(slot)
        settled = await self._short_cut(slot, records)
        if settled is not None:
            return settled
        (role, backbone), mode = self._team.agents[slot], self._team.mode
        return await act(
            role,
            backbone,
            self._item,
            list(records.values()),
            self._context,
            step=self._number,
            slot=slot + 1,
            note=mode.note,
            header=THIS_ROUND if self._number == 1 else PREVIOUS_ROUND,
            second_call=mode.second_call,
            formats=formats_of(role),
            style=mode.style,
            temperature=None,
        )

    def _visible(self, slot: int) -> dict[int, Record]:
        """What an agent sees, by the slot that said it."""
        if self._number == 1:
            texts, shown = self._said, set(self._team.mode.before(slot))
        else:
            texts, shown = list(self._previous), set(range(len(self._previous))) - {slot}
        return {at: Record(self._speaker(at), texts[at]) for at in said(texts) if at in shown}

    def _speaker(self, slot: int) -> str:
        return f"Agent {letter(slot)}, {self._team.agents[slot].role.name}"

    async def _short_cut(self, slot: int, records: dict[int, Record]) -> str | None:
        """The first visible message whose program passes the visible examples; it is passed on without a call."""
        for at, record in records.items():
            if await self._context.code_tools.passes(self._item, record.text):
                choice = f"Agent {letter(at)}"
                self._context.decide(Decision(self._number, "short_cut", slot + 1, choice, len(records), 0.0))
                return record.text
        return None


def with_all_tests(item: Item) -> Item:
    """The question with every test as a visible example, where its tests are plain asserts (D-MR-2).

    That is so on MBPP, except where set-up code comes with the tests; other questions stay as they are.
    """
    if item.code is None:
        return item
    tree = parse(item.code.checks)
    if tree is None or not tree.body or not all(isinstance(node, ast.Assert) for node in tree.body):
        return item
    tests = (ast.get_source_segment(item.code.checks, node) or "" for node in tree.body)
    return dataclasses.replace(item, code=dataclasses.replace(item.code, visible=tuple(tests)))
