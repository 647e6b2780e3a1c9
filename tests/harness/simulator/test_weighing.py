from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from harness.benchmarks import benchmark
from harness.simulator.answers import Answers
from harness.simulator.model import Context
from harness.simulator.parameters import load_settings
from harness.simulator.reading import Contribution, Reading
from harness.simulator.weighing import last_stance, weigh, wrong_answers_shown

from .samples import choices, mini, word_problems

PARAMETERS = load_settings().parameters
NUMBER = word_problems(3)[2]
SUMS = benchmark("gsm_hard")
WRONG = "552"
ANSWERS = Answers(NUMBER, SUMS, NUMBER.gold, SUMS.wrong_answers(NUMBER)[:4], [False] * 4)


def context(*texts: str, own: bool = False, answers: Answers = ANSWERS) -> Context:
    return weigh(answers, reading(*texts, own=own), PARAMETERS)


def reading(*texts: str, own: bool = False) -> Reading:
    contributions: Sequence[Contribution] = [Contribution(text, own) for text in texts]
    return Reading(NUMBER, "direct", "solve", None, contributions, feedback=False, program=False, choice=False)


def says(number: str, words: str = "I multiplied.") -> str:
    return f"{words}\n\nThe answer is {number}"


def test_right_and_wrong_are_told_apart_by_content():
    gold = NUMBER.gold
    assert context(says(gold)).right == 1
    assert context(says(gold)).wrong == []
    assert context(says(WRONG)).wrong == [1]
    assert context(says(WRONG)).right == 0


def test_wrong_answers_are_grouped_by_equality():
    texts = [says("552", "a b c d"), says("552.0", "e f g h"), says("12", "i j k l")]
    assert context(*texts).wrong == [2, 1]


def test_near_repetitions_and_own_turns_weigh_less():
    gold = NUMBER.gold
    assert context(says(gold), says(gold)).right == pytest.approx(1 + PARAMETERS.repeat_weight)
    different = says(gold, "Quite another way of looking at jars, crates, and their weights altogether")
    assert context(says(gold), different).right == 2
    assert context(says(gold), own=True).right == pytest.approx(PARAMETERS.repeat_weight)


def test_texts_without_a_stance_count_for_their_length_only():
    assert context("No idea, sorry.").right == 0
    assert context("No idea, sorry.").wrong == []
    assert context("No idea, sorry.").tokens == 5


def test_a_plan_weighs_less_than_an_answer():
    item = choices(1)[0]
    answers = Answers(item, benchmark("mmlu_pro"), "A", ["B", "C", "D", "E"], [False] * 4)
    assert (
        context(f"This leads to {answers.mention('A')} in the end.", answers=answers).right == PARAMETERS.notes_weight
    )
    assert context(f"This leads to {answers.mention('C')} in the end.", answers=answers).wrong == [
        PARAMETERS.notes_weight
    ]


def test_a_number_is_not_taken_for_the_beginning_of_another():
    item = dataclasses.replace(mini("math", 1)[0], gold="4")
    answers = Answers(item, benchmark("math"), "4", ["42", "5"], [False] * 2)
    stance = answers.stance(f"It leads to {answers.mention('42')} in the end.")
    assert stance is not None
    assert stance.answer == "42"
    assert not stance.right
    assert not stance.final


def test_a_quoted_line_speaks_for_its_program():
    item = mini("humaneval", 1)[0]
    code = item.code
    assert code is not None
    right = f"def {code.entry_point}(x):\n    y = x + 1\n    return y"
    wrong = f"def {code.entry_point}(x):\n    y = x - 1\n    return y"
    answers = Answers(item, benchmark("humaneval"), right, [wrong], [False])
    for program, expected in ((right, True), (wrong, False)):
        stance = answers.stance(f"I suggest {answers.mention(program)} in the end.")
        assert stance is not None
        assert stance.right is expected
        assert not stance.final
        final = answers.stance(answers.benchmark.present(item, program))
        assert final is not None
        assert final.right is expected
        assert final.final


def test_wrong_answers_shown_and_the_last_stance():
    shown = reading(says("12"), says(NUMBER.gold), says("13"), says("12"), "Nothing.")
    assert wrong_answers_shown(ANSWERS, shown) == ["12", "13"]
    last = last_stance(ANSWERS, shown)
    assert last is not None
    assert last.answer == "12"
    assert last_stance(ANSWERS, reading()) is None
