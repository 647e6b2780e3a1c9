"""Workflows on a scripted model: calls, visible context, temperatures, and results."""

import itertools
from typing import Any

import pytest

from baselines.aflow.operators import CANDIDATES, HEADER, NodeRun, run_workflow
from baselines.aflow.workflow import MOST_NODES, MOST_REPEATS, Workflow, check, start
from harness.agents.prompts import question_prompt
from harness.agents.trajectory import Trajectory
from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.items import Item
from harness.benchmarks.programs import fenced
from harness.llm.request import Message, Metadata, Reply
from harness.scripted import ScriptedModel
from tests import fixtures
from tests.baselines.aflow.test_workflow import flow, node, when
from tests.fixtures import CODE, FAILED, RULES

ITEM = Item(id="1", benchmark="gsm_hard", question="How many eggs?", gold="3.0")
WRONG = fenced("def double(x):\n    return x")
GOOD = fenced("def double(x):\n    return 2 * x  # good")


async def run(workflow: Workflow, client: Any, item: Item = ITEM, **equipment: Any) -> Trajectory:
    check(workflow, {"humaneval": "Code", "mmlu_pro": "Commonsense"}.get(item.benchmark, "Math"))
    context = fixtures.context(item, client, RULES, **{"extract": None, **equipment})
    return context.close(await run_workflow(workflow, "small", context))


def calls(trajectory: Trajectory) -> list[tuple[int, str, int]]:
    assert all(call.is_step for call in trajectory.calls)
    return [(call.step, call.purpose, call.slot) for call in trajectory.calls]


def user(client: ScriptedModel) -> str:
    return client.asked[-1][1].messages[-1].content


CHOICE = Item(id="m", benchmark="mmlu_pro", question="Which of them?\nA. this\nB. that", gold="B")


@pytest.mark.parametrize(
    ("workflow", "item", "reply", "answer", "purpose"),
    [
        (start("Math"), ITEM, "The answer is 3", "The answer is 3", "custom"),
        (start("Code"), CODE, f"It is easy.\n\n{GOOD}\n\nThat is all.", GOOD, "generate_code"),
        (start("Code"), CODE, "I have no idea.", "I have no idea.", "generate_code"),
        (start("Code"), CODE, FAILED, "", "generate_code"),
        (flow(node("a", "AnswerGenerate")), CHOICE, "B", "B", "generate_answer"),
    ],
)
async def test_an_operator_alone_is_one_greedy_call_with_the_prompt_of_single_llm(
    workflow: Workflow, item: Item, reply: str | Reply, answer: str, purpose: str
) -> None:
    client = ScriptedModel(reply)
    trajectory = await run(workflow, client, item, extract=benchmark(item.benchmark).extract)
    assert trajectory.answer == answer
    assert calls(trajectory) == [(1, purpose, 0)]
    [(backbone, request)] = client.asked
    assert (backbone, request.temperature, request.draw) == ("small", 0.0, 0)
    assert request.messages[-1].content.endswith(question_prompt("", RULES, item)[0].content)
    assert (purpose != "generate_answer") == (request.messages == question_prompt("", RULES, item))
    assert request.metadata == Metadata(purpose=purpose)


async def test_instruction_and_inputs_are_shown_without_what_a_failed_call_left_empty() -> None:
    client = ScriptedModel("First.", FAILED, "Second.")
    first, nothing = node("a", "Custom", instruction="Plan."), node("b", "Custom")
    trajectory = await run(flow(first, nothing, node("c", "Custom", "a", "b", instruction="Do.")), client)
    assert trajectory.answer == "Second."
    assert calls(trajectory) == [(1, "custom", 0), (2, "custom", 0), (3, "custom", 0)]
    assert client.asked[0][1].messages == question_prompt("Plan.", RULES, ITEM)
    assert client.asked[2][1].messages == (
        Message("system", f"Do.\n\n{RULES}"),
        Message("user", f"Question:\n{ITEM.question}\n\n{HEADER}\n\n[1] Result of a:\nFirst."),
    )


@pytest.mark.parametrize("greedy", [False, True])
async def test_repeated_runs_are_a_greedy_one_and_independent_samples(greedy: bool) -> None:
    client = ScriptedModel("one", "two", "three", "four")
    repeated = flow(node("a", "Custom", repeat=3), node("b", "Custom", "question", "a"))
    trajectory = await run(repeated, client, greedy=greedy)
    sampling = sorted((request.temperature, request.draw) for _, request in client.asked)
    assert sampling == [(0.0, 0), (0.0, 0), (0.7, 1), (0.7, 2)]
    assert calls(trajectory) == [(1, "custom", 0), (1, "custom", 3), (1, "custom", 6), (2, "custom", 0)]
    assert user(client).endswith("[1] Result of a:\none\n\n[2] Result of a:\ntwo\n\n[3] Result of a:\nthree")
    context: Any = None
    runs = [NodeRun(context, "m", *at) for at in itertools.product(range(1, MOST_NODES + 1), range(MOST_REPEATS))]
    sampled = [run.draw for run in runs if run.repetition]
    assert len(set(sampled) - {0}) == len(sampled) == 40


VALUE = fenced("answer = 3")
GIVEN = f"{VALUE}\nThe answer is 3"
A, P, E = node("a", "Custom"), node("p", "Programmer"), node("e", "ScEnsemble", "a")
T, TWICE = node("t", "Test", "a"), node("a", "Custom", repeat=2)
OF_A = node("p", "Programmer", "a")
UNTESTED = Item(id="n", benchmark="humaneval", question="def f(): ...", gold="")


