"""What is read from a prompt, and what is said with it: the kind of a turn is no matter of wording."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agents.activation import act
from harness.agents.code_tools import CodeTools
from harness.agents.prompts import HINTS_HEADER, Record, question_prompt, team_prompt
from harness.agents.roles import catalogue
from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.items import Item
from harness.llm.request import Message, Reply, Request, Turn
from harness.simulator.endpoint import SimulatedEndpoint
from harness.simulator.reading import QuestionIndex, read, records
from tests.harness.simulator.samples import MODELS, word_problems
from tests.scripted import context

BACKBONE = "qwen-2.5-14B"
ITEM = word_problems(1)[0]


def test_records_are_found_where_they_begin_in_turn() -> None:
    shown = [Record("Engineer", "First.\n\nStill first."), Record("Economist", "Second.")]
    for hints in ("", f"{HINTS_HEADER} 1; 2"):
        prompt = team_prompt(("An engineer.", "RULES"), ITEM, shown, hints)
        assert read(prompt, QuestionIndex([ITEM])) == (ITEM, [record.text for record in shown])
    assert records("Intro\n[1] A:\nx\n[3] not a record:\ny\n[2] B:\nz") == ["x\n[3] not a record:\ny", "z"]
    assert records("no records [1] here: none") == []
    assert records(f"[1] A:\nx\n\n{HINTS_HEADER} 1; 2\n\n[2] B:\ny") == [f"x\n\n{HINTS_HEADER} 1; 2", "y"]


def test_the_question_is_that_of_the_last_user_message_that_holds_one() -> None:
    other = word_problems(2)[1]
    index = QuestionIndex([ITEM, other])
    messages = [Message(who, item.question) for who, item in (("system", other), ("user", ITEM), ("assistant", other))]
    assert read([*messages, Message("user", "Are you sure?")], index) == (ITEM, [other.question])
    assert read(messages[:1], index) == (None, [])


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


class Asked:
    def __init__(self, endpoint: SimulatedEndpoint, item: Item) -> None:
        self.endpoint, self.index = endpoint, QuestionIndex([item])
        self.read: list[tuple[Item | None, list[str], Turn]] = []
        self.replies: list[str] = []

    async def complete(self, backbone: str, request: Request) -> Reply:
        self.read.append((*read(request.messages, self.index), request.metadata or Turn()))
        model = MODELS[BACKBONE].model
        reply = self.endpoint.complete(replace(request, model=model, revision=self.endpoint.revision))
        self.replies.append(reply.text)
        return reply


@pytest.mark.parametrize("key", ["math", "humaneval"])
async def test_what_is_shown_to_a_role_is_read_as_what_it_is(
    key: str, questions: dict[str, list[Item]], endpoint: SimulatedEndpoint, code_tools: CodeTools
) -> None:
    """All roles, one after the other, each with the four before it: nothing is lost, doubled or taken for more."""
    item, spoken = questions[key][0], list[Record]()
    for role in catalogue():
        seen, client = spoken[-4:], Asked(endpoint, item)
        attempt = context(item, client, benchmark(key).output_rules, backbones=MODELS, code_tools=code_tools)
        text = await act(role, BACKBONE, item, seen, attempt, step=1)
        (found, earlier, turn), *second = client.read
        assert (found, turn.role) == (item, role.key)
        assert turn.kind == {"text": "plan", "keywords": "search"}.get(role.output, "solve")
        assert len(earlier) == len(seen)
        for shown, record in zip(earlier, seen, strict=True):
            assert shown.startswith(record.text)
            assert HINTS_HEADER not in shown
        assert len(second) == bool(role.second_call)
        for found, (*others, own), turn in second:
            assert (found, others, turn.role, turn.kind) == (item, earlier, role.key, "finish")
            assert own.startswith(client.replies[0])
        spoken.append(Record(role.name, text))


def test_only_simulated_weights_are_told_what_a_call_is_for() -> None:
    prompt = question_prompt("", "", ITEM)
    for revision, told in ((None, False), ("0123abc", False), ("simulated-1-2-1", True)):
        plain, critique = (Request("m", revision, prompt, metadata=turn) for turn in (None, Turn("critique")))
        assert (plain.key != critique.key, critique.record != plain.record) == (told, told)
        assert critique.body().get("metadata") == (Turn("critique")._asdict() if told else None)
