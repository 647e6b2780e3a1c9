"""Parsing of prompts: the purpose of a call comes from metadata, not from its wording."""

from hypothesis import given
from hypothesis import strategies as st

from harness.agents.prompts import HINTS_HEADER, Record, question_prompt, team_prompt
from harness.benchmarks.items import Item
from harness.llm.request import Message, Metadata, Request
from harness.simulator.reading import QuestionIndex, read, records
from tests.harness.simulator.samples import word_problems

ITEM = word_problems(1)[0]


def test_records_are_found_where_they_begin_in_turn() -> None:
    shown = [Record("Engineer", "First.\n\nStill first."), Record("Economist", "Second.")]
    for hints in ("", f"{HINTS_HEADER} 1; 2"):
        prompt = team_prompt(("An engineer.", "RULES"), ITEM, shown, hints)
        assert read(prompt, QuestionIndex([ITEM])) == (ITEM, [record.text for record in shown])
    assert records("Intro\n[1] A:\nx\n[2] B:\nz") == ["x", "z"]
    assert records("no records [1] here: none") == []
    assert records(f"[1] A:\nx\n\n{HINTS_HEADER} 1; 2\n\n[2] B:\ny") == [f"x\n\n{HINTS_HEADER} 1; 2", "y"]


def test_the_question_is_that_of_the_last_user_message_that_holds_one() -> None:
    other = word_problems(2)[1]
    index = QuestionIndex([ITEM, other])
    messages = [Message(who, item.question) for who, item in (("system", other), ("user", ITEM), ("assistant", other))]
    assert read([*messages, Message("user", "Are you sure?")], index) == (ITEM, [other.question])
    assert read(messages[:1], index) == (None, [])


CRITIQUE = Metadata("Math/Critic", "critique")
LETTERS = st.text(st.sampled_from("ab .?\n"), max_size=80)


@given(st.lists(LETTERS.filter(str.strip), min_size=1, max_size=8), LETTERS, LETTERS, st.data())
def test_the_longest_known_question_that_begins_a_line_is_found(
    questions: list[str], before: str, after: str, data: st.DataObject
) -> None:
    text = f"{before}\n{data.draw(st.sampled_from(questions))}{after}"
    index = QuestionIndex([Item(str(n), "math", question, "1") for n, question in enumerate(questions)])
    item, rest = index.find(text)
    starts = [at for at in range(len(text)) if not text[:at].rpartition("\n")[2].strip()]
    begun = [each for each in map(str.strip, questions) if any(text.startswith(each, at) for at in starts)]
    assert len(item.question.strip()) == max(map(len, begun))
    assert len(rest) == len(text) - len(item.question.strip()) + 1
    assert item.id == str([question.strip() for question in questions].index(item.question.strip()))


def test_only_simulated_weights_are_told_what_a_call_is_for() -> None:
    prompt = question_prompt("", "", ITEM)
    for revision, is_told in ((None, False), ("0123abc", False), ("simulated-1-2-1", True)):
        plain, critique = (Request("m", revision, prompt, metadata=told) for told in (None, CRITIQUE))
        assert (plain.key != critique.key, critique.record != plain.record) == (is_told, is_told)
        assert critique.body().get("metadata") == ({"role": "Math/Critic", "purpose": "critique"} if is_told else None)
