"""What the optimizer is told: the rules and the operators first, then the parent, what was tried, what it got wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from baselines.aflow.catalogue import offered
from baselines.aflow.search import Failure, Round
from baselines.aflow.workflow import MOST_NODES, MOST_REPEATS
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
    """What a proposal starts from.

    Attributes:
        parent: The round to go on from; it was scored.
        children: The rounds that tried an edit of it.
        failures: Questions that its workflow got wrong.
    """

    parent: Round
    children: Sequence[Round]
    failures: Sequence[tuple[Item, Failure]]


def optimizer_prompt(
    situation: Situation, schema: Mapping[str, Any], domain: str, rules: str, refused: Sequence[str]
) -> tuple[Message, ...]:
    """The prompt of one proposal (D-AF-3).

    Args:
        situation: The parent, what was tried from it, what it got wrong.
        schema: What a proposal has to fit.
        domain: Decides task and operators.
        rules: The output rules of the benchmark.
        refused: Why earlier proposals of this round were not taken.
    """
    system = [
        f"You improve, edit by edit, a workflow by which a language model answers {_TASKS[domain]}.",
        _LANGUAGE,
        "Operators:\n" + "\n".join(_operators(domain)),
        _ADVICE,
        f"{_RULES} {rules}",
    ]
    user = [
        _parent(situation.parent),
        *_experience(situation.parent, situation.children),
        *_failures(situation.failures),
        *(f"A proposal of this round was refused: {reason}. Propose another edit." for reason in refused),
        f"{_CLOSING}\n```json\n{orjson.dumps(schema).decode()}\n```",
    ]
    return (Message("system", "\n\n".join(system)), Message("user", "\n\n".join(user)))


def _operators(domain: str) -> Iterator[str]:
    for operator in offered(domain).values():
        fields = ["inputs", *(["instruction"] if operator.instructed else [])]
        gives = "text and status" if operator.judges else "text"
        yield f"- {operator.name}({', '.join(fields)}) -> {gives}: {operator.what}"


def _parent(parent: Round) -> str:
    shown = orjson.dumps(parent.tried.to_json(), option=orjson.OPT_INDENT_2).decode()
    return f"The workflow to edit, with a score of {parent.score:.2f} %:\n```json\n{shown}\n```"


def _experience(parent: Round, children: Sequence[Round]) -> Iterator[str]:
    if children:
        tried = [f"- {child.edit}: {child.modification} ({_result(parent, child)})" for child in children]
        yield "\n".join(["Edits of this workflow that were tried, each of them forbidden now:", *tried])


def _result(parent: Round, child: Round) -> str:
    verdict = "better" if child.success else "no better"
    return f"score {parent.score:.2f} % before, {child.score:.2f} % after, {verdict}"


def _failures(failures: Sequence[tuple[Item, Failure]]) -> Iterator[str]:
    for number, (item, failure) in enumerate(failures, 1):
        parts = {
            "Question": clipped(item.question, _QUESTION_LENGTH),
            "Right answer": clipped(item.gold, _OUTPUT_LENGTH),
            "Output of the workflow": clipped(failure.output, _OUTPUT_LENGTH) or "(empty)",
            "Answer found in it": "(none)" if failure.extracted is None else clipped(failure.extracted, _OUTPUT_LENGTH),
        }
        shown = "\n".join(f"{title}:\n{text}" for title, text in parts.items())
        yield f"A question that the workflow got wrong ({number} of {len(failures)}):\n{shown}"


def clipped(text: str, length: int) -> str:
    """A text without its middle where it is long: the answer mostly stands at the end."""
    text = text.strip()
    if len(text) <= length:
        return text
    return f"{text[: length // 3]} [...] {text[-(length - length // 3) :]}"
