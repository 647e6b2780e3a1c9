"""Proposals of the optimizer: its prompt, and the calls until there is an edit to try (D-AF-3)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple

import orjson
from pydantic import AfterValidator, Field, ValidationError

from baselines.aflow.edits import Edit, apply, in_short, schema
from baselines.aflow.search import Failure, Round
from baselines.aflow.workflow import MOST_NODES, MOST_REPEATS, InvalidWorkflowError, Workflow, offered
from harness.agents import rng
from harness.agents.trajectory import Context, Episode
from harness.benchmarks.extraction import fenced_blocks
from harness.benchmarks.items import Item
from harness.files import Declaration
from harness.llm.backbones import Backbone
from harness.llm.request import Message, Reply
from harness.training.loop import Training

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
    """Return the prompt of one proposal, with its schema and the reasons why earlier ones were refused (D-AF-3)."""
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
        fields = ["inputs", *(["instruction"] if operator.takes_instruction else [])]
        gives = "text and status" if operator.has_status else "text"
        yield f"- {operator.name}({', '.join(fields)}) -> {gives}: {operator.description}"


def _parent(parent: Round) -> str:
    shown = orjson.dumps(parent.tried.to_json(), option=orjson.OPT_INDENT_2).decode()
    return f"The workflow to edit, with a score of {parent.score:.2f} %:\n```json\n{shown}\n```"


def _experience(parent: Round, children: Sequence[Round]) -> Iterator[str]:
    lines = ["Edits of this workflow that were tried, each of them forbidden now:"]
    for child in children:
        result = f"score {parent.score:.2f} % before, {child.score:.2f} % after"
        verdict = "better" if child.success else "no better"
        lines.append(f"- {child.edit}: {child.modification} ({result}, {verdict})")
    if children:
        yield "\n".join(lines)


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
    """Return a text without its middle if it is too long; answers mostly stand at the end."""
    text = text.strip()
    if len(text) <= length:
        return text
    return f"{text[: length // 3]} [...] {text[-(length - length // 3) :]}"


logger = logging.getLogger(__name__)

PURPOSE = "optimizer"
TEMPERATURE = 0.7
MOST_ASKS = 3
MOST_UNUSABLE = 2
FAILED = "the optimizer's call failed, with a response format and without one"
_LOGGED = 200


class Optimizer:
    """Backbone that proposes edits for the questions of a domain."""

    def __init__(self, backbone: Backbone, domain: str) -> None:
        self.backbone = backbone
        self._domain = domain

    async def propose(self, number: int, situation_of: Callable[[int], Situation], training: Training) -> Round:
        """Return a round to score, or one without a workflow, after three attempts at most.

        Two of them may give no valid edit.
        """
        # The next prompt for the same parent says why a proposal was refused.
        replies: list[Reply] = []
        refused: dict[int, list[str]] = {}
        reason, unusable, attempt = "", 0, 0
        while attempt < MOST_ASKS and unusable < MOST_UNUSABLE:
            situation = situation_of(attempt)
            reasons = refused.setdefault(situation.parent.round, [])
            replies += await self._ask(Episode(number, attempt), situation, reasons, training)
            attempt += 1
            if replies[-1].error is not None:
                reason, unusable = FAILED, unusable + 1
                continue
            try:
                proposal = parse_proposal(replies[-1].text)
                child = apply(proposal.edit, situation.parent.tried, self._domain)
            except InvalidWorkflowError as error:
                reason, unusable = str(error), unusable + 1
            else:
                reason = _repetition(proposal.modification, child, situation)
                if not reason:
                    edit, modification = in_short(proposal.edit, child), proposal.modification
                    fields = {"status": "scored", "edit": edit, "modification": modification, "workflow": child}
                    return self._round(number, situation.parent, replies, **fields)
            reasons.append(reason)
        return self._round(number, situation.parent, replies, status="no_proposal", reason=reason)

    def _round(self, number: int, parent: Round, replies: Sequence[Reply], **fields: Any) -> Round:
        cost = sum(self.backbone.cost(reply.prompt_tokens, reply.completion_tokens) for reply in replies)
        return Round(round=number, parent=parent.round, proposals=len(replies), proposal_cost=cost, **fields)

    async def _ask(
        self, episode: Episode, situation: Situation, refused: Sequence[str], training: Training
    ) -> tuple[Reply, ...]:
        """Make a call with a response format and, if it fails, one without (D-AF-2, D-AF-3)."""
        fits = schema(situation.parent.tried, self._domain)
        draw = rng.index(1 << 31, PURPOSE, str(training.seed), *map(str, episode))

        async def ask(context: Context) -> tuple[Reply, ...]:
            prompt = optimizer_prompt(situation, fits, self._domain, context.rules, refused)
            call = partial(context.ask, self.backbone.key, prompt, purpose="propose", temperature=TEMPERATURE)
            replies: list[Reply] = []
            for slot, response_format in enumerate((_response_format(fits), None)):
                replies.append(await call(draw=draw, slot=slot, response_format=response_format))
                if replies[-1].error is None:
                    break
                # Errors may differ from run to run, so no round stores them.
                error, how = " ".join(replies[-1].error.split())[:_LOGGED], "without" if slot else "with"
                place = self.backbone.key, episode.epoch
                logger.warning("optimizer %s, round %d: the call %s a response format failed: %s", *place, how, error)
            return tuple(replies)

        return await training.consult(PURPOSE, episode, ask)


class Proposal(Declaration):
    """Proposal of the optimizer."""

    modification: Annotated[
        str, AfterValidator(lambda text: " ".join(text.split())), Field(min_length=1, max_length=500)
    ]
    edit: Edit


def parse_proposal(text: str) -> Proposal:
    """Return the proposal of a reply; InvalidWorkflowError if there is none."""
    try:
        return Proposal.model_validate(_parse_object(text))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidWorkflowError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _parse_object(text: str) -> dict[str, Any]:
    for source in [text, *(block.source for block in fenced_blocks(text)), text[text.find("{") : text.rfind("}") + 1]]:
        try:
            document = orjson.loads(source)
        except orjson.JSONDecodeError:
            continue
        if isinstance(document, dict):
            return document
    raise InvalidWorkflowError("the reply is no JSON object")


def _response_format(fits: Mapping[str, Any]) -> str:
    proposal = {"name": "proposal", "strict": True, "schema": fits}
    return orjson.dumps({"type": "json_schema", "json_schema": proposal}).decode()


def _repetition(modification: str, child: Workflow, situation: Situation) -> str:
    if child.canonical() == situation.parent.tried.canonical():
        return "the edit changes nothing"
    for earlier in situation.children:
        if _plain(earlier.modification) == _plain(modification):
            return f"round {earlier.round} tried an edit of this description"
        if earlier.tried.canonical() == child.canonical():
            return f"round {earlier.round} tried the workflow that results"
    return ""


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".! ")
