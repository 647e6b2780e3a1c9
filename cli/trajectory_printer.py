"""Trajectories of any method as text for a terminal, and as JSON."""

from __future__ import annotations

import difflib
import re
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from analysis.trajectories import CallRecord, Choice, Gate, StepRecord, TrajectoryRecord
from harness.agents.trajectory import Call
from harness.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

GONE = "(the log of the calls is not here, so prompts and replies are unknown)"
_LINES_SHOWN = 6
_LABEL = 11
_NARROW, _WIDE = 60, 120
# What would move the cursor, change colours, or turn the direction of what follows.
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Page:
    """Layout of text in the terminal's columns; long texts are cut, or shown whole if ``full``."""

    def __init__(self, *, full: bool) -> None:
        # 100 before a pager, within what reads well.
        self._width = min(max(shutil.get_terminal_size((100, 0)).columns, _NARROW), _WIDE)
        self.full = full

    def entry(self, label: str, text: str) -> list[str]:
        """Return the lines of a text behind its label."""
        first, *rest = self.indented(text, " " * (_LABEL + 2))
        return [f"  {label + ' ':<{_LABEL}}{first.lstrip()}", *rest]

    def indented(self, text: str, indent: str, *, whole: bool = False) -> list[str]:
        """Return the lines of a text, indented: all of them, or the first few broken at the width."""
        lines = visible(text).strip("\n").splitlines() or [""]
        if self.full:
            return [f"{indent}{line}".rstrip() for line in lines]
        broken = [f"{indent}{piece}".rstrip() for line in lines for piece in self._break(line, len(indent))]
        if whole or len(broken) <= _LINES_SHOWN:
            return broken
        shown = broken[: _LINES_SHOWN - 1]
        return [*shown, f"{indent}... ({count(len(broken) - len(shown), 'more line')}, --full shows all)"]

    def _break(self, line: str, indent: int) -> list[str]:
        leading = line[: min(len(line) - len(line.lstrip()), self._width // 2)]
        return textwrap.wrap(line, self._width - indent, subsequent_indent=leading) or [""]


def in_order(ids: pd.Series) -> pd.Series:
    """Return keys that sort ids as people do, with the numbers in them as numbers: 9 before 10."""
    return ids.map(lambda id_: tuple(int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", id_)))


def check_item(item: str, known: Sequence[str], where: str) -> None:
    """Raise UserError, with the nearest id that exists, if no question has the id."""
    if item not in known:
        near = difflib.get_close_matches(item, known, n=1) or known[:1]
        raise UserError(f"{where} has no question {item!r} among its {len(known)}; one that it has is {near[0]!r}")


def visible(text: str) -> str:
    """Return a text with control characters spelt out: a model's reply must not steer the terminal."""
    return _UNSEEN.sub(lambda match: f"<U+{ord(match[0]):04X}>", text.replace("\r\n", "\n"))


def count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is not 1."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """Return a probability as printed."""
    return f"{100 * share:.1f} %"


def record_lines(record: TrajectoryRecord, page: Page) -> list[str]:
    """Return the lines of a trajectory, from the question to its cost."""
    totals = record.totals
    # Those whose failure leaves a trajectory without an answer.
    last = record.final or (record.steps[-1].calls if record.steps else ())
    final = [["", f"Last call: {_caller(use)}", *_call_lines(use, page)] for use in record.final]
    calls, steps = count(totals["calls"], "call"), count(totals["depth"], "step")
    return [
        f"Question {visible(record.item.id)}",
        *page.indented(record.item.question, "  "),
        *(line for step in record.steps for line in ("", *_step_lines(step, page))),
        *(line for lines in final for line in lines),
        "",
        "Answer",
        *page.indented(record.answer or _failure(use.call for use in last), "  ", whole=True),
        *(_verdict_lines(record, page) if record.item.gold else []),
        "",
        f"{calls} in {steps}, {totals['prompt_tokens']:,} + {totals['completion_tokens']:,} tokens.",
        f"Cost {totals['cost_total']:.3g}, of this {totals['cost_steps']:.3g} in steps.",
        *([] if totals["utility"] is None else [f"Utility {totals['utility']:.4f}."]),
    ]


def _step_lines(step: StepRecord, page: Page) -> list[str]:
    if step.role and step.backbone:
        head = f"Step {step.number}: {_option(step.role)} on {_option(step.backbone)}"
    else:
        head = f"Step {step.number}" if step.number else "Before the first step"
    names = Counter(choice.name for choice in step.choices)
    lines = [head]
    if step.written:
        memory = (f"step {number}: {_gate(gate, 'seen', 'left out')}" for number, gate in step.retrieved.items())
        lines += page.entry("memory", "; ".join(memory) or "empty")
    for choice in step.choices:
        label = choice.name.replace("_", " ") + (f" {choice.slot + 1}" if names[choice.name] > 1 else "")
        options = f", one of {choice.options}" if choice.options > 1 else ""
        lines += page.entry(label, _option(choice) + options)
    for number, use in enumerate(step.calls):
        if step.role:
            label = _purpose(use) if len(step.calls) > 1 else "reply"
            lines += [*_prompt_lines(use, page), *page.entry(label, _reply(use))]
        else:
            separator = [""] if number or step.choices else []
            lines += [*separator, *page.entry("asked", _caller(use)), *_call_lines(use, page)]
    if step.written:
        lines += page.entry("write", _gate(step.written, "stored", "refused"))
    if step.halted:
        lines += page.entry("halt", _gate(step.halted, "halts", "continues"))
    return [*lines, *(_spent([use.call for use in step.calls], page) if step.role else [])]


def _verdict_lines(record: TrajectoryRecord, page: Page) -> list[str]:
    verdict = record.verdict
    why = ", ".join(part for part in (verdict.status, verdict.detail) if part)
    return [
        "",
        *page.entry("gold", record.item.gold),
        *page.entry("extracted", "none" if verdict.answer is None else verdict.answer),
        *page.entry("verdict", f"{'right' if verdict.correct else 'wrong'} ({why})"),
    ]


def _call_lines(use: CallRecord, page: Page) -> list[str]:
    return [*_prompt_lines(use, page), *page.entry("reply", _reply(use)), *_spent([use.call], page)]


def _prompt_lines(use: CallRecord, page: Page) -> list[str]:
    """Return the lines of a prompt; prompts repeat the question and earlier replies, so only --full shows them."""
    messages = (use.messages or ()) if page.full else ()
    return [line for message in messages for line in page.entry(message.role, message.content)]


def _spent(calls: Sequence[Call], page: Page) -> list[str]:
    prompt, completion = sum(call.prompt_tokens for call in calls), sum(call.completion_tokens for call in calls)
    number = f" in {len(calls)} calls" if len(calls) > 1 else ""
    cost = sum(call.cost for call in calls)
    return page.entry("spent", f"{prompt:,} + {completion:,} tokens{number}, cost {cost:.3g}")


def _gate(gate: Gate, is_open: str, is_closed: str) -> str:
    outcome = is_open if gate.is_open else is_closed
    return f"{outcome}, without a draw" if gate.probability is None else f"{percent(gate.probability)}, {outcome}"


def _option(choice: Choice) -> str:
    probability = "" if choice.probability is None else f" ({percent(choice.probability)})"
    return f"{visible(choice.choice)}{probability}"


def _caller(use: CallRecord) -> str:
    call = use.call
    return visible(f"{f'{call.role} on ' if call.role else ''}{call.backbone} ({_purpose(use)})")


def _purpose(use: CallRecord) -> str:
    return use.call.purpose.replace("_", " ")


def _reply(use: CallRecord) -> str:
    return GONE if use.reply is None else use.reply or _failure([use.call])


def _failure(calls: Iterable[Call]) -> str:
    errors = [call.error for call in calls if call.error is not None]
    return f"(the call failed: {errors[-1]})" if errors else "(empty)"


def to_json(document: Any) -> str:
    """Return one JSON document, complete; named tuples become objects, numeric keys text."""
    return orjson.dumps(document, default=_object, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()


def _object(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return value._asdict()
    raise TypeError(f"{type(value).__name__} has no form in JSON")
