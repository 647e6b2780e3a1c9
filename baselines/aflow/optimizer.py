"""Asking the optimizer for one edit, each time of a parent drawn anew, until there is one to try (D-AF-3)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson

from baselines.aflow.edits import Edit, apply, edit_of, in_short, schema
from baselines.aflow.prompt import Situation, optimizer_prompt
from baselines.aflow.search import Round
from baselines.aflow.workflow import InvalidWorkflowError, Workflow
from harness import rng
from harness.agents.trajectory import Context, Episode
from harness.benchmarks.extraction import fenced_blocks
from harness.llm.request import Reply
from harness.training.loop import Training

logger = logging.getLogger(__name__)

PURPOSE = "optimizer"
TEMPERATURE = 0.7
MOST_ASKS = 3
MOST_UNUSABLE = 2
LONGEST_MODIFICATION = 500
FAILED = "the optimizer's call failed, with a response format and without one"
_LOGGED = 200
_FIELDS = {"modification", "edit"}


class Proposal(NamedTuple):
    """What a round of asking came to.

    Attributes:
        parent: The round whose workflow the last attempt was to edit.
        edit: The edit in short; empty where there is none.
        modification: The edit in the optimizer's words.
        workflow: The parent after it, ``None`` where no proposal could be taken.
        replies: What came of every call, failed ones among them, in order.
        reason: Why there is no workflow.
    """

    parent: Round
    edit: str
    modification: str
    workflow: Workflow | None
    replies: tuple[Reply, ...]
    reason: str = ""


class Optimizer:
    """Proposes edits.

    Args:
        backbone: Key of the backbone behind it.
        domain: Decides which operators it may use.
    """

    def __init__(self, backbone: str, domain: str) -> None:
        self.backbone = backbone
        self._domain = domain

    async def propose(self, number: int, situation_of: Callable[[int], Situation], training: Training) -> Proposal:
        """Ask for an edit: three attempts at most, of which two may fail or give nothing that can be applied.

        The next prompt for the same parent says why a proposal was refused. A failed attempt leaves no trace in it:
        nothing was proposed.

        Args:
            number: The round that is to try the edit.
            situation_of: What an attempt starts from, counted from 0.
            training: Where the optimizer is asked.

        Raises:
            UserError: An endpoint is gone, or too many attempts have failed.
        """
        replies: list[Reply] = []
        refused: dict[int, list[str]] = {}
        reason, unusable, attempt = "", 0, 0
        while attempt < MOST_ASKS and unusable < MOST_UNUSABLE:
            situation = situation_of(attempt)
            of_parent = refused.setdefault(situation.parent.number, [])
            replies += await self._ask(Episode(number, attempt), situation, of_parent, training)
            attempt += 1
            if replies[-1].error is not None:
                reason, unusable = FAILED, unusable + 1
                continue
            try:
                modification, edit = _read(replies[-1].text)
                child = apply(edit, situation.parent.tried, self._domain)
            except InvalidWorkflowError as error:
                reason, unusable = str(error), unusable + 1
            else:
                reason = _repeated(modification, child, situation)
                if not reason:
                    return Proposal(situation.parent, in_short(edit, child), modification, child, tuple(replies))
            of_parent.append(reason)
        return Proposal(situation.parent, "", "", None, tuple(replies), reason)

    async def _ask(
        self, episode: Episode, situation: Situation, refused: Sequence[str], training: Training
    ) -> tuple[Reply, ...]:
        """One attempt: a call with a response format and, where that fails, the same without one (D-AF-3).

        The draw follows from seed, round and attempt (D-AF-2).

        Returns:
            What came of the calls, one or two; the last counts.
        """
        fits = schema(situation.parent.tried, self._domain)
        draw = rng.index(1 << 31, PURPOSE, str(training.seed), *map(str, episode))

        async def ask(context: Context) -> tuple[Reply, ...]:
            prompt = optimizer_prompt(situation, fits, self._domain, context.rules, refused)
            call = partial(context.ask, self.backbone, prompt, purpose="propose", temperature=TEMPERATURE, draw=draw)
            first = await call(response_format=_response_format(fits))
            self._log_failure(first, episode, "with a response format")
            if first.error is None:
                return (first,)
            second = await call(slot=1)
            self._log_failure(second, episode, "without a response format")
            return first, second

        return await training.consult(PURPOSE, episode, ask)

    def _log_failure(self, reply: Reply, episode: Episode, how: str) -> None:
        """Show what a server said, which may differ from run to run and so is no reason that a round keeps."""
        if reply.error is not None:
            said = " ".join(reply.error.split())[:_LOGGED]
            logger.warning("optimizer %s, round %d: the call %s failed: %s", self.backbone, episode.epoch, how, said)


def _read(text: str) -> tuple[str, Edit]:
    """The description of an edit and the edit."""
    document = parsed(text)
    if set(document) != _FIELDS or not isinstance(document["modification"], str):
        raise InvalidWorkflowError("the object has a text modification and an edit, and nothing else")
    modification = " ".join(document["modification"].split())
    if not 1 <= len(modification) <= LONGEST_MODIFICATION:
        raise InvalidWorkflowError(f"modification has 1 to {LONGEST_MODIFICATION} characters")
    return modification, edit_of(document["edit"])


def parsed(text: str) -> dict[str, Any]:
    """The JSON object in a reply, which may stand in a fence or between sentences.

    Raises:
        InvalidWorkflowError: There is none.
    """
    tries = [text, *(block.source for block in fenced_blocks(text)), text[text.find("{") : text.rfind("}") + 1]]
    for one in tries:
        try:
            document = orjson.loads(one)
        except orjson.JSONDecodeError:
            continue
        if isinstance(document, dict):
            return document
    raise InvalidWorkflowError("the reply is no JSON object")


def _response_format(fits: Mapping[str, Any]) -> str:
    named = {"name": "proposal", "strict": True, "schema": fits}
    return orjson.dumps({"type": "json_schema", "json_schema": named}).decode()


def _repeated(modification: str, child: Workflow, situation: Situation) -> str:
    """Why an edit is not worth a round; empty where it is new."""
    if child.canonical() == situation.parent.tried.canonical():
        return "the edit changes nothing"
    for earlier in situation.children:
        if _plain(earlier.modification) == _plain(modification):
            return f"round {earlier.number} tried an edit of this description"
        if earlier.tried.canonical() == child.canonical():
            return f"round {earlier.number} tried the workflow that results"
    return ""


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".! ")
