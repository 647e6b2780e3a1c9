"""The equations of the response model, and what contributions add up to."""

import dataclasses
from statistics import correlation, fmean, pstdev

import pytest

from harness.agents.roles import by_key
from harness.benchmarks import benchmark
from harness.simulator.contributions import Answers, Contribution, Reading, stances, weigh
from harness.simulator.parameters import load_settings
from harness.simulator.response_model import Evidence, affinity, difficulty, overload, pull, role_fit, sigmoid

from .samples import choices, mini, word_problems

PARAMETERS = load_settings().parameters
NUMBER = word_problems(3)[2]
SUMS = benchmark("gsm_hard")
ANSWERS = Answers(NUMBER, SUMS, NUMBER.gold, SUMS.wrong_answers(NUMBER)[:4], [False] * 4)


def test_difficulty_is_about_standard_normal_and_known_difficulty_carries_its_weight() -> None:
    known = [(n + 0.5) / 3000 for n in range(3000)]
    for shares in ([None] * 3000, known):
        values = [difficulty(f"question {n}", share, PARAMETERS) for n, share in enumerate(shares)]
        assert abs(fmean(values)) < 0.06
        assert abs(pstdev(values) - 1) < 0.06
    assert abs(correlation(known, values) - PARAMETERS.difficulty_weight) < 0.08
    assert all(abs(difficulty("q", share, PARAMETERS)) < 10 for share in (0.0, 1.0))


def test_affinity_and_fit_have_the_stated_spread() -> None:
    a, b = ([affinity(f"q{n}", one, PARAMETERS) for n in range(3000)] for one in ("one", "other"))
    assert abs(pstdev(a) - PARAMETERS.disagreement_sd) < 0.15
    assert abs(correlation(a, b)) < 0.07
    still = PARAMETERS.model_copy(update={"role_jitter_sd": 0.0})
    flat = PARAMETERS.model_copy(update={"role_fit": {}})
    jitter = [role_fit(by_key()["Math/Engineer"], "math", f"q{n}", flat) for n in range(2000)]
    assert abs(pstdev(jitter) - PARAMETERS.role_jitter_sd) < 0.05
    assert role_fit(None, "mbpp", "q", PARAMETERS) == 0
    assert role_fit(by_key()["Code/BugFixer"], "mbpp", "q", still) == PARAMETERS.role_fit["Code"]["mbpp"]
    assert role_fit(by_key()["Code/BugFixer"], "a benchmark the table does not know", "q", still) == 0


def test_the_pull_is_the_stated_equation() -> None:
    """Three right voices against two that contradict each other, for a backbone that is right half the time."""
    values = PARAMETERS
    gain = values.discernment_base + values.discernment_per_accuracy * 0.5
    balance = (1 + gain) * 3 - (1 - gain) * 2**0.5
    found = pull(Evidence(3, [1, 1]), 0.5, False, values)
    assert pull(Evidence(), 0.5, False, values) == 0
    assert found == pytest.approx(values.evidence_strength * balance / 6**0.5)
    assert pull(Evidence(3, [1, 1]), 0.5, True, values) == pytest.approx(values.aggregation_factor * found)
    assert pull(Evidence(3, [1, 1], feedback=True), 0.5, False, values) > found
    assert overload(Evidence(tokens=2000), values) == pytest.approx(2 * values.overload_per_1000_tokens)
    assert sigmoid(2) == pytest.approx(1 / (1 + 2.718281828459045**-2))
    assert (sigmoid(-1e4), sigmoid(1e4)) == (0, 1)


def weighed(*texts: str, own: bool = False, answers: Answers = ANSWERS) -> Evidence:
    reading = Reading(answers.item, contributions=[Contribution(text, own) for text in texts])
    return weigh(answers, reading, stances(answers, reading.contributions), PARAMETERS)


def says(number: str, words: str = "I multiplied.") -> str:
    return f"{words}\n\nThe answer is {number}"


def test_right_and_wrong_are_told_apart_by_content_and_equal_answers_are_one() -> None:
    assert weighed(says(NUMBER.gold))[:2] == (1, [])
    assert weighed(says("552", "a b c d"), says("552.0", "e f g h"), says("12", "i j k l"))[:2] == (0, [2, 1])
    assert weighed("No idea, sorry.") == Evidence(0, [], False, 5)


def test_near_repetitions_and_own_turns_weigh_less() -> None:
    right = says(NUMBER.gold)
    assert weighed(right, right).right == pytest.approx(1 + PARAMETERS.repeat_weight)
    assert (
        weighed(right, says(NUMBER.gold, "Quite another way of looking at jars, crates, and their weights")).right == 2
    )
    assert weighed(right, own=True).right == pytest.approx(PARAMETERS.repeat_weight)


def test_what_is_mentioned_on_the_way_weighs_less_than_an_answer() -> None:
    item = choices(1)[0]
    options = Answers(item, benchmark("mmlu_pro"), "A", ["B", "C", "D", "E"], [False] * 4)
    code = mini("humaneval", 1)[0]
    right, wrong = (f"def {code.code.entry_point}(x):\n    y = x {sign} 1\n    return y" for sign in "+-")
    programs = Answers(code, benchmark("humaneval"), right, [wrong], [False])
    number = dataclasses.replace(mini("math", 1)[0], gold="4")
    numbers = Answers(number, benchmark("math"), "4", ["42", "5"], [False] * 2)
    for answers in (options, programs, numbers):
        for answer in (answers.right, answers.wrong[0]):
            stance = answers.stance(f"This leads to {answers.mention(answer)} in the end.")
            assert stance == (answer, answer == answers.right, False)
            final = answers.stance(answers.benchmark.present(answers.item, answer))
            assert final[1:] == (answer == answers.right, True)
    assert weighed(f"This leads to {options.mention('C')} in the end.", answers=options).wrong == [
        PARAMETERS.notes_weight
    ]