def c(*inputs: str, if_: tuple[str, str] | None = None) -> Any:
    """Return a node named c that asks once, if an earlier one ended with a status."""
    return node("c", "Custom", *inputs, when=if_ and when(*if_))


REPAIR = (A, T, c("t", if_=("t", "failed")))


@pytest.mark.parametrize(
    ("nodes", "item", "replies", "steps", "answer"),
    [
        # A condition looks at the status of an earlier node; a node left out passes its first input on, or what it
        # watches, and has no status.
        ((P, c("p", if_=("p", "failed"))), ITEM, [VALUE, "Checked."], "1", GIVEN),
        ((P, c("p", if_=("p", "passed"))), ITEM, [VALUE, "Checked."], "12", "Checked."),
        ((A, OF_A, c("question", "a", "p", if_=("p", "failed"))), ITEM, ["1.", VALUE], "12", "1."),
        ((A, OF_A, c("question", if_=("p", "failed"))), ITEM, ["1.", VALUE], "12", GIVEN),
        # What failed is no candidate, and one candidate is no choice.
        ((A, E), ITEM, ["one"], "1", "one"),
        ((TWICE, E), ITEM, [FAILED, "two"], "11", "two"),
        ((TWICE, E), ITEM, [FAILED], "11", ""),
        # A failed call ends the programmer.
        ((P,), ITEM, ["Too hard.", f"So:\n\n{VALUE}\n\nThe answer is 4"], "11", GIVEN),
        ((P,), ITEM, ["I think the answer is 3", FAILED], "11", "I think the answer is 3"),
        # The first candidate that passes its examples is taken; without examples every program passes.
        ((TWICE, T), CODE, [WRONG, GOOD], "11", GOOD),
        ((node("a", "Custom", repeat=3), T), CODE, ["none", WRONG, WRONG.replace("x)", "y)"), GOOD], "1112", GOOD),
        (REPAIR, CODE, ["No program at all.", "Fixed."], "13", "Fixed."),
        (REPAIR, CODE, [WRONG, "Only words.", "Fixed."], "123", "Fixed."),
        (REPAIR, UNTESTED, [WRONG], "1", WRONG),
    ],
)
async def test_which_nodes_ask(nodes: tuple[Any, ...], item: Item, replies: list[Any], steps: str, answer: str) -> None:
    trajectory = await run(flow(*nodes), ScriptedModel(*replies), item)
    assert "".join(str(call.step) for call in trajectory.calls) == steps
    assert trajectory.answer == answer


@pytest.mark.parametrize(
    ("reply", "answer", "choice"),
    [
        ("The second agrees.\nCandidate B", "two", "B"),
        ("Candidate A differs, so: **Candidate: (B)**", "two", "B"),
        ("I prefer candidate a little longer.", "one", "unlisted"),
        (FAILED, "one", "unlisted"),
    ],
)
async def test_the_ensemble_picks_by_letter_and_else_the_first(reply: str | Reply, answer: str, choice: str) -> None:
    client = ScriptedModel("one", "two", reply)
    trajectory = await run(flow(TWICE, E), client)
    assert trajectory.answer == answer
    assert calls(trajectory)[-1] == (2, "ensemble", 0)
    [decision] = trajectory.decisions
    assert (decision.name, decision.step, decision.choice, decision.options) == ("ensemble", 2, choice, 2)
    system, prompt = client.asked[-1][1].messages
    assert RULES not in system.content
    assert client.asked[-1][1].metadata == Metadata(purpose="ensemble")
    candidates = "[1] Candidate A:\none\n\n[2] Candidate B:\ntwo"
    assert prompt.content == f"Question:\n{ITEM.question}\n\n{CANDIDATES}\n\n{candidates}"


async def test_the_programmer_tries_again_with_the_reason_three_times_at_most() -> None:
    client = ScriptedModel("Too hard.", fenced("x = 1"), fenced("answer = None"), "Never.")
    trajectory = await run(flow(node("p", "Programmer")), client)
    assert calls(trajectory) == [(1, "program", 0), (1, "program", 1), (1, "program", 2)]
    assert trajectory.answer == fenced("answer = None")
    prompts = [request.messages for _, request in client.asked]
    assert "a variable named answer" in prompts[0][-1].content
    assert RULES in prompts[0][-1].content
    assert [len(prompt) for prompt in prompts] == [1, 3, 5]
    assert prompts[2][:3] == prompts[1]
    assert prompts[1][1] == Message("assistant", "Too hard.")
    assert "there is no program in a fenced Python block" in prompts[1][2].content
    assert "it has no variable named answer" in prompts[2][4].content
    assert all(request.temperature == 0.0 for _, request in client.asked)


async def test_three_reflections_are_all_there_are_and_the_last_one_goes_on() -> None:
    texts = [WRONG.replace("x)", f"x{number})") for number in range(5)]
    client = ScriptedModel(*texts)
    trajectory = await run(flow(A, T), client, CODE)
    assert trajectory.answer == texts[3]
    assert len(client.asked) == 4
    assert "failed: assert double(1) == 2" in user(client)
    assert texts[2] in user(client)
    assert texts[1] not in user(client)
    # Hidden tests are not seen.
    assert not any("21" in message.content for _, request in client.asked for message in request.messages)
