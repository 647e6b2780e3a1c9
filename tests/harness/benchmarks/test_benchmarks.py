import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.benchmarks import Tools, benchmark, keys, registry
from harness.benchmarks.items import Item, Status
from harness.benchmarks.math import Math
from harness.errors import UserError
from tests.harness.benchmarks.samples import ALL

EVERY_ITEM = [(key, item) for key in keys() for item in benchmark(key).normalise(ALL[key])]
TEXTS = st.one_of(
    st.text(max_size=200), st.text(alphabet="answer is \\boxed{}()ABIJ0123456789.,-+e$`\npython:=x×", max_size=120)
)
WITH_FIXTURES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)


def item_of(key: str, index: int = 0) -> Item:
    return benchmark(key).normalise(ALL[key])[index]


def test_the_five_in_the_order_of_the_tables() -> None:
    assert [benchmark(key).title for key in keys()] == ["MATH", "GSM-Hard", "MBPP", "HumanEval", "MMLU-Pro"]


def test_unknown_benchmark() -> None:
    with pytest.raises(UserError, match="did you mean 'math'"):
        benchmark("maths")


def test_a_module_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = registry.entry("math")
    missing = declared.model_copy(update={"key": "lost", "module": "harness.benchmarks.lost"})
    monkeypatch.setattr(registry, "_entries", lambda path: {"lost": missing})
    with pytest.raises(UserError, match=r"harness\.benchmarks\.lost"):
        benchmark("lost")


@pytest.mark.parametrize(("key", "item"), EVERY_ITEM, ids=lambda value: getattr(value, "id", value))
async def test_gold_is_right_and_the_first_wrong_answers_are_wrong(key: str, item: Item, tools: Tools) -> None:
    subject = benchmark(key)
    gold = await subject.grade(item, subject.present(item, item.gold), tools)
    assert gold.correct
    assert gold.status is Status.GRADED
    assert subject.same(item, str(gold.answer), item.gold)
    for wrong in subject.wrong_answers(item)[:3]:
        verdict = await subject.grade(item, subject.present(item, wrong), tools)
        assert not verdict.correct
        assert verdict.status is Status.GRADED


@pytest.mark.parametrize(("key", "item"), EVERY_ITEM, ids=lambda value: getattr(value, "id", value))
def test_wrong_answers_are_distinct_from_gold_and_each_other(key: str, item: Item) -> None:
    subject = benchmark(key)
    answers = [item.gold, *subject.wrong_answers(item)]
    assert len(answers) >= 3
    for place, answer in enumerate(answers):
        assert not any(subject.same(item, answer, other) for other in answers[:place])
    assert subject.wrong_answers(item) == tuple(answers[1:])


@pytest.mark.parametrize(("key", "item"), EVERY_ITEM, ids=lambda value: getattr(value, "id", value))
def test_what_is_presented_is_extracted(key: str, item: Item) -> None:
    subject = benchmark(key)
    for answer in (item.gold, *subject.wrong_answers(item)):
        extracted = subject.extract(item, f"Let me think.\n\n{subject.present(item, answer)}\n")
        assert extracted is not None
        assert subject.same(item, extracted, answer)


@pytest.mark.parametrize("text", ["", "  \n\t "])
@pytest.mark.parametrize("key", keys())
async def test_blank_text_is_empty(key: str, text: str, tools: Tools) -> None:
    verdict = await benchmark(key).grade(item_of(key), text, tools)
    assert (verdict.correct, verdict.answer, verdict.status) == (False, None, Status.EMPTY)


@pytest.mark.parametrize("key", keys())
async def test_prose_is_unparsable(key: str, tools: Tools) -> None:
    verdict = await benchmark(key).grade(item_of(key), "I would rather not say anything.", tools)
    assert (verdict.correct, verdict.answer, verdict.status) == (False, None, Status.UNPARSABLE)


@given(text=TEXTS)
@WITH_FIXTURES
@pytest.mark.parametrize("key", keys())
def test_extraction_accepts_any_text(key: str, text: str) -> None:
    subject, item = benchmark(key), item_of(key)
    answer = subject.extract(item, text)
    assert answer is None or isinstance(subject.same(item, answer, item.gold), bool)


