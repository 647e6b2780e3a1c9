"""Simulated backbones are told what every turn is for, and find the question and the contributions in its prompt."""

from __future__ import annotations

import pytest

from baselines.masrouter.team import MODES, Mode
from harness.agents.roles import by_domain, role
from harness.benchmarks import benchmark
from harness.benchmarks.items import Item
from harness.benchmarks.loading import load_items
from harness.llm.request import Request
from harness.simulator.contributions import Reading, read
from harness.simulator.world import QuestionIndex
from tests.baselines.masrouter.world import Client, Passing, Planned, walk

FIRST = {"text": "plan", "keywords": "search"}


async def readings(key: str, mode: Mode, roles: list[str], text: str) -> tuple[Item, list[tuple[Request, Reading]]]:
    item, domain = load_items(key, "embedded").items[0], benchmark(key).role_domain
    client = Client(lambda backbone, request: text)
    await walk(
        Planned(mode.name, roles, ["small"] * len(roles), domain), client, item, domain=domain, sandbox=Passing("-")
    )
    index = QuestionIndex([item])
    return item, [
        (request, read([message._asdict() for message in request.messages], request.metadata, index))
        for _, request in client.asked
    ]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("key", ["gsm_hard", "mbpp", "mmlu_pro"])
async def test_every_turn_is_taken_for_what_it_is(key: str, mode: Mode) -> None:
    """All roles of a domain, in teams of at most six; nobody is cut short."""
    names = [one.name for one in by_domain(benchmark(key).role_domain)]
    for roles in (names[:6], names[6:]):
        item, [*turns, (_, final)] = await readings(key, mode, roles, "I think so.")
        for request, reading in turns:
            assert request.metadata is not None
            its = role(request.metadata["role"])
            assert (reading.item, reading.role) == (item, its)
            own = [True] * (len(request.messages) > 2)
            others = [False] * request.messages[1].content.count("] Agent ")
            assert [one.own for one in reading.contributions] == others + own
            assert reading.kind == ("finish" if own and its.second_call else FIRST.get(its.output, "solve"))
            assert reading.style == ("direct" if its.output == "text" and mode.name != "CoT" else "step_by_step")
        assert (final.item, final.role, final.kind, final.style) == (item, None, "aggregate", "direct")
        assert [one.text.startswith("I think so.") for one in final.contributions] == [True] * len(roles)


async def test_the_final_node_without_outputs_still_decides() -> None:
    quiet = next(one.name for one in by_domain("Math") if one.tool == "none")
    item, [*_, (_, final)] = await readings("gsm_hard", MODES[0], [quiet], "")
    assert (final.item, final.kind, final.contributions) == (item, "aggregate", [])
