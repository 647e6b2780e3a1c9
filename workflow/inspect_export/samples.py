"""One trajectory as a sample of Inspect: its steps as spans, its calls as model events, its decisions beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from inspect_ai.event import Event, InfoEvent, ModelEvent, ScoreEvent, SpanBeginEvent, SpanEndEvent
from inspect_ai.log import EvalSample
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    StopReason,
)
from inspect_ai.scorer import CORRECT, INCORRECT, Score

from analysis.trajectories import Gate, Record, Said, Step

# When something happened is no part of a result; Inspect wants a time, and this one is plainly none.
NO_TIME = datetime(2000, 1, 1, tzinfo=UTC)
CORRECTNESS, STATUS = "correct", "status"
# As long as those that Inspect draws.
ID_LENGTH = 22
_UNKNOWN = "(not known here: the log of the calls is gone)"
_STOPS: Mapping[str, StopReason] = {"stop": "stop", "length": "max_tokens"}
_MESSAGES: Mapping[str, type[ChatMessageSystem | ChatMessageUser | ChatMessageAssistant]] = {
    "system": ChatMessageSystem,
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
}


class Samples:
    """Turns the trajectories of one cell into samples.

    Args:
        run: Its run id; all ids that Inspect wants follow from it.
        maker: What stands before the name of a backbone, such as ``simulated``.
    """

    def __init__(self, run: str, maker: str) -> None:
        self._run = run
        self._maker = maker

    def sample(self, record: Record) -> EvalSample:
        """One trajectory."""
        names = _Names(self._run, record.item.id)
        said = [one for step in record.steps for one in step.calls] + list(record.final)
        scores = _scores(record)
        events = [*self._events(record, names), _score_event(scores[CORRECTNESS], record, names)]
        return EvalSample(
            id=plain(record.item.id),
            epoch=1,
            input=plain(record.item.question),
            choices=[plain(option) for option in record.item.options] or None,
            target=plain(record.item.gold),
            messages=_conversation(said[-1], names) if said else [],
            output=self._answer(record, said, names),
            scores=scores,
            metadata=_metadata(record),
            events=events,
            model_usage=self.usage(said),
            uuid=names.next("sample"),
        )

    def usage(self, said: Iterable[Said]) -> dict[str, ModelUsage]:
        """Tokens by model."""
        found: dict[str, ModelUsage] = {}
        for one in said:
            name = self.model(one.call.backbone)
            found[name] = found.get(name, ModelUsage()) + _usage([one])
        return dict(sorted(found.items()))

    def model(self, backbone: str) -> str:
        """A backbone as Inspect names models."""
        return f"{self._maker}/{backbone}"

    def _events(self, record: Record, names: _Names) -> Iterator[Event]:
        for step in record.steps:
            yield from self._span(_title(step), step.calls, _decisions(step), names)
        if record.final:
            yield from self._span("aggregation", record.final, None, names)

    def _span(self, title: str, said: Sequence[Said], decided: dict[str, Any] | None, names: _Names) -> Iterator[Event]:
        span = names.next("span")
        common: dict[str, Any] = {"span_id": span, "timestamp": NO_TIME, "working_start": 0.0}
        yield SpanBeginEvent(id=span, name=plain(title), type="step", uuid=names.next("event"), **common)
        if decided is not None:
            yield InfoEvent(source="decisions", data=decided, uuid=names.next("event"), **common)
        for one in said:
            yield ModelEvent(
                model=self.model(one.call.backbone),
                role=plain(one.call.role) or None,
                input=_prompt(one, names),
                tools=[],
                tool_choice="none",
                config=GenerateConfig(),
                output=self._output(one, names),
                error=None if one.call.error is None else plain(one.call.error),
                metadata={name: getattr(one.call, name) for name in ("purpose", "slot", "key", "cost")},
                uuid=names.next("event"),
                **common,
            )
        yield SpanEndEvent(id=span, uuid=names.next("event"), **common)

    def _output(self, said: Said, names: _Names) -> ModelOutput:
        text = _UNKNOWN if said.reply is None else plain(said.reply)
        return self._saying(text, said, names)

    def _answer(self, record: Record, said: Sequence[Said], names: _Names) -> ModelOutput:
        """The text that was graded, as the output of the last call."""
        return self._saying(plain(record.answer), said[-1], names) if said else ModelOutput()

    def _saying(self, text: str, said: Said, names: _Names) -> ModelOutput:
        name = self.model(said.call.backbone)
        message = ChatMessageAssistant(content=text, id=names.next("message"), model=name, source="generate")
        stop = _STOPS.get(said.call.finish_reason, "unknown")
        return ModelOutput(
            model=name,
            choices=[ChatCompletionChoice(message=message, stop_reason=stop)],
            usage=_usage([said]),
            error=None if said.call.error is None else plain(said.call.error),
        )


class _Names:
    """Ids that are the same whenever the same sample is made."""

    def __init__(self, *of: str) -> None:
        self._of = of
        self._count = 0

    def next(self, kind: str) -> str:
        self._count += 1
        text = plain("\0".join([*self._of, kind, str(self._count)]))
        return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]


def plain(text: str) -> str:
    """A text that every reader of JSON takes: halves of characters become question marks."""
    return text.encode("utf-8", "replace").decode()


def _title(step: Step) -> str:
    agent = step.role and step.backbone and f": {step.role.choice} on {step.backbone.choice}"
    return f"step {step.number}{agent or ''}"


def _conversation(said: Said, names: _Names) -> list[ChatMessage]:
    """The last call: its prompt, and the reply."""
    reply = _UNKNOWN if said.reply is None else plain(said.reply)
    return [*_prompt(said, names), ChatMessageAssistant(content=reply, id=names.next("message"))]


def _prompt(said: Said, names: _Names) -> list[ChatMessage]:
    if said.messages is None:
        return [ChatMessageUser(content=_UNKNOWN, id=names.next("message"))]
    return [
        _MESSAGES[message.role](content=plain(message.content), id=names.next("message")) for message in said.messages
    ]


def _usage(said: Iterable[Said]) -> ModelUsage:
    calls = [one.call for one in said]
    prompt, completion = sum(one.prompt_tokens for one in calls), sum(one.completion_tokens for one in calls)
    return ModelUsage(input_tokens=prompt, output_tokens=completion, total_tokens=prompt + completion)


def _scores(record: Record) -> dict[str, Score]:
    verdict = record.verdict
    answer = None if verdict.answer is None else plain(verdict.answer)
    why = ": ".join(part for part in (verdict.status.value, verdict.detail) if part)
    return {
        CORRECTNESS: Score(
            value=CORRECT if verdict.correct else INCORRECT,
            answer=answer,
            explanation=plain(why),
            metadata=dict(verdict.also) or None,
        ),
        STATUS: Score(value=verdict.status.value, explanation=plain(verdict.detail) or None),
    }


def _score_event(score: Score, record: Record, names: _Names) -> ScoreEvent:
    return ScoreEvent(
        score=score,
        target=plain(record.item.gold),
        scorer=CORRECTNESS,
        timestamp=NO_TIME,
        working_start=0.0,
        uuid=names.next("event"),
    )


def _metadata(record: Record) -> dict[str, Any]:
    """What the tables of the suite say of a question, and its steps without their texts."""
    totals = record.totals
    return {
        "status": record.verdict.status.value,
        "calls": totals.calls,
        "depth": totals.depth,
        "prompt_tokens": totals.prompt_tokens,
        "completion_tokens": totals.completion_tokens,
        "cost_total": totals.cost_total,
        "cost_steps": totals.cost_steps,
        "utility": totals.utility,
        "steps": [_decisions(step) for step in record.steps],
    }


def _decisions(step: Step) -> dict[str, Any]:
    chosen = [one for one in (step.role, step.backbone, *step.choices) if one is not None]
    return {
        "step": step.number,
        "choices": [
            {
                "name": one.name,
                "slot": one.slot,
                "choice": plain(one.choice),
                "options": one.options,
                "probability": one.probability,
            }
            for one in chosen
        ],
        "memory": sorted(step.retrieved),
        "retrieved": {str(number): _gate(gate) for number, gate in step.retrieved.items()},
        "written": _gate(step.written),
        "halted": _gate(step.halted),
    }


def _gate(gate: Gate | None) -> dict[str, Any] | None:
    return None if gate is None else {"open": gate.is_open, "probability": gate.probability}