@pytest.mark.parametrize("key", keys())
def test_rules_are_static_text_that_names_the_format(key: str) -> None:
    marks = {"math": r"\boxed", "gsm_hard": "The answer is", "mbpp": "```python", "humaneval": "```python"}
    assert marks.get(key, r"\boxed") in benchmark(key).output_rules
    assert benchmark(key).rule_version


def test_unknown_kind_of_split() -> None:
    with pytest.raises(UserError, match="'published' or 'official'"):
        benchmark("math").split([], "random")


def test_items_survive_serialisation() -> None:
    assert all(Item.from_json(item.to_json()) == item for _, item in EVERY_ITEM)


# MATH


def test_math_ids_depend_on_the_problem_alone() -> None:
    subject = benchmark("math")
    forward = {item.question: item.id for item in subject.normalise(ALL["math"])}
    backward = {item.question: item.id for item in subject.normalise(ALL["math"][::-1])}
    assert forward == backward
    assert all(re.fullmatch(r"[a-z_]+/[0-9a-f]{12}", id_) for id_ in forward.values())
    assert sorted(id_.split("/")[0] for id_ in forward.values()) == [
        "algebra",
        "counting_and_probability",
        "intermediate_algebra",
    ]


def test_math_duplicates_are_numbered_by_solution_whatever_the_order() -> None:
    first, second = ({**ALL["math"][0], "solution": rf"\boxed{{{n}}}"} for n in (5, 6))
    subject = benchmark("math")
    for records in ([first, second], [second, first]):
        ids = {item.gold: item.id for item in subject.normalise(records)}
        assert ids["6"] == f"{ids['5']}-2"


def test_math_gold_is_the_last_box_and_stratum_subject_and_level() -> None:
    item = item_of("math", 2)
    assert (item.gold, item.stratum) == ("-2", "Intermediate Algebra/Level 3")


def test_math_without_a_box_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no \\boxed answer"):
        benchmark("math").normalise([{**ALL["math"][0], "solution": "two"}])


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"so \boxed{ 2 }", "2"),
        ("The answer is 2.", "2"),
        ("The answer is $\\frac{1}{2}$. I hope so.", r"\frac{1}{2}"),
        (r"The final answer is: \(x+1\).", "x+1"),
        ("The answer is 3.\nNo, the answer is 2.", "2"),
        ("The answer is 3.5", "3.5"),
        (r"The answer is 3 but \boxed{4}", "4"),
        (r"empty \boxed{}", None),
        ("The answer is", None),
        ("two", None),
    ],
)
def test_math_extraction(text: str, answer: str | None) -> None:
    assert benchmark("math").extract(item_of("math"), text) == answer


async def test_math_second_column(tools: Tools) -> None:
    item = item_of("math", 1)
    verdict = await benchmark("math").grade(item, r"\boxed{\frac{2}{4}}", tools)
    assert verdict.correct is False
    assert verdict.also == {"math_verify": True}


def test_math_wrong_answers_leave_bases_and_exponents_for_last() -> None:
    item = Item(id="x", benchmark="math", question="", gold="40_{9}")
    assert Math("math", "MATH").wrong_answers(item)[0] == "41_{9}"


def test_a_negated_zero_is_no_wrong_answer() -> None:
    zero = Item(id="1", benchmark="math", question="?", gold="0")
    assert "-0" not in Math("math", "MATH").wrong_answers(zero)
    assert "-4" in Math("math", "MATH").wrong_answers(Item(id="1", benchmark="math", question="?", gold="4"))


