"""What ``gmr route`` prints: a router's next decision, or a whole trajectory, for the eyes of a person."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

import orjson

from gmr.outlook import Gate, Option, Outlook, Walked
from harness.trajectory import Call
from workflow.route import About, Grade, Walk

_ROLES_SHOWN = 5
_LINES_SHOWN = 6
_BAR = 24
_LABEL = 11


def to_json(about: About, found: Outlook | Walk) -> str:
    """The same for a script: one document, with nothing left out."""
    kind = "outlook" if isinstance(found, Outlook) else "walk"
    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
    return orjson.dumps({"about": about, kind: found}, option=options).decode()


class Page:
    """Lays text out.

    Args:
        width: Columns.
        full: Whether long texts are shown whole, line by line as they are.
    """

    def __init__(self, width: int, *, full: bool) -> None:
        self._width = width
        self._full = full

    def show(self, about: About, found: Outlook | Walk) -> str:
        """What a router was found to do."""
        return self._outlook(about, found) if isinstance(found, Outlook) else self._walk(about, found)

    def _outlook(self, about: About, outlook: Outlook) -> str:
        top, rest = outlook.roles[:_ROLES_SHOWN], outlook.roles[_ROLES_SHOWN:]
        others = [f"  {f'{len(rest)} others':<32}{_percent(sum(one.probability for one in rest)):>8}"] if rest else []
        return _lines(
            *self._head(about),
            "",
            "Step 1, role",
            *_bars(top),
            *others,
            "",
            f"Step 1, backbone of {top[0].key}",
            *_bars(outlook.backbones),
            "",
            "No model was asked. Later steps depend on what the models reply: --run asks them.",
        )

    def _walk(self, about: About, walk: Walk) -> str:
        asked = "simulated backbones" if walk.simulated else "models"
        how = "the most probable choices" if walk.decode == "greedy" else "sampled choices"
        read = _numbers("step", walk.aggregated) if walk.aggregated else "nothing: memory is empty"
        return _lines(
            *(_warning(about) if walk.simulated else []),
            *self._head(about),
            "",
            f"Run with the {asked} of preset {walk.preset}, {how}.",
            *(line for step in walk.steps for line in ("", *self._step(step, walk))),
            "",
            f"Aggregator: {walk.aggregator.backbone}, the backbone chosen most often",
            *self._entry("read", read),
            *self._spent([walk.aggregator]),
            "",
            "Answer",
            *self._indented(walk.answer or _failure([walk.aggregator]), "  ", whole=True),
            *(self._grade(walk.grade) if walk.grade else []),
            "",
            f"Cost {walk.cost_total:.3g}, of this {walk.cost_steps:.3g} in {_count(len(walk.steps), 'step')} and "
            f"{walk.aggregator.cost:.3g} in the aggregation.",
        )

    def _head(self, about: About) -> list[str]:
        trained = f"trained on {'SIMULATED backbones' if about.simulated else 'models'}"
        run = f"preset {about.preset}, seed {about.seed}, {_count(about.epoch, 'epoch')}"
        return [
            f"{about.method} for {about.benchmark}, {trained}: {run}",
            about.checkpoint,
            "",
            f"Question {about.item or ''}".rstrip(),
            *self._indented(about.question, "  "),
        ]

    def _step(self, step: Walked, walk: Walk) -> list[str]:
        reply = walk.replies[step.calls[-1].key] or _failure(step.calls)
        return [
            f"Step {step.number}: {_chosen(step.role)} on {_chosen(step.backbone)}",
            *self._entry("memory", "; ".join(_seen(*one) for one in step.retrieved.items()) or "empty"),
            *self._entry("reply", reply),
            *self._entry("write", _gate(step.written, "stored", "refused")),
            *self._entry("halt", _gate(step.halted, "halts", "goes on")),
            *self._spent(step.calls),
        ]

    def _spent(self, calls: Sequence[Call]) -> list[str]:
        prompt, completion = sum(call.prompt_tokens for call in calls), sum(call.completion_tokens for call in calls)
        cost = sum(call.cost for call in calls)
        twice = f" in {len(calls)} calls" if len(calls) > 1 else ""
        return self._entry("spent", f"{prompt:,} + {completion:,} tokens{twice}, cost {cost:.3g}")

    def _grade(self, grade: Grade) -> list[str]:
        verdict = grade.verdict
        why = ", ".join(part for part in (verdict.status, verdict.detail) if part)
        extracted = "none" if verdict.answer is None else verdict.answer
        return [
            "",
            *self._entry("gold", grade.gold),
            *self._entry("extracted", extracted),
            *self._entry("verdict", f"{'right' if verdict.correct else 'wrong'} ({why})"),
        ]

    def _entry(self, label: str, text: str) -> list[str]:
        first, *rest = self._indented(text, " " * (_LABEL + 2))
        return [f"  {label:<{_LABEL}}{first.lstrip()}", *rest]

    def _indented(self, text: str, indent: str, *, whole: bool = False) -> list[str]:
        """The lines of a text; the first few of them, broken at the width, unless all are wanted."""
        lines = text.strip("\n").splitlines() or [""]
        if self._full:
            return [f"{indent}{line}".rstrip() for line in lines]
        broken = [f"{indent}{piece}".rstrip() for line in lines for piece in self._broken(line, len(indent))]
        if whole or len(broken) <= _LINES_SHOWN:
            return broken
        shown = broken[: _LINES_SHOWN - 1]
        return [*shown, f"{indent}... ({_count(len(broken) - len(shown), 'more line')}, --full shows all)"]

    def _broken(self, line: str, indent: int) -> list[str]:
        inner = line[: min(len(line) - len(line.lstrip()), self._width // 2)]
        return textwrap.wrap(line, self._width - indent, subsequent_indent=inner) or [""]


def _warning(about: About) -> list[str]:
    unknown = [] if about.item else ["They know the prepared questions alone (--item) and nothing of any other text."]
    return ["SIMULATED BACKBONES: no model was asked, and the replies are made up.", *unknown, ""]


def _bars(options: Iterable[Option]) -> list[str]:
    shown = list(options)
    largest = max(one.probability for one in shown)
    return [
        f"  {one.key:<32}{_percent(one.probability):>8}  {'█' * round(_BAR * one.probability / largest)}".rstrip()
        for one in shown
    ]


def _chosen(option: Option) -> str:
    return f"{option.key} ({_percent(option.probability)})"


def _seen(record: int, gate: Gate) -> str:
    return f"step {record}: {_gate(gate, 'seen', 'left out')}"


def _gate(gate: Gate, is_open: str, closed: str) -> str:
    """The outcome of a gate behind its probability of being open, whatever the outcome."""
    outcome = is_open if gate.is_open else closed
    return f"{outcome}, without a draw" if gate.probability is None else f"{_percent(gate.probability)}, {outcome}"


def _failure(calls: Sequence[Call]) -> str:
    """What stands where a reply would: the reason why there is none."""
    errors = [call.error for call in calls if call.error is not None]
    return f"(the call failed: {errors[-1]})" if errors else "(empty)"


def _numbers(noun: str, numbers: Sequence[int]) -> str:
    return f"{noun}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _lines(*lines: str) -> str:
    return "\n".join(lines)
