"""Simulated backbones understand every turn as what it is, and as nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from baselines.puppeteer.actions import ACTIONS, KEYS, TERMINATE, Action, to_facts
from baselines.puppeteer.path import Contribution, Path
from baselines.puppeteer.prompts import STATE, fenced, final, posed, stated, turn
from harness.agents.roles import catalogue
from harness.benchmarks import benchmark
from harness.benchmarks.items import CodeTask, Item
from harness.llm.request import Message
from harness.simulator.parameters import load_settings
from harness.simulator.reading import Reader, Reading
from harness.simulator.world import QuestionIndex
from tests.baselines.puppeteer.world import embedding

KIND = {"planning": "plan", "critique": "critique", "modify": "revise", "reflect": "revise"}
BENCHMARKS = ("math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro")
CODE = CodeTask("double", "", "", ("assert double(2) == 4",))
QUESTION = "Crate 7 weighs 264 grams. What do ten of these crates weigh?"
SPEAKING = [action for action in ACTIONS if action.kind != "end"]


def item_of(key: str) -> Item:
    return Item("1", key, QUESTION, "2640", code=CODE if key in ("mbpp", "humaneval") else None)


def read(item: Item, messages: Any) -> Reading:
    rules = [benchmark(key).output_rules for key in BENCHMARKS]
    reader = Reader(QuestionIndex([item]), load_settings().recognition, rules)
    return reader.read([message._asdict() for message in messages])


def path_of(*turns: tuple[Action, str, tuple[Message, ...]], item: Item) -> Path:
    path = Path()
    for action, text, messages in turns:
        source = "def double(x):\n    return 2 * x\n" if item.code else None
        one = Contribution(text, stated(text), (*messages, Message("assistant", text)), 10, source)
        path = path.after(action, one, embedding(text))
    return path


@pytest.mark.parametrize("key", BENCHMARKS)
@pytest.mark.parametrize("action", SPEAKING, ids=[action.key for action in SPEAKING])
def test_every_first_and_every_repeated_turn_is_read_as_what_it_is(action: Action, key: str) -> None:
    item, rules = item_of(key), benchmark(key).output_rules
    other = next(one for one in SPEAKING if one != action)
    expected = KIND.get(action.key, "solve")
    program = action.key == "python" and item.code is None
    opening = turn(action, item, rules, Path())
    path = path_of(
        (other, "Some words. The answer is 7", ()), (action, "More of them. The answer is 8", opening), item=item
    )
    later = turn(action, item, rules, path_of((other, "Some words. The answer is 7", ()), item=item))
    again = turn(action, item, rules, path)
    for messages, colleagues, own in ((opening, 0, 0), (later, 1, 0), (again, 2, 1)):
        reading = read(item, messages)
        assert (reading.item, reading.kind, reading.program, reading.role) == (item, expected, program, None)
        assert [one.own for one in reading.contributions].count(False) == colleagues
        assert [one.own for one in reading.contributions].count(True) == own
        assert reading.style == ("step_by_step" if action.key == "reasoning" else "direct")
        assert all("Crate" not in one.text for one in reading.contributions)


def test_the_last_record_carries_no_word_of_the_request() -> None:
    item = item_of("gsm_hard")
    python = ACTIONS[KEYS.index("python")]
    path = path_of((ACTIONS[1], "Only this. The answer is 7", ()), item=item)
    [record] = read(item, turn(python, item, "", path)).contributions
    assert record.text == "Only this. The answer is 7"


def test_stating_the_answer_asks_for_no_program() -> None:
    item = item_of("gsm_hard")
    python = ACTIONS[KEYS.index("python")]
    opening = turn(python, item, benchmark("gsm_hard").output_rules, Path())
    told = f"The program was executed; its variable answer holds 42\n\n{STATE}"
    reading = read(item, (*opening, Message("assistant", "A program."), Message("user", told)))
    assert (reading.kind, reading.program, reading.item) == ("solve", False, item)


@pytest.mark.parametrize("key", ["math", "gsm_hard", "mmlu_pro"])
def test_the_final_call_is_an_aggregation_with_or_without_candidates(key: str) -> None:
    item, rules = item_of(key), benchmark(key).output_rules
    path = path_of((ACTIONS[1], "So. The answer is 7", ()), (ACTIONS[7], "No. The answer is \\boxed{8}", ()), item=item)
    for messages, texts in (
        (final(item, rules, Path()), []),
        (final(item, rules, path), ["The answer is 7", "The answer is \\boxed{8}"]),
    ):
        reading = read(item, messages)
        assert (reading.item, reading.kind, reading.program, reading.role) == (item, "aggregate", False, None)
        assert [one.text for one in reading.contributions] == texts


@pytest.mark.parametrize("key", ["mbpp", "humaneval"])
def test_the_call_that_writes_a_missing_program_is_a_solution_from_what_was_said(key: str) -> None:
    item = item_of(key)
    path = path_of((ACTIONS[KEYS.index("planning")], "First this, then that.", ()), item=item)
    reading = read(item, final(item, benchmark(key).output_rules, path))
    assert (reading.item, reading.kind, reading.program, reading.role) == (item, "solve", False, None)
    assert [one.text for one in reading.contributions] == ["First this, then that."]


@pytest.mark.parametrize("key", BENCHMARKS)
def test_a_question_is_found_behind_what_its_task_puts_before_it(key: str) -> None:
    item, rules = item_of(key), benchmark(key).output_rules
    for action in SPEAKING:
        plain, told = (read(item, turn(action, one, rules, Path())) for one in (item, posed(item)))
        assert told == plain


def test_outcomes_of_examples_are_noticed() -> None:
    item = item_of("mbpp")
    text = f"{fenced('def double(x): ...')}\n\n- example passed: assert double(2) == 4"
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
