"""Prompt of the optimizer (D-AF-3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from baselines.aflow.search import Failure, Round
from baselines.aflow.workflow import MOST_NODES, MOST_REPEATS, Operator, offered
from harness.benchmarks.items import Item
from harness.llm.request import Message

_TASKS: Mapping[str, str] = {
    "Code": "programming questions; an answer is a program and is judged by tests that nobody sees",
    "Math": "mathematical questions with one exact answer",
    "Commonsense": "multiple-choice questions that take knowledge and judgement",
}
_LANGUAGE = f"""A workflow is a JSON list of nodes that run in order, and the answer is the output of the last one. \
Fields of a node:
- id: its name.
- operator: one of those below.
- inputs: "question" or ids of earlier nodes. Every node sees the question, and the outputs of the nodes named here.
- instruction: what the operator is told; only for operators that take one, and it may be empty.
- repeat: how often the operator runs, 1 to {MOST_REPEATS}. Each run is an independent sample, and one more output for \
the nodes that read this one. The last node runs once.
- when: null, or {{"node": an earlier node with a status, "is": "failed" or "passed"}}. If that does not hold, the \
node is left out, and what its first input gave goes on in its place (where it reads only the question: what the node \
in its condition gave)."""
_ADVICE = """Ways to do better that are worth considering:
- review: a later node checks a solution and names its faults.
- revise: a later node mends a solution by what a review found.
- ensemble: several nodes, or one that repeats, answer independently of each other, and the answer of the majority is \
taken.
- self-ask: a node poses the smaller questions on which the answer hangs, and answers them first.
- a condition: a node runs only where the status of an earlier one calls for it.
Several operators together, each in its place, can do better than one; try those that the workflow does not use yet. A \
more complex workflow may well score higher, but only if nothing gets lost on the way: give every node all the inputs \
it has to know."""
_RULES = f"""Rules:
- Propose exactly one edit of one node: add one, replace one, or remove one.
- An added node is read by the node that then follows it, besides what that one reads already. Who read a removed node \
reads its inputs instead. A node that nothing reads any longer is dropped.
- At most {MOST_NODES} nodes.
- Do not propose an edit again that is listed as tried, neither in other words nor with another name of a node.
- An instruction is for every question to come: no placeholders, no answers to questions shown here, nothing about the \
workflow itself.
- The last node must give an answer, never nothing, in the format that each answering operator is told already:"""
_CLOSING = (
    "Reply with one JSON object and nothing else. Its modification says in one sentence what the edit changes and why; "
    "its edit has to fit this schema:"
)
_QUESTION_LENGTH = 1600
_OUTPUT_LENGTH = 900


class Situation(NamedTuple):
    """Start of a proposal: a scored round, the rounds that tried an edit of it, questions it got wrong."""

    parent: Round
    children: Sequence[Round]
    failures: Sequence[tuple[Item, Failure]]


def optimizer_prompt(
    situation: Situation, schema: Mapping[str, Any], domain: str, rules: str, refused: Sequence[str]
) -> tuple[Message, ...]:
    """Return the prompt of a proposal that fits a schema, with the reasons why earlier ones were refused (D-AF-3)."""
    parent = situation.parent
    system = [
        f"You improve, edit by edit, a workflow by which a language model answers {_TASKS[domain]}.",
        _LANGUAGE,
        "\n".join(["Operators:", *map(_operator, offered(domain).values())]),
        _ADVICE,
        f"{_RULES} {rules}",
    ]
    shown = orjson.dumps(parent.tried.to_json(), option=orjson.OPT_INDENT_2).decode()
    user = [f"The workflow to edit, with a score of {parent.score:.2f} %:\n```json\n{shown}\n```"]
    if situation.children:
        tried = (_tried(parent, child) for child in situation.children)
        user.append("\n".join(["Edits of this workflow that were tried, each of them forbidden now:", *tried]))
    for number, (item, failure) in enumerate(situation.failures, 1):
        heading = f"A question that the workflow got wrong ({number} of {len(situation.failures)}):"
        user.append(f"{heading}\n{_failure(item, failure)}")
    user += [f"A proposal of this round was refused: {reason}. Propose another edit." for reason in refused]
    user.append(f"{_CLOSING}\n```json\n{orjson.dumps(schema).decode()}\n```")
    return (Message("system", "\n\n".join(system)), Message("user", "\n\n".join(user)))


def _operator(operator: Operator) -> str:
    fields = "inputs, instruction" if operator.takes_instruction else "inputs"
    gives = "text and status" if operator.has_status else "text"
    return f"- {operator.key}({fields}) -> {gives}: {operator.description}"


def _tried(parent: Round, child: Round) -> str:
    verdict = "better" if child.success else "no better"
    scores = f"score {parent.score:.2f} % before, {child.score:.2f} % after, {verdict}"
    return f"- {child.edit}: {child.modification} ({scores})"


def _failure(item: Item, failure: Failure) -> str:
    answer = "(none)" if failure.extracted is None else clipped(failure.extracted, _OUTPUT_LENGTH)
    return (
        f"Question:\n{clipped(item.question, _QUESTION_LENGTH)}\n"
        f"Right answer:\n{clipped(item.gold, _OUTPUT_LENGTH)}\n"
        f"Output of the workflow:\n{clipped(failure.output, _OUTPUT_LENGTH) or '(empty)'}\n"
        f"Answer found in it:\n{answer}"
    )


def clipped(text: str, length: int) -> str:
    """Return a text without its middle if it is too long; answers mostly stand at the end."""
    text = text.strip()
    if len(text) <= length:
        return text
    return f"{text[: length // 3]} [...] {text[-(length - length // 3) :]}"


def response_format_of(schema: Mapping[str, Any]) -> str:
    """Return the response format that asks a server for a proposal that fits a schema."""
    proposal = {"name": "proposal", "strict": True, "schema": schema}
    return orjson.dumps({"type": "json_schema", "json_schema": proposal}).decode()
