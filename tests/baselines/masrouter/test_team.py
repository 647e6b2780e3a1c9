"""Every mode on a scripted model: order of calls, visible context, and failures."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from baselines.masrouter import team
from baselines.masrouter.router import Choices, TeamPlan
from harness.agents.code_tools import CodeTools
from harness.agents.roles import by_domain, by_key, catalogue
from harness.agents.trajectory import Trajectory
from harness.llm.request import Reply, Request
from harness.scripted import backbones
from tests.baselines.masrouter.test_router import MODE_NAMES, method, walk
from tests.fixtures import CODE, FAILED, ITEMS, RULES, Client, FakeSandbox, sampling

# Two of them are called twice by themselves.
ROLES = ("Critic", "Reflector", "Historian", "WikiSearcher", "Economist", "Scientist")
TWICE = {"Reflector", "WikiSearcher"}
BACKBONES = ("small", "small", "large", "small", "large", "large")
BY_NAME = {mode.key: mode for mode in team.MODES}
QUESTION = f"Question:\n{ITEMS[0].question}"
# What each slot sees, written down a second time.
SEES = {
    "Chain": [[], [0], [1], [2], [3], [4]],
    "FullConnected": [[], [0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4]],
}


class Planned:
    """Fake router with scripted decisions."""

    def __init__(self, mode: str, roles: Sequence[str], llms: Sequence[str], domain: str = "Commonsense") -> None:
        names = [role.name for role in by_domain(domain)]
        keys = list(backbones())
        self.choices = Choices(
            MODE_NAMES.index(mode), tuple(map(names.index, roles)), tuple(keys.index(key) for key in llms)
        )

    def decide(self, question: Any, noise: Any, uniforms: Any) -> TeamPlan:
        zero, roles = torch.zeros(1), torch.zeros(1, 6, 12)
        return TeamPlan((self.choices,), zero, torch.zeros(1, 3), zero, torch.zeros(1, 6), roles, torch.zeros(1, 2))


def role_of(request: Request) -> str:
    opening = request.messages[0].content
    return next((role.name for role in catalogue() if opening.startswith(role.description)), "")


def by_role(backbone: str, request: Request) -> str:
    """Return a reply that names its role and turn."""
    name = role_of(request)
    if not name:
        return "the end"
    turn = "second" if len(request.messages) > 2 else "first"
    late = " later" if "previous round" in request.messages[1].content else ""
    return f"{name} {turn}{late}"


async def at_work(
    mode: str, agents: int, client: Client | None = None, **options: Any
) -> tuple[Trajectory, list[tuple[str, Request]]]:
    client = client or Client(by_role)
    planned = Planned(mode, ROLES[:agents], BACKBONES[:agents])
    trajectory, _ = await walk(planned, client, **options)
    return trajectory, client.asked


def shown(header: str, *lines: tuple[str, str]) -> str:
    numbered = [f"[{at}] {speaker}:\n{text}" for at, (speaker, text) in enumerate(lines, 1)]
    return "\n\n".join([QUESTION, *([header, *numbered] if lines else [])])


def last_text(mode: str, name: str, agents: int = 6) -> str:
    """Return what an agent says last; alone in a debate, it has heard nobody in the second round either."""
    turn = "second" if name in TWICE or mode == "Reflection" else "first"
    return f"{name} {turn}{' later' if mode == 'Debate' and agents > 1 else ''}"


@pytest.mark.parametrize("agents", [1, 6])
@pytest.mark.parametrize("mode", MODE_NAMES)
async def test_every_mode_calls_in_its_sequence_and_shows_everyone_what_it_should(mode: str, agents: int) -> None:
    trajectory, asked = await at_work(mode, agents)
    expected = []
    for number in range(1, 3 if mode == "Debate" else 2):
        for slot, name in enumerate(ROLES[:agents]):
            twice = name in TWICE or mode == "Reflection"
            for purpose in ("act", "second_call") if twice else ("act",):
                expected.append((number, slot + 1, purpose, BACKBONES[slot], f"Commonsense/{name}", True))
    most = max(("small", "large"), key=lambda key: (BACKBONES[:agents].count(key), key == BACKBONES[0]))
    expected.append((3 if mode == "Debate" else 2, 0, "aggregate", most, "", False))
    calls = trajectory.calls
    assert [(call.step, call.slot, call.purpose, call.backbone, call.role, call.is_step) for call in calls] == expected
    assert trajectory.answer == "the end"
    assert all(sampling(request) == backbones()[backbone].sampling for backbone, request in asked)
    assert len({request.draw for _, request in asked}) == len(asked) == len(calls)
    *turns, (closing, final) = asked
    assert (closing, role_of(final)) == (most, "")
    rounds: dict[str, list[Request]] = {}
    for _, request in turns:
        if len(request.messages) == 2:
            rounds.setdefault(role_of(request), []).append(request)
    assert list(rounds) == list(ROLES[:agents])
    for slot, (name, requests) in enumerate(rounds.items()):
        agent_role = by_key()[f"Commonsense/{name}"]
        blocks = [agent_role.description, agent_role.instruction, BY_NAME[mode].note, team.TEXTS[agent_role.output]]
        assert {request.messages[0].content for request in requests} == {"\n\n".join(filter(None, blocks))}
        earlier = SEES.get(mode, [[]] * 6)[slot]
        lines = [(f"Agent {'ABCDEF'[at]}, {ROLES[at]}", last_text(mode, ROLES[at])) for at in earlier]
        seen = [shown(team.THIS_ROUND, *lines)]
        if mode == "Debate":
            others = [at for at in range(agents) if at != slot]
            lines = [(f"Agent {'ABCDEF'[at]}, {ROLES[at]}", last_text("IO", ROLES[at])) for at in others]
            seen.append(shown(team.PREVIOUS_ROUND, *lines))
        assert [request.messages[1].content for request in requests] == seen
    lines = [(f"Agent {'ABCDEF'[slot]}", last_text(mode, name, agents)) for slot, name in enumerate(ROLES[:agents])]
    told = f"{team.TASKS['Commonsense'].instruction}\n\n{RULES}", shown(team.LAST_OUTPUTS, *lines)
    assert tuple(message.content for message in final.messages) == told


def failing(*names: str, later: bool = False) -> Any:
    """Return a client on which calls of these roles fail, all of them or those of the second round."""

    def answering(backbone: str, request: Request) -> str | Reply:
        text = by_role(backbone, request)
        return FAILED if role_of(request) in names and (not later or "later" in text) else text

    return Client(answering)


@pytest.mark.parametrize("mode", MODE_NAMES)
async def test_when_nobody_comes_back_the_final_node_is_told_and_answers_alone(mode: str) -> None:
    trajectory, requests = await at_work(mode, 3, failing(*ROLES))
    assert requests[-1][1].messages[1].content == f"{QUESTION}\n\n{team.NOTHING_CAME_BACK}"
    assert trajectory.answer == "the end"
    assert [call.error for call in trajectory.calls] == ["gone"] * 3 * BY_NAME[mode].rounds + [None]


async def test_a_silent_agent_is_shown_to_nobody_and_keeps_its_letter() -> None:
    for mode in ("FullConnected", "Debate"):
        _, requests = await at_work(mode, 3, failing("Reflector"))
        texts = [request.messages[1].content for _, request in requests if len(request.messages) == 2]
        assert not any("Agent B" in text for text in texts)
        assert "[1] Agent A:" in texts[-1]
        assert "[2] Agent C:" in texts[-1]
    # In a chain it cuts off what came before.
    _, requests = await at_work("Chain", 3, failing("Reflector"))
    [historian] = [request for _, request in requests if role_of(request) == "Historian"]
    assert historian.messages[1].content == QUESTION
    # Who fails in the last round has no output.
    _, requests = await at_work("Debate", 3, failing("Critic", later=True))
    assert "Agent A" not in requests[-1][1].messages[1].content
    assert "Agent A, Critic" in requests[-3][1].messages[1].content


EXPERT, DESIGNER, _ = CODERS = ("ProgrammingExpert", "AlgorithmDesigner", "ProgrammingExpert")
GOOD, BAD = (f"```python\ndef double(x):\n    return {word}\n```" for word in ("'GOOD'", "'BAD'"))


async def coding(mode: str, replies: dict[str, str], **options: Any) -> tuple[Trajectory, Client]:
    client = Client(lambda backbone, request: replies.get(role_of(request), "the end"))
    trajectory, _ = await walk(Planned(mode, CODERS, ["small"] * 3, "Code"), client, CODE, domain="Code", **options)
    return trajectory, client


def cuts(trajectory: Trajectory) -> list[tuple[int, int, str, int, float]]:
    decisions = [decision for decision in trajectory.decisions if decision.name == "short_cut"]
    return [(cut.step, cut.slot, cut.choice, cut.options, cut.log_prob) for cut in decisions]


@pytest.mark.parametrize(
    ("mode", "replies", "called", "taken"),
    [
        # Step and slot of the calls, then of the short cuts, with whom each follows and of how many it could choose.
        ("FullConnected", {EXPERT: GOOD}, [(1, 1)], [(1, 2, "A", 1), (1, 3, "A", 2)]),
        ("FullConnected", {EXPERT: BAD, DESIGNER: GOOD}, [(1, 1), (1, 2)], [(1, 3, "B", 2)]),
        ("Chain", {EXPERT: BAD, DESIGNER: "Use addition."}, [(1, 1), (1, 2), (1, 3)], []),
        ("IO", {EXPERT: GOOD}, [(1, 1), (1, 2), (1, 3)], []),
        (
            "Debate",
            {EXPERT: GOOD, DESIGNER: "Use addition."},
            [(1, 1), (1, 2), (1, 3)],
            [(2, 1, "C", 2), (2, 2, "A", 2), (2, 3, "A", 2)],
        ),
        ("FullConnected", dict.fromkeys(CODERS, "I would rather not."), [(1, 1), (1, 2), (1, 3)], []),
    ],
)
async def test_a_visible_program_that_passes_is_handed_on_without_a_call(
    mode: str, replies: dict[str, str], called: list[tuple[int, int]], taken: list[tuple[int, int, str, int]]
) -> None:
    trajectory, client = await coding(mode, replies)
    *steps, final = [(call.step, call.slot) for call in trajectory.calls]
    assert (steps, final) == (called, (BY_NAME[mode].rounds + 1, 0))
    assert cuts(trajectory) == [(step, slot, f"Agent {who}", count, 0.0) for step, slot, who, count in taken]
    if replies.get(EXPERT) == BAD:
        assert client.requests[1].messages[1].content.count("- example failed: assert double(1) == 2") == 1
    for step, slot, _, _ in taken:
        assert step < BY_NAME[mode].rounds or f"Agent {'ABC'[slot - 1]}:\n{GOOD}" in client.users[-1]


async def test_tools_see_the_tests_that_the_setting_grants() -> None:
    for granted, checks in (("first", set(CODE.code.visible)), ("all", {CODE.code.checks})):
        sandbox = FakeSandbox()
        tools: Any = {"code_tools": CodeTools(sandbox), "visible_tests": granted}
        trajectory, _ = await coding("Chain", {"ProgrammingExpert": GOOD}, **tools)
        assert {program.checks for program in sandbox.given} == checks
        assert "assert" not in "".join(call.tool for call in trajectory.calls)


def test_a_role_has_the_formats_and_the_profile_of_its_released_file() -> None:
    # Formats of first and second call in the released files, in our words.
    released: dict[str, tuple[Any, Any]] = {
        "Code/PlanSolver": ("text", "code"),
        "Code/ProgrammingExpert": ("code", None),
        "Commonsense/WikiSearcher": ("keywords", "answer"),
        "Math/SoftwareDeveloper": ("formula", "answer"),
    }
    names = "Name MessageAggregation Description OutputFormat PostProcess PostDescription PostOutputFormat"
    for key, (first, second) in released.items():
        entry = by_key()[key]
        # A second call that the mode adds repeats the format of the first.
        assert team.formats_of(entry) == (team.TEXTS[first], team.TEXTS[second or first])
        description = f"{entry.description} {entry.instruction}"
        texts = (entry.name, entry.sees, description, first, entry.tool, entry.second_call, second)
        entries = list(zip(names.split(), (text or "none" for text in texts), strict=True))
        assert list(json.loads(team.profile(entry)).items()) == entries
        assert [entry.key, team.profile(entry)] in method(domain=entry.domain).choices()["roles"]
