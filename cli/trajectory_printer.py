"""Trajectories of any method as text for a terminal."""

import re
import shutil
import textwrap
from collections.abc import Sequence

from analysis.beyond.trajectories import TrajectoryRecord
from harness.agents.trajectory import Call

GONE = "(prompts and replies are unknown, since the call log is missing)"
_LINES_SHOWN = 6
_LABEL = 11
_NARROW, _WIDE = 60, 120
# Characters that move the cursor, change colours or text direction.
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Replace control characters, so that a model's reply cannot control the terminal."""
    return _UNSEEN.sub(lambda match: f"<U+{ord(match[0]):04X}>", text.replace("\r\n", "\n"))


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def record_lines(record: TrajectoryRecord, *, full: bool) -> list[str]:
    """Format a trajectory, from the question to its cost. ``full`` adds prompts and untruncated texts."""
    lines = [f"Question {visible(record.item.id)}", *_text(record.item.question, "  ", full=full)]
    for step in record.steps:
        lines += ["", visible(step.title)]
        entries = [*step.before()]
        for use in step.calls:
            # Prompts repeat the question and earlier replies.
            prompt = [(message.role, message.content) for message in (use.messages or ()) if full]
            tool = [("tool", use.call.tool)] if use.call.tool else []
            reply = GONE if use.reply is None else use.reply or _failure([use.call])
            entries += [("asked", use.caller), *prompt, ("reply", reply), *tool]
        lines += [line for entry in (*entries, *step.after()) for line in _entry(*entry, full=full)]
    verdict, totals = record.verdict, record.totals
    last = [use.call for use in record.steps[-1].calls] if record.steps else []
    tokens = f"{totals['prompt_tokens']:,} + {totals['completion_tokens']:,} tokens"
    why = ", ".join(filter(None, (verdict.status, verdict.detail)))
    entries = [
        ("gold", record.item.gold),
        ("extracted", "none" if verdict.answer is None else verdict.answer),
        ("verdict", f"{'right' if verdict.correct else 'wrong'} ({why})"),
    ]
    return [
        *lines,
        "",
        "Answer",
        *_text(record.answer or _failure(last), "  ", full=full, whole=True),
        "",
        *(line for entry in entries for line in _entry(*entry, full=full)),
        "",
        f"{count(totals['calls'], 'call')} in {count(totals['depth'], 'step')}, {tokens}.",
        f"Cost {totals['cost_total']:.3g}, of this {totals['cost_steps']:.3g} in steps.",
        *([] if totals["utility"] is None else [f"Utility {totals['utility']:.4f}."]),
    ]


def _failure(calls: Sequence[Call]) -> str:
    """Explain an empty reply."""
    errors = [call.error for call in calls if call.error is not None]
    return f"(the call failed: {errors[-1]})" if errors else "(empty)"


def _entry(label: str, text: str, *, full: bool) -> list[str]:
    """Format a text after its label."""
    first, *rest = _text(text, " " * (_LABEL + 2), full=full)
    return [f"  {label + ' ':<{_LABEL}}{first.lstrip()}", *rest]


def _text(text: str, indent: str, *, full: bool, whole: bool = False) -> list[str]:
    """Wrap a text. Unless ``full`` or ``whole``, keep the first lines only."""
    lines = visible(text).strip("\n").splitlines() or [""]
    if full:
        return [f"{indent}{line}".rstrip() for line in lines]
    # 100 columns if there is no terminal, and always within readable limits.
    width = min(max(shutil.get_terminal_size((100, 0)).columns, _NARROW), _WIDE)
    broken = []
    for line in lines:
        leading = line[: min(len(line) - len(line.lstrip()), width // 2)]
        pieces = textwrap.wrap(line, width - len(indent), subsequent_indent=leading) or [""]
        broken += [f"{indent}{piece}".rstrip() for piece in pieces]
    if whole or len(broken) <= _LINES_SHOWN:
        return broken
    more = count(len(broken) - _LINES_SHOWN + 1, "more line")
    return [*broken[: _LINES_SHOWN - 1], f"{indent}... ({more}, --full shows all)"]
