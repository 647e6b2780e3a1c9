from __future__ import annotations

from typing import Any

import pytest

from harness.agents.prompts import HINTS_HEADER, Record, agent_prompt, question_prompt
from harness.agents.roles import catalogue, role
from harness.benchmarks import benchmark
from harness.benchmarks.items import Item
from harness.simulator.parameters import load_settings
from harness.simulator.reading import Reader, Reading, recognise_role, split_records
from harness.simulator.world import QuestionIndex

from .samples import CUES, word_problems

ITEM = word_problems(1)[0]
RULES = benchmark("gsm_hard").output_rules
AGGREGATOR = "Weigh the analyses of the others, find errors, and commit to the single most reliable answer."


def read(*messages: Any) -> Reading:
    reader = Reader(QuestionIndex([ITEM]), load_settings().recognition, [RULES])
    return reader.read([message if isinstance(message, dict) else message._asdict() for message in messages])


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


@pytest.mark.parametrize("style", list(CUES))
def test_style_is_read_from_the_cue(style: str):
    assert read(*question_prompt(CUES[style], RULES, ITEM)).style == style


def test_words_of_the_question_and_of_records_are_no_cue():
    tricky = Item(
        id="t", benchmark="gsm_hard", question="Solve step by step: how many sub-steps are 3 steps?", gold="3"
    )
    reader = Reader(QuestionIndex([tricky]), load_settings().recognition, [])
    prompt = agent_prompt(role("Math/Economist"), "", tricky, [Record("A", "Step by step, cross-check, revise it.")])
    plain = [user(prompt[1].content)]
    assert reader.read(plain).style == "direct"
    assert reader.read(plain).kind == "solve"


def test_every_role_is_recognised_from_its_prompt():
    for one in catalogue():
        reading = read(*agent_prompt(one, RULES, ITEM))
        assert reading.role == one
        assert reading.item == ITEM
        assert reading.kind == {"text": "plan", "keywords": "search"}.get(one.output, "solve")


def test_no_role_where_none_is_described():
    assert recognise_role("You are helpful.") is None
    assert read(*question_prompt("", RULES, ITEM)).role is None


@pytest.mark.parametrize("key", [one.key for one in catalogue() if one.second_call])
def test_second_call_is_a_turn_of_its_own(key: str):
    one = role(key)
    first = agent_prompt(one, RULES, ITEM)
    reading = read(*first, {"role": "assistant", "content": "My notes."}, user(str(one.second_call)))
    assert reading.kind == "finish"
    assert reading.item == ITEM
    assert [(c.text, c.own) for c in reading.contributions] == [("My notes.", True)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (AGGREGATOR, "aggregate"),
        ("Point out the most important defect of the solution.", "critique"),
        ("Revise the solution following the advice.", "revise"),
        ("Make a plan first.", "plan"),
        ("Give keywords to look up.", "search"),
        ("Solve this.", "solve"),
    ],
)
def test_kind_is_read_from_the_instruction(text: str, kind: str):
    assert read({"role": "system", "content": text}, user(ITEM.question)).kind == kind
    assert read(user(f"{text}\n\n{ITEM.question}")).kind == kind


def test_the_latest_instruction_outranks_the_role():
    system = agent_prompt(role("Math/Engineer"), RULES, ITEM)[0]
    assert read(system, user(f"Point out the most important defect.\n{ITEM.question}")).kind == "critique"


def test_records_are_found_and_rules_are_not_part_of_them():
    records = [Record("Engineer", "First.\n\nStill first."), Record("Economist", "Second.")]
    prompt = agent_prompt(role("Math/Engineer"), RULES, ITEM, records)
    closing = {"role": "user", "content": f"{prompt[1].content}\n\n{RULES}"}
    reading = read(prompt[0], closing)
    assert [c.text for c in reading.contributions] == ["First.\n\nStill first.", "Second."]
    assert not any(c.own for c in reading.contributions)


def test_a_number_out_of_turn_belongs_to_its_record():
    head, records = split_records("Intro\n[1] A:\nx\n[3] not a record:\ny\n[2] B:\nz")
    assert head == "Intro\n"
    assert records == ["x\n[3] not a record:\ny", "z"]
    assert split_records("no records [1] here: none") == ("no records [1] here: none", [])


def test_hints_are_part_of_no_record():
    text = f"[1] A:\nx\n\n{HINTS_HEADER} 1; 2"
    assert split_records(text) == ("", ["x"])
    assert split_records(f"{text}\n\n[2] B:\ny")[1] == [f"x\n\n{HINTS_HEADER} 1; 2", "y"]


def test_feedback_is_noticed_in_records_only():
    record = Record("A", "```python\nx\n```\nvisible example 1: passed")
    assert read(*agent_prompt(role("Code/BugFixer"), RULES, ITEM, [record])).feedback
    assert not read(user(f"visible example\n{ITEM.question}")).feedback


def test_what_form_the_reply_takes_is_read_from_the_instruction():
    plain = read(*question_prompt("", RULES, ITEM))
    program = read(*question_prompt("Leave the result in a variable named answer.", RULES, ITEM))
    choice = read(*question_prompt("Name the letter of the candidate.", RULES, ITEM))
    assert [(one.program, one.choice) for one in (plain, program, choice)] == [
        (False, False),
        (True, False),
        (False, True),
    ]


def test_a_prompt_without_a_question():
    reading = read(user("Hello there"))
    assert reading.item is None
    assert reading.contributions == []
