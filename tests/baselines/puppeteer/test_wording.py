"""Simulated backbones are told what every turn is for, and find the question and the contributions in its prompt."""

from __future__ import annotations

from typing import Any

import pytest

from baselines.puppeteer.agents import (
    ACTIONS,
    KEYS,
    TERMINATE,
    Action,
    Contribution,
    Path,
    fenced,
    final,
    posed,
    stated,
    to_facts,
    turn,
)
from harness.agents.code_tools import Value
from harness.agents.prompts import EXAMPLES_RUN
from harness.agents.roles import catalogue
from harness.benchmarks import benchmark
from harness.benchmarks.items import CodeTask, Item
from harness.llm.request import Message
from harness.simulator.contributions import Reading
from harness.simulator.contributions import read as read_prompt
from harness.simulator.world import QuestionIndex
from tests.baselines.puppeteer.test_program import Scripted
from tests.baselines.puppeteer.world import Client, embedding, planned

KIND = {"planning": "plan", "critique": "critique", "modify": "revise", "reflect": "revise"}
BENCHMARKS = ("math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro")
CODE = CodeTask("double", "", "", ("assert double(2) == 4",))
QUESTION = "Crate 7 weighs 264 grams. What do ten of these crates weigh?"
SPEAKING = [action for action in ACTIONS if action.kind != "end"]


def item_of(key: str) -> Item:
    return Item("1", key, QUESTION, "2640", code=CODE if key in ("mbpp", "humaneval") else None)


def read(item: Item, messages: Any) -> Reading:
    return read_prompt([message._asdict() for message in messages], None, QuestionIndex([item]))


def path_of(*turns: tuple[Action, str, tuple[Message, ...]], item: Item) -> Path:
    path = Path()
    for action, text, messages in turns:
        source = "def double(x):\n    return 2 * x\n" if item.code else None
        one = Contribution(text, stated(text), (*messages, Message("assistant", text)), 10, source)
        path = path.after(action, one, embedding(text))
    return path


@pytest.mark.parametrize("key", BENCHMARKS)
@pytest.mark.parametrize("action", SPEAKING, ids=[action.key for action in SPEAKING])
def test_the_question_and_the_path_are_found_in_every_first_and_every_repeated_turn(action: Action, key: str) -> None:
    item, rules = item_of(key), benchmark(key).output_rules
    other = next(one for one in SPEAKING if one != action)
    opening = turn(action, item, rules, Path())
    path = path_of(
        (other, "Some words. The answer is 7", ()), (action, "More of them. The answer is 8", opening), item=item
    )
    later = turn(action, item, rules, path_of((other, "Some words. The answer is 7", ()), item=item))
    again = turn(action, item, rules, path)
    for messages, colleagues, own in ((opening, 0, 0), (later, 1, 0), (again, 2, 1)):
        reading = read(item, messages)
        assert reading.item == item
        assert [one.own for one in reading.contributions].count(False) == colleagues
        assert [one.own for one in reading.contributions].count(True) == own
        assert all("Crate" not in one.text for one in reading.contributions)


def test_the_last_record_carries_no_word_of_the_request() -> None:
    item = item_of("gsm_hard")
    python = ACTIONS[KEYS.index("python")]
    path = path_of((ACTIONS[1], "Only this. The answer is 7", ()), item=item)
    [record] = read(item, turn(python, item, "", path)).contributions
    assert record.text == "Only this. The answer is 7"


@pytest.mark.parametrize("action", SPEAKING, ids=[action.key for action in SPEAKING])
async def test_what_a_turn_is_for_is_said_with_it(action: Action) -> None:
    client, bench = Client(lambda request, number: "```python\nanswer = 42\n```"), Scripted(Value(printed="42"))
    await planned(action.key, "terminate", client=client, code_tools=bench)
    *asked, final = client.asked
    told = [request.metadata for _, request in asked]
    first = {
        "kind": KIND.get(action.key, "solve"),
        "style": "step_by_step" if action.key == "reasoning" else "direct",
        "form": "program" if action.key == "python" else "answer",
        "role": action.key,
        "instruction": "",
    }
    assert told == [first, {**first, "form": "answer"}][: 1 + (action.key == "python")]
    assert final[1].metadata == {
        "kind": "aggregate",
        "style": "direct",
        "form": "answer",
        "role": "",
        "instruction": "",
    }


@pytest.mark.parametrize("key", ["math", "gsm_hard", "mmlu_pro"])
def test_the_final_call_shows_the_candidates(key: str) -> None:
    item, rules = item_of(key), benchmark(key).output_rules
    path = path_of((ACTIONS[1], "So. The answer is 7", ()), (ACTIONS[7], "No. The answer is \\boxed{8}", ()), item=item)
    for messages, texts in (
        (final(item, rules, Path()), []),
        (final(item, rules, path), ["The answer is 7", "The answer is \\boxed{8}"]),
    ):
        reading = read(item, messages)
        assert reading.item == item
        assert [one.text for one in reading.contributions] == texts


@pytest.mark.parametrize("key", ["mbpp", "humaneval"])
def test_the_call_that_writes_a_missing_program_shows_what_was_said(key: str) -> None:
    item = item_of(key)
    path = path_of((ACTIONS[KEYS.index("planning")], "First this, then that.", ()), item=item)
    reading = read(item, final(item, benchmark(key).output_rules, path))
    assert reading.item == item
    assert [one.text for one in reading.contributions] == ["First this, then that."]


@pytest.mark.parametrize("key", BENCHMARKS)
def test_a_question_is_found_behind_what_its_task_puts_before_it(key: str) -> None:
    item, rules = item_of(key), benchmark(key).output_rules
    for action in SPEAKING:
        plain, told = (read(item, turn(action, one, rules, Path())) for one in (item, posed(item)))
        assert told == plain


def test_outcomes_of_examples_are_noticed() -> None:
    item = item_of("mbpp")
    text = f"{fenced('def double(x): ...')}\n\n{EXAMPLES_RUN}\n- example passed: assert double(2) == 4"
    path = path_of((ACTIONS[KEYS.index("python")], text, ()), item=item)
    reading = read(item, turn(ACTIONS[KEYS.index("critique")], item, "", path))
    assert reading.feedback
    assert [contribution.text for contribution in reading.contributions] == [text]


def test_only_agents_that_commit_to_an_answer_are_told_the_output_rules() -> None:
    item = item_of("gsm_hard")
    told = {action.key for action in SPEAKING if "RULES" in turn(action, item, "RULES", Path())[0].content}
    assert told == set(KEYS) - {"planning", "critique", "terminate"}


def test_there_are_ten_actions_with_ten_texts_that_no_role_of_the_catalogue_has() -> None:
    assert (
        *("planning", "reasoning", "critique", "reflect", "question", "summarize", "conclude", "modify", "python"),
        "terminate",
    ) == KEYS
    assert KEYS[TERMINATE] == "terminate"
    assert len({action.profile for action in ACTIONS}) == len({action.name for action in ACTIONS}) == 10
    taken = {role.instruction for role in catalogue()} | {role.description for role in catalogue()}
    assert not taken & {text for action in ACTIONS for text in (action.persona, action.instruction)}
    assert to_facts() == {"actions": [[action.key, action.profile] for action in ACTIONS]}
