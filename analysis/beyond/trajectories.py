"""Finished trajectories, step by step: decisions and texts, for Inspect and as lines for a terminal."""

import math
import shutil
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from analysis.finished_cells import FinishedCell, in_order, outcome
from harness.agents.trajectory import Call, Decision
from harness.benchmarks.items import Item
from harness.benchmarks.prepare import read
from harness.errors import UserError, printable
from harness.llm.call_log import CallLogReader
from harness.llm.recordings import Recording, Recordings
from harness.llm.request import Message
from harness.runner import layout
from harness.runner.results import TEST_SPLIT, read_rows

# Decisions about what a step contributed, made after its calls.
_AFTER = ("write", "halt")
_LINES_SHOWN = 6
# Width of the column of labels.
_LABEL = 13


class CallRecord(NamedTuple):
    """One charged use of a call, with its texts; None if the call log is missing."""

    call: Call
    messages: tuple[Message, ...] | None
    reply: str | None  # empty if the call failed


class Step(NamedTuple):
    """One step of a trajectory."""

    number: int | None  # from 1; 0: decisions before the first step; None: the final aggregation
    decisions: tuple[Decision, ...]
    calls: tuple[CallRecord, ...]
    memory: tuple[int, ...] | None  # steps stored when this one begins; None without memory

    @property
    def title(self) -> str:
        """Return the step's number, and role and backbone if a single agent acts."""
        name = {0: "Before the first step", None: "Aggregation"}.get(self.number, f"Step {self.number}")
        agents = {(use.call.role, use.call.backbone) for use in self.calls if use.call.role}
        return f"{name}: {' on '.join(*agents)}" if len(agents) == 1 else name

    def before(self) -> Iterator[tuple[str, str]]:
        """Yield label and text of each decision before the calls."""
        if self.memory is not None:
            drawn = {made.slot: f": {_chosen(made)}" for made in self.decisions if made.name == "retrieve"}
            steps = (f"step {number}{drawn.get(slot, '')}" for slot, number in enumerate(self.memory))
            yield "memory", "; ".join(steps) or "empty"
        for decision in self.decisions:
            if decision.name not in (*_AFTER, "retrieve"):
                yield f"{decision.name.replace('_', ' ')} {decision.slot or ''}".strip(), _chosen(decision)

    def after(self) -> Iterator[tuple[str, str]]:
        """Yield label and text of the gates' decisions about the contribution."""
        yield from ((decision.name, _chosen(decision)) for decision in self.decisions if decision.name in _AFTER)


class TrajectoryRecord(NamedTuple):
    """One trajectory."""

    item: Item
    row: Mapping[str, Any]  # of ``items.parquet``: graded text, verdict and totals
    steps: tuple[Step, ...]


def records(cell: FinishedCell, recorded: Sequence[Recording]) -> Iterator[TrajectoryRecord]:
    """Yield a cell's trajectories, with texts of its log or recordings. UserError if a question was not prepared."""
    run, folder = cell.run, cell.folder
    prepared = read(layout.manifest(run.preset, run.benchmark), layout.items(run.preset, run.benchmark))
    items, path = {item.id: item for item in prepared.pool}, folder / layout.CALL_LOG
    rows = [row for row in read_rows(folder / "items.parquet") if row["split"] == TEST_SPLIT]
    if strangers := [row["item_id"] for row in rows if row["item_id"] not in items]:
        raise UserError(f"{folder}: its question {strangers[0]!r} is none of the prepared ones; run the cell again")
    by_question: defaultdict[str, dict[str, list[Any]]] = defaultdict(lambda: {"calls": [], "decisions": []})
    for name, form in (("calls", Call), ("decisions", Decision)):
        for row in read_rows(folder / f"{name}.parquet"):
            by_question[row.pop("item_id")][name].append(form(**row))
    with ExitStack() as stack:
        key = layout.Cell(run.method, run.benchmark, run.backbone, run.seed)
        logs = [stack.enter_context(CallLogReader(path)).texts] if path.exists() else []
        logs += [stack.enter_context(Recordings(recorded, key)).texts] if recorded else []
        for row in rows:
            calls, decisions = (by_question[row["item_id"]][name] for name in ("calls", "decisions"))
            uses = [
                CallRecord(call, *next(filter(None, (of(call.key) for of in logs)), (None, None))) for call in calls
            ]
            steps = _steps(uses, decisions, has_memory=run.module == "gmr")
            yield TrajectoryRecord(items[row["item_id"]], row, tuple(steps))


def _steps(uses: list[CallRecord], decisions: list[Decision], *, has_memory: bool) -> Iterator[Step]:
    """Iterate over the steps, then the final aggregation if there is one."""
    memory: tuple[int, ...] = ()
    acting = [use for use in uses if use.call.is_step]
    for number in sorted({use.call.step for use in acting} | {decision.step for decision in decisions}):
        made = tuple(decision for decision in decisions if decision.step == number)
        yield Step(
            number, made, tuple(use for use in acting if use.call.step == number), memory if has_memory else None
        )
        # Without a write gate every contribution is stored.
        if all(decision.choice == "yes" for decision in made if decision.name == "write"):
            memory = (*memory, number)
    if final := tuple(use for use in uses if not use.call.is_step):
        yield Step(None, (), final, memory if has_memory else None)


