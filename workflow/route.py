"""A trained router at work on one question: what it would do first, or all of what it does."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from analysis.trajectories import Record, call_texts, record_of
from gmr.method import Option, Outlook, outlook
from harness.agents.results import Answered
from harness.agents.runtime import grade
from harness.benchmarks import benchmark as find_benchmark
from harness.benchmarks.items import Item, Status, Verdict
from harness.benchmarks.prepare import read
from harness.errors import UserError
from harness.llm.call_log import AttemptLog, CallLog
from harness.llm.encoder import SentenceEncoder
from harness.runner import layout
from harness.runner.config import Cell, MethodEntry, Preset
from harness.runner.plan import Plan
from harness.runner.setup import open_runtime
from workflow.trained_router import Restored
from workflow.trajectory_text import MADE_UP, Page, count, percent, record_lines

_ROLES_SHOWN = 5
_BAR = 24
_UNJUDGED = Verdict(False, None, Status.GRADED)


@dataclass(frozen=True, slots=True)
class Walk:
    """A whole trajectory; of a question of the user's own, without a gold answer and a verdict that says anything."""

    preset: str
    simulated: bool
    decode: str
    record: Record


def about(restored: Restored, item: Item) -> dict[str, Any]:
    """Return which router speaks, and of what question; the id is None for a question of the user's own."""
    told = {name: restored.facts[name] for name in ("method", "benchmark", "seed", "epoch", "preset", "simulated")}
    asked = {"item": item.id if item.gold else None, "question": item.question}
    return {"checkpoint": str(restored.path), **told, **asked}


def own_question(restored: Restored, text: str) -> Item:
    """A question of the user's own; equal texts meet equal chance.

    Raises:
        UserError: The text is blank, or no text in the terminal's encoding.
    """
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UserError("the question is not valid UTF-8; check the encoding of the terminal or of the file it is from")
    if not text.strip():
        raise UserError("the question is blank; write it in quotes behind `gmr route`, or give --item")
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Item(id=f"own/{digest[:12]}", benchmark=restored.setting.benchmark, question=text, gold="")


def prepared_question(restored: Restored, preset: Preset, item: str) -> Item:
    """A prepared question of the router's benchmark.

    Raises:
        UserError: There is no such question, or they have not been prepared.
    """
    key = restored.setting.benchmark
    items = layout.items(preset.name, key)
    by_id = {one.id: one for one in read(layout.manifest(preset.name, key), items).pool}
    if item not in by_id:
        near = difflib.get_close_matches(item, by_id, n=1) or list(by_id)[:1]
        raise UserError(f"{items} has no question {item!r} among its {len(by_id)}; one that it has is {near[0]!r}")
    return by_id[item]


def next_decision(restored: Restored, item: Item) -> Outlook:
    """What the router would do first; no model is asked and nothing is written."""
    return outlook(restored.router, SentenceEncoder().encode(item.question).vector)


async def run(restored: Restored, preset: Preset, item: Item) -> Walk:
    """Walk a trajectory with the backbones of a preset, and grade it where the question has a reference answer.

    Calls are kept in a log of their own, so that none is asked twice; failed ones are asked again.

    Raises:
        UserError: An endpoint is gone, what simulated backbones need is missing, or another process does the same.
    """
    plan = _plan(restored, preset)
    path = plan.folder / layout.CALL_LOG
    async with AsyncExitStack() as stack:
        log = stack.enter_context(CallLog(path))
        log.forget_failed()
        attempts = stack.enter_context(AttemptLog(plan.folder / "attempts.jsonl"))
        runtime, served = await open_runtime(plan, log, attempts, stack)
        context = runtime.context(item)
        trajectory = context.close(await restored.router.solve(item, context))
        verdict = await grade(plan.benchmark, trajectory, runtime.tools) if item.gold else _UNJUDGED
    simulated = any(one.simulated for one in served.values())
    with call_texts(path) as said:
        record = record_of(Answered(trajectory, verdict), None, said, has_gates=True)
    return Walk(preset.name, simulated, restored.router.config.decode, record)


def to_text(about: Mapping[str, Any], found: Outlook | Walk, page: Page) -> str:
    """Return what a router was found to do, for the eyes of a person."""
    trained = f"trained on {'SIMULATED backbones' if about['simulated'] else 'models'}"
    run = f"preset {about['preset']}, seed {about['seed']}, {count(about['epoch'], 'epoch')}"
    lines = [f"{about['method']} for {about['benchmark']}, {trained}: {run}", about["checkpoint"], ""]
    if isinstance(found, Outlook):
        lines += ["Question", *page.indented(about["question"], "  "), "", *_outlook_lines(found)]
        return "\n".join(lines)
    if found.simulated:
        unknown = "They know the prepared questions alone (--item), nothing of any other text."
        lines = [MADE_UP, *([] if about["item"] else [unknown]), "", *lines]
    asked = "simulated backbones" if found.simulated else "models"
    lines += [f"Run with the {asked} of preset {found.preset}, decoding by {found.decode}.", ""]
    return "\n".join([*lines, *record_lines(found.record, page)])


def _outlook_lines(outlook: Outlook) -> Iterator[str]:
    top, rest = outlook.roles[:_ROLES_SHOWN], outlook.roles[_ROLES_SHOWN:]
    yield "Step 1, role"
    yield from _bars(top)
    if rest:
        yield f"  {f'{len(rest)} others':<32}{percent(sum(one.probability for one in rest)):>8}"
    yield from ("", f"Step 1, backbone of {top[0].key}", *_bars(outlook.backbones), "")
    yield "No model was asked. Later steps depend on what the models reply: --run asks them."


def _bars(options: Sequence[Option]) -> Iterator[str]:
    largest = max(one.probability for one in options)
    for one in options:
        bar = "█" * round(_BAR * one.probability / largest)
        yield f"  {one.key:<32}{percent(one.probability):>8}  {bar}".rstrip()


def _plan(restored: Restored, preset: Preset) -> Plan:
    setting, facts = restored.setting, restored.facts
    key = setting.benchmark
    cell = Cell(facts["method"], key, setting.backbone, setting.seed)
    return Plan(
        preset=preset.model_copy(update={"backbones": tuple(setting.pool)}),
        cell=cell,
        method=MethodEntry(
            key=cell.method,
            module=facts["module"],
            title=cell.method,
            rows=(cell.backbone,),
            trained=True,
            config=facts["config"],
        ),
        backbones=setting.pool,
        benchmark=find_benchmark(key),
        data=read(layout.manifest(preset.name, key), layout.items(preset.name, key)),
        folder=layout.RESULTS / preset.name / "route" / key,
        shared=(),
    )
