"""Simulated backbones take every turn for what it is, and for nothing else."""

from __future__ import annotations

from functools import cache

import pytest

from baselines.masrouter.modes import MODES, Mode
from harness.agents.roles import by_domain, role
from harness.benchmarks import benchmark
from harness.benchmarks.items import Item
from harness.benchmarks.loading import load_items
from harness.llm.request import Request
from harness.simulator.parameters import load_settings
from harness.simulator.reading import Reader, Reading
from harness.simulator.world import QuestionIndex
from tests.baselines.masrouter.world import Client, Passing, Planned, role_of, walk

KEYS = ("math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro")
FIRST = {"text": "plan", "keywords": "search"}


Turn = tuple[Request, Reading, Item]


@cache
def known(key: str) -> tuple[Item, Reader]:
    """A question of a benchmark, and a reader that knows it."""
    its = benchmark(key)
    item = load_items(key, "embedded").items[0]
    return item, Reader(QuestionIndex([item]), load_settings().recognition, [its.output_rules])


async def readings(key: str, mode: Mode, domain: str, roles: list[str], text: str) -> list[Turn]:
    item, reader = known(key)
    client = Client(lambda backbone, request: text)
    planned = Planned(mode.name, roles, ["small"] * len(roles), domain)
    await walk(planned, client, item, domain=domain, sandbox=Passing("-"))
    return [
        (request, reader.read([message._asdict() for message in request.messages]), item) for _, request in client.asked
    ]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("key", KEYS)
async def test_every_turn_is_taken_for_what_it_is(key: str, mode: Mode) -> None:
    """All roles of a domain, in teams of at most six; nobody is cut short."""
    domain = benchmark(key).role_domain
    names = [one.name for one in by_domain(domain)]
    for roles in (names[:6], names[6:]):
        *turns, (_, final, item) = await readings(key, mode, domain, roles, "I think so.")
        for request, reading, _ in turns:
            its = role(f"{domain}/{role_of(request)}")
            assert (reading.item, reading.role) == (item, its)
            others = request.messages[1].content.count("] Agent ")
            if len(request.messages) == 2:
                assert reading.kind == FIRST.get(its.output, "solve")
                assert [one.own for one in reading.contributions] == [False] * others
            else:
                assert reading.kind == ("finish" if its.second_call else FIRST.get(its.output, "solve"))
                assert [one.own for one in reading.contributions] == [False] * others + [True]
            if mode.name == "CoT":
                assert reading.style == "step_by_step"
        assert (final.item, final.role, final.kind, final.style) == (item, None, "aggregate", "direct")
        assert [one.own for one in final.contributions] == [False] * len(roles)
        assert [one.text.startswith("I think so.") for one in final.contributions] == [True] * len(roles)


@pytest.mark.parametrize("key", KEYS)
async def test_the_final_node_without_outputs_still_decides(key: str) -> None:
    domain = benchmark(key).role_domain
    quiet = next(one.name for one in by_domain(domain) if one.tool == "none")
    *_, (_, final, item) = await readings(key, MODES[0], domain, [quiet], "")
    assert (final.item, final.kind, final.contributions) == (item, "aggregate", [])


def test_the_note_of_the_debate_asks_for_no_style_of_its_own() -> None:
    phrases = [phrase for styles in load_settings().recognition.styles.values() for phrase in styles]
    [debate] = [mode for mode in MODES if mode.name == "Debate"]
    assert not any(phrase in debate.note.lower() for phrase in phrases)