def _chosen(decision: Decision) -> str:
    """Return the choice, with its probability if it was drawn, and the number of options if it names none of two."""
    probability = f", {100 * math.exp(decision.log_prob):.1f} %" if decision.log_prob else ""
    options = f", one of {decision.options}" if decision.options > 2 else ""
    return f"{decision.choice}{probability}{options}"


def question_lines(cell: FinishedCell, wrong: bool, others: Iterable[tuple[list[FinishedCell], bool]]) -> Iterator[str]:
    """Format a line per question; only of wrong ones, or of those lost to or won against the best of some rows."""
    results = map(outcome, cell.items["status"], cell.items["correct"])
    rows = cell.items.assign(outcome=list(results)).sort_values("item_id", key=lambda ids: ids.map(in_order))
    yield f"{rows['correct'].sum()} of {len(rows)} right, {(rows['outcome'] == 'error').sum()} in error."
    rows = rows[~rows["correct"]] if wrong else rows
    for cells, won in others:
        best = max(cells, key=lambda other: float(other.items["correct"].mean()))
        theirs = rows["item_id"].map(best.items.set_index("item_id")["correct"])
        rows = rows[(rows["correct"] == won) & (theirs != won)]
        yield f"{'Won against' if won else 'Lost to'} {best.run.cell}:"
    yield from (f"Shown: {len(rows)}.", "")
    width = max(map(len, rows["item_id"]), default=0)
    for row in rows.itertuples():
        counts = f"{row.calls:>3} calls  {row.prompt_tokens + row.completion_tokens:>7,} tokens"
        why = printable(": ".join(filter(None, (row.status, row.detail))))
        yield f"{printable(row.item_id):<{width}}  {row.outcome}  {counts}  cost {row.cost_total:.2e}  {why}"


def record_lines(record: TrajectoryRecord, *, full: bool) -> Iterator[str]:
    """Format a trajectory, from the question to its cost. ``full`` adds prompts and untruncated texts."""
    yield from (f"Question {printable(record.item.id)}", *_entry("", record.item.question, full))
    for step in record.steps:
        yield from ("", printable(step.title))
        for entry in (*step.before(), *(entry for use in step.calls for entry in _said(use, full)), *step.after()):
            yield from _entry(*entry, full)
    row, why = record.row, ", ".join(filter(None, (record.row["status"], record.row["detail"])))
    yield from ("", *_entry("answer", row["text"] or "(empty)", True))
    verdict = f"{'right' if row['correct'] else 'wrong'} ({why})"
    for label, text in (("gold", record.item.gold), ("extracted", row["answer"] or "none"), ("verdict", verdict)):
        yield from _entry(label, text, full)
    utility = "" if row["utility"] is None else f" Utility {row['utility']:.4f}."
    cost = f"Cost {row['cost_total']:.3g}, of this {row['cost_steps']:.3g} in steps.{utility}"
    tokens = f"{row['prompt_tokens']:,} + {row['completion_tokens']:,} tokens"
    yield from ("", f"{row['calls']} calls in {row['depth']} steps, {tokens}.", cost)


def _said(use: CallRecord, full: bool) -> Iterator[tuple[str, str]]:
    """Yield label and text of a call: who was asked, prompts if ``full`` (they repeat earlier texts), reply, tool."""
    agent = " on ".join(filter(None, (use.call.role, use.call.backbone)))
    yield "asked", f"{agent} ({use.call.purpose.replace('_', ' ')})"
    yield from (use.messages or ()) if full else ()
    failure = f"(the call failed: {use.call.error})" if use.call.error else "(empty)"
    yield "reply", "(unknown, since the call log is missing)" if use.reply is None else use.reply or failure
    if use.call.tool:
        yield "tool", use.call.tool


def _entry(label: str, text: str, full: bool) -> Iterator[str]:
    """Wrap a text after its label. Unless ``full``, keep the first lines only."""
    width = min(max(shutil.get_terminal_size((100, 0)).columns, 60), 120) - _LABEL
    given = printable(text.replace("\r\n", "\n"), "\n\t").strip("\n").splitlines() or [""]
    lines = [piece for line in given for piece in textwrap.wrap(line, width, drop_whitespace=False) or [""]]
    if not full and len(lines) > _LINES_SHOWN:
        lines = [*lines[: _LINES_SHOWN - 1], f"... ({len(lines) - _LINES_SHOWN + 1} more lines, --full shows all)"]
    for number, line in enumerate(lines):
        yield f"  {f'{label} ' if number == 0 else '':<{_LABEL - 2}}{line}".rstrip()
