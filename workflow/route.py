"""A trained router at work on one question: what it would do first, or all of what it does."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass

from analysis.trajectories import CallTexts, Said, Step, steps_of
from gmr.outlook import Outlook, outlook
from harness.agents.grading import grade
from harness.agents.trajectory import Trajectory
from harness.benchmarks import benchmark as find_benchmark
from harness.benchmarks.items import Item, Verdict
from harness.benchmarks.prepare import read
from harness.errors import UserError
from harness.llm.attempts import AttemptLog
from harness.llm.call_log import CallLog
from harness.llm.encoder import SentenceEncoder
from harness.runner import layout
from harness.runner.config import Cell, MethodEntry, Preset
from harness.runner.plan import Plan
from harness.runner.setup import open_runtime
from workflow.restored import Restored


@dataclass(frozen=True, slots=True)
class About:
    """Which router speaks, and of what question.

    Attributes:
        checkpoint: The file it comes from.
        method: Key of the method, which may be a variant.
        benchmark: The benchmark it was trained on.
        seed: Training seed.
        epoch: Passes over the training questions behind it.
        preset: The preset it was trained with.
        simulated: Whether it was trained on simulated backbones.
        item: Id of a prepared question, ``None`` for a question of the user's own.
        question: The text.
    """

    checkpoint: str
    method: str
    benchmark: str
    seed: int
    epoch: int
    preset: str
    simulated: bool
    item: str | None
    question: str


@dataclass(frozen=True, slots=True)
class Grade:
    """The reference answer of a prepared question, and the verdict on the router's."""

    gold: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Walk:
    """A whole trajectory.

    Attributes:
        preset: The preset whose backbones were asked.
        simulated: Whether they are simulated.
        decode: ``sample`` or ``greedy``.
        steps: The steps, with what was said.
        aggregator: The final call.
        aggregated: Numbers of the steps whose contributions it read.
        answer: The final answer.
        cost_steps: Price without the final call, in the paper's unit.
        cost_total: Price of all calls.
        grade: ``None`` for a question of the user's own.
    """

    preset: str
    simulated: bool
    decode: str
    steps: tuple[Step, ...]
    aggregator: Said
    aggregated: tuple[int, ...]
    answer: str
    cost_steps: float
    cost_total: float
    grade: Grade | None


def about(restored: Restored, item: Item) -> About:
    """A router, and a question for it."""
    told = {name: restored.facts[name] for name in ("method", "benchmark", "seed", "epoch", "preset", "simulated")}
    return About(str(restored.path), **told, item=item.id if item.gold else None, question=item.question)


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

    Calls are kept in a log beside those of the cells, so that none is asked twice; failed ones are asked again.

    Raises:
        UserError: An endpoint is gone, what simulated backbones need is missing, or another process does the same.
    """
    plan = _plan(restored, preset)
    path = plan.folder / layout.CALL_LOG
    async with AsyncExitStack() as stack:
        log = stack.enter_context(CallLog(path))
        log.forget_failed()
        attempts = AttemptLog(plan.folder / "attempts.jsonl")
        stack.callback(attempts.close)
        runtime, served = await open_runtime(plan, log, attempts, stack)
        context = runtime.context(item)
        trajectory = context.close(await restored.router.solve(item, context))
        graded = Grade(item.gold, await grade(plan.benchmark, trajectory, runtime.tools)) if item.gold else None
    simulated = any(one.simulated for one in served.values())
    with closing(CallTexts(path)) as texts:
        return _walk(restored, trajectory, texts, graded, preset.name, simulated)


def aggregated(steps: Iterable[Step], empty_memory: str) -> tuple[int, ...]:
    """Numbers of the steps whose contributions the aggregator read (paper, Algorithm 1; D-GMR-9).

    Args:
        steps: All steps.
        empty_memory: What it gets where nothing was stored; see :class:`~gmr.config.Config`.
    """
    numbers = {step.number: step.written is not None and step.written.is_open for step in steps}
    stored = tuple(number for number, written in numbers.items() if written)
    return stored or ((max(numbers),) if empty_memory == "last_response" else ())


def _walk(
    restored: Restored,
    trajectory: Trajectory,
    texts: CallTexts,
    graded: Grade | None,
    preset: str,
    simulated: bool,
) -> Walk:
    settings = restored.router.config
    steps = tuple(steps_of(trajectory, texts.said, has_gates=True))
    return Walk(
        preset=preset,
        simulated=simulated,
        decode=settings.decode,
        steps=steps,
        aggregator=texts.said(trajectory.calls[-1]),
        aggregated=aggregated(steps, settings.empty_memory),
        answer=trajectory.answer,
        cost_steps=trajectory.cost_steps,
        cost_total=trajectory.cost_total,
        grade=graded,
    )


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