# GSM-Hard


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The answer is 5.", 5),
        ("The answer is -5", -5),
        ("The answer is −5", -5),
        ("The answer is 3.5 apples", 3.5),
        ("The answer is 1,234,567.5.", 1234567.5),
        ("The answer is $1,234, as asked", 1234),
        ("The answer is -$12", -12),
        ("The answer is $-12", -12),
        (r"The answer is \$12", 12),
        ("The answer is **12**", 12),
        (r"The answer is $\boxed{12}$", 12),
        ("The answer is 1{,}234", 1234),
        ("The answer is 9.3e12", 9.3e12),
        (r"The answer is 9.3 \times 10^{12}", 9.3e12),
        ("The answer is .5", 0.5),
        ("The answer is 12 + 3 = 15", 15),
        ("The answer is 7\nThe answer is 8", 8),
        ("The answer is 7\nThe answer is unclear", 7),
        ("There are 3 and then 4 left over.", 4),
        ("between 10-15 people", 15),
        ("10 - 5 leaves 5", 5),
        ("it is 5 -3", -3),
    ],
)
def test_gsm_hard_extraction(text: str, value: float) -> None:
    answer = benchmark("gsm_hard").extract(item_of("gsm_hard"), text)
    assert answer is not None
    assert float(answer) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_gsm_hard_any_number_comes_back_from_plain_digits(value: float) -> None:
    subject, item = benchmark("gsm_hard"), item_of("gsm_hard")
    text = subject.present(item, repr(value))
    assert re.fullmatch(r"The answer is -?\d+(\.\d+)?", text)
    assert float(str(subject.extract(item, text))) == value


@pytest.mark.parametrize(("answer", "correct"), [("200.0009", True), ("199.9991", True), ("200.002", False)])
async def test_gsm_hard_tolerance(answer: str, correct: bool, tools: Tools) -> None:
    assert (await benchmark("gsm_hard").grade(item_of("gsm_hard"), answer, tools)).correct is correct


def test_gsm_hard_gold_is_the_repr_of_a_float() -> None:
    assert [item.gold for item in benchmark("gsm_hard").normalise(ALL["gsm_hard"])] == [
        "200.0",
        "-2.5",
        "9300000000000.5",
    ]


# MMLU-Pro


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        (r"\boxed{C}", "C"),
        (r"\boxed{(C)}", "C"),
        (r"\boxed{\text{C}}", "C"),
        (r"\boxed{C. seven}", "C"),
        (r"\boxed{A} or \boxed{C}", "C"),
        (r"The answer is (A), so \boxed{C}", "C"),
        (r"\boxed{7} so the answer is (C).", "C"),
        ("The answer is (C).", "C"),
        ("The answer is C", "C"),
        ("the answer is: **C**", "C"),
        ("The answer is (C", "C"),
        ("The answer is (A). No, the answer is (B).", "B"),
        ("The answer is A.", "A"),
        ("The answer is A", "A"),
        ("The answer is a matter of taste", None),
        ("The answer is A matter of taste", None),
        ("The answer is I think B", None),
        ("The answer is Cat", None),
        (r"\boxed{Cat}", None),
        (r"\boxed{K}", None),
        ("C", None),
        ("Option C looks right", None),
    ],
)
def test_mmlu_pro_extraction(text: str, letter: str | None) -> None:
    assert benchmark("mmlu_pro").extract(item_of("mmlu_pro"), text) == letter


def test_mmlu_pro_question_shows_lettered_options() -> None:
    item = item_of("mmlu_pro")
    assert item.question.splitlines()[1:] == ["A. four", "B. six", "C. seven", "D. nine"]
    assert (item.id, item.stratum) == ("70", "math")


def test_mmlu_pro_trusts_the_letter_over_the_index() -> None:
    assert item_of("mmlu_pro", 1).gold == "B"


def test_mmlu_pro_refuses_a_letter_without_an_option() -> None:
    with pytest.raises(ValueError, match="4 options and the answer 'J'"):
        benchmark("mmlu_pro").normalise([{**ALL["mmlu_pro"][0], "answer": "J"}])


def test_mmlu_pro_wrong_letters_are_not_biased_to_the_front() -> None:
    subject = benchmark("mmlu_pro")
    record: dict[str, Any] = {**ALL["mmlu_pro"][0], "options": list("abcdefghij")}
    items = subject.normalise([{**record, "question_id": number} for number in range(400)])
    firsts = [subject.wrong_answers(item)[0] for item in items]
    assert {letter: firsts.count(letter) > 20 for letter in "ABDEFGHIJ"} == dict.fromkeys("ABDEFGHIJ", True)
