"""What each role is told of the form of its replies, against the released role files; what stands for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baselines.masrouter.team import MODES, TEXTS, formats_of, profile
from harness.agents.roles import Role, catalogue, role
from harness.llm.encoder import SentenceEncoder
from harness.simulator.tokens import tokenizer
from tests.baselines.masrouter.world import RULES, Client, Passing, Planned, pool, role_of, walk

# OutputFormat and PostOutputFormat of the released files; of the roles that are not listed, the last entry of a domain.
RELEASED: dict[str, tuple[str, str]] = {
    "Code/AlgorithmDesigner": ("Text", "None"),
    "Code/ProjectManager": ("Text", "None"),
    "Code/PlanSolver": ("Text", "CodeCompletion"),
    "Code/TestAnalyst": ("Text", "CodeCompletion"),
    "Code/BugFixer": ("CodeCompletion", "CodeCompletion"),
    "Code/ReflectProgrammer": ("CodeCompletion", "CodeCompletion"),
    "Code": ("CodeCompletion", "None"),
    "Commonsense/Reflector": ("Answer", "Answer"),
    "Commonsense/WikiSearcher": ("Keys", "Answer"),
    "Commonsense": ("Answer", "None"),
    "Math/Inspector": ("Answer", "None"),
    "Math/ProgrammingExpert": ("CodeSolver", "Answer"),
    "Math/SoftwareDeveloper": ("Calculation", "Answer"),
    "Math": ("Calculation", "None"),
}
OURS: dict[str, Any] = {
    "Text": "text",
    "CodeCompletion": "code",
    "CodeSolver": "program",
    "Calculation": "formula",
    "Answer": "answer",
    "Keys": "keywords",
}
ROLES = pytest.mark.parametrize("one", catalogue(), ids=lambda one: one.key)


def released(one: Role) -> tuple[str, str]:
    return RELEASED.get(one.key, RELEASED[one.domain])


async def told(one: Role, mode: str) -> list[tuple[str, ...]]:
    """The system text and, of a second call, the last message of all calls of a role that is alone with a question."""
    client = Client(lambda backbone, request: "I think so.")
    await walk(Planned(mode, [one.name], ["small"], one.domain), client, domain=one.domain, sandbox=Passing())
    *own, final = [request for _, request in client.asked]
    assert (role_of(own[0]), role_of(final)) == (one.name, "")
    assert final.messages[0].content.endswith(RULES)
    return [(one.messages[0].content, *(message.content for message in one.messages[3:])) for one in own]


@ROLES
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
async def test_a_role_has_its_own_formats_and_the_final_node_alone_the_benchmark_s(one: Role, mode: Any) -> None:
    first, second = released(one)
    asked = None if second == "None" else f"{one.second_call}\n\n{TEXTS[OURS[second]]}"
    if asked is None and mode.second_call:
        asked = "\n\n".join(filter(None, (mode.second_call, TEXTS[OURS[first]])))
    system = "\n\n".join(filter(None, (one.description, one.instruction, mode.note, TEXTS[OURS[first]])))
    calls = [(system,)] if asked is None else [(system,), (system, asked)]
    assert await told(one, mode.name) == calls * mode.rounds
    assert not any(RULES in text for call in calls for text in call)


def test_designers_and_planners_are_told_no_format_before_they_write_code() -> None:
    silent = {one.key for one in catalogue() if not formats_of(one).first}
    assert silent == {f"Code/{name}" for name in ("AlgorithmDesigner", "ProjectManager", "PlanSolver", "TestAnalyst")}
    assert {key for key in silent if formats_of(role(key)).second} == {"Code/PlanSolver", "Code/TestAnalyst"}


@ROLES
def test_the_whole_profile_stands_for_a_role(one: Role) -> None:
    found = json.loads(profile(one))
    names = "Name MessageAggregation Description OutputFormat PostProcess PostDescription PostOutputFormat"
    assert list(found) == names.split()
    first, second = released(one)
    assert (found["OutputFormat"], found["PostOutputFormat"]) == (OURS[first], OURS.get(second, "none"))
    assert (found["Name"], found["MessageAggregation"], found["PostProcess"]) == (one.name, one.sees, one.tool)
    assert one.description in found["Description"]
    assert one.instruction in found["Description"]
    assert found["PostDescription"] == (one.second_call or "none")
    assert [one.key, profile(one)] in pool(one.domain).to_facts()["roles"]


def test_no_profile_is_longer_than_the_encoder_reads() -> None:
    assert max(len(tokenizer().encode(profile(one)).ids) for one in catalogue()) <= SentenceEncoder().max_tokens
