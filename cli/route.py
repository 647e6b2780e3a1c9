"""Trained router on one question: its first decision, or the whole trajectory."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.trajectories import TrajectoryRecord, call_texts, record_of
from cli.trajectory_printer import Page, check_item, count, percent, record_lines
from gmr.method import GMR, FirstDecision, Option, first_decision
from harness.agents.runtime import grade
from harness.agents.trajectory import Answered
from harness.benchmarks.items import Item, Status, Verdict
from harness.errors import UserError
from harness.llm.call_log import AttemptLog, CallLog
from harness.llm.encoder import SentenceEncoder
from harness.runner import layout
from harness.runner.config import Cell, Preset
from harness.runner.method import build
from harness.runner.plan import Plan, plan
from harness.runner.results import SIMULATED_WARNING
from harness.runner.setup import is_simulated, open_runtime
from harness.training.loop import checkpoint

_ROLES_SHOWN = 5
_BAR = 24
_UNJUDGED = Verdict(False, None, Status.GRADED)
_MODULE = "gmr"
_OF_THE_CELL = {"method", "module", "config", "preset", "benchmark", "backbone", "seed", "training_seed", "simulated"}
_FACTS = _OF_THE_CELL | {"epoch", "encoder", "roles", "backbones"}


@dataclass(frozen=True, slots=True)
class Restored:
    """Router rebuilt from its checkpoint, the facts of the checkpoint, and the plan of the cell that it answers."""

    path: Path
    facts: Mapping[str, Any]
    plan: Plan
    router: GMR


def restore(path: Path, preset_for: Callable[[str, Sequence[str]], Preset], *, greedy: bool = False) -> Restored:
    """Rebuild a router from its checkpoint; if ``greedy``, one that takes the most probable choice everywhere.

    ``preset_for`` returns the preset to work under, from the name of that of the training and its backbones. Raises
    UserError if the file is no router's checkpoint, or has other roles, backbones, profiles or embeddings.
    """
    trained = checkpoint.load(path)
    facts = trained.facts
    if facts.get("module") != _MODULE or not facts.keys() >= _FACTS:
        holds = facts.get("method", "something else")
        raise UserError(f"{path} holds no router of Gated-Memory Routing but {holds}; name a checkpoint of gmr")
    # Between libraries and processors, the end of an encoder's name, only last digits of vectors differ.
    then, now = (name.partition("-fp32-")[0] for name in (facts["encoder"], SentenceEncoder().identity))
    if then != now:
        raise UserError(
            f"the router was trained with embeddings of {then}, config/encoder.yaml declares {now}; restore that "
            "file, or train again"
        )
    preset = preset_for(facts["preset"], [key for key, _ in facts["backbones"]])
    cell_plan = plan(preset, Cell(facts["method"], facts["benchmark"], facts["backbone"], facts["seed"]))
    folder = layout.RESULTS / preset.name / "route" / facts["benchmark"]
    settings = {**facts["config"], **({"decode": "greedy"} if greedy else {})}
    router: GMR = build(_MODULE, cell_plan.setting, settings)
    router.load(trained)
    return Restored(path, facts, dataclasses.replace(cell_plan, folder=folder, shared=()), router)


@dataclass(frozen=True, slots=True)
class Walk:
    """Whole trajectory; its verdict says nothing where the question is the user's own and has no gold answer."""

    preset: str
    simulated: bool
    decode: str
    record: TrajectoryRecord


def about(restored: Restored, item: Item) -> dict[str, Any]:
    """Return the router's facts and the question; the id is None for a question of the user's own."""
    facts = {name: restored.facts[name] for name in ("method", "benchmark", "seed", "epoch", "preset", "simulated")}
    question = {"item": item.id if item.gold else None, "question": item.question}
    return {"checkpoint": str(restored.path), **facts, **question}


def own_question(restored: Restored, text: str) -> Item:
    """Return a question of the user's own, whose id is a hash of its text; UserError for a blank or garbled text."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UserError("the question is not valid UTF-8; check the encoding of the terminal or of the file it is from")
    if not text.strip():
        raise UserError("the question is blank; write it in quotes behind `gmr route`, or give --item")
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Item(id=f"own/{digest[:12]}", benchmark=restored.plan.cell.benchmark, question=text, gold="")


def prepared_question(restored: Restored, item: str) -> Item:
    """Return a prepared question of the router's benchmark; UserError if there is no such question."""
    by_id = {question.id: question for question in restored.plan.data.pool}
    check_item(item, list(by_id), restored.plan.cell.benchmark)
    return by_id[item]


def next_decision(restored: Restored, item: Item) -> FirstDecision:
    """Return the router's first decision; no model is asked and nothing is written."""
    return first_decision(restored.router, SentenceEncoder().encode(item.question).vector)


async def run(restored: Restored, item: Item) -> Walk:
    """Walk a trajectory with the preset's backbones, and grade it if there is a gold answer; its calls are logged."""
    cell_plan = restored.plan
    path = cell_plan.folder / layout.CALL_LOG
    async with AsyncExitStack() as stack:
        log = stack.enter_context(CallLog(path))
        log.forget_failed()
        attempts = stack.enter_context(AttemptLog(cell_plan.folder / "attempts.jsonl"))
        runtime, served = await open_runtime(cell_plan, log, attempts, stack)
        context = runtime.context(item)
        trajectory = context.close(await restored.router.solve(item, context))
        verdict = await grade(cell_plan.benchmark, trajectory, runtime.tools) if item.gold else _UNJUDGED
    with call_texts(path) as texts:
        record = record_of(Answered(trajectory, verdict), None, texts, has_gates=True)
    return Walk(cell_plan.preset.name, is_simulated(cell_plan, served), restored.router.config.decode, record)


def to_text(about: Mapping[str, Any], result: FirstDecision | Walk, page: Page) -> str:
    """Return a first decision or a trajectory as text, below what :func:`about` says."""
    trained = f"trained on {'SIMULATED backbones' if about['simulated'] else 'models'}"
    run = f"preset {about['preset']}, seed {about['seed']}, {count(about['epoch'], 'epoch')}"
    lines = [f"{about['method']} for {about['benchmark']}, {trained}: {run}", about["checkpoint"], ""]
    if isinstance(result, FirstDecision):
        question = page.indented(about["question"], "  ")
        return "\n".join([*lines, "Question", *question, "", *_decision_lines(result)])
    if result.simulated:
        unknown = "Simulators know the prepared questions alone (--item), nothing of any other text."
        lines = [f"{SIMULATED_WARNING}.", *([] if about["item"] else [unknown]), "", *lines]
    backbones = "simulated backbones" if result.simulated else "models"
    lines += [f"Run with the {backbones} of preset {result.preset}, decoding by {result.decode}.", ""]
    return "\n".join([*lines, *record_lines(result.record, page)])


def _decision_lines(decision: FirstDecision) -> Iterator[str]:
    top, rest = decision.roles[:_ROLES_SHOWN], decision.roles[_ROLES_SHOWN:]
    yield "Step 1, role"
    yield from _bars(top)
    if rest:
        yield f"  {f'{len(rest)} others':<32}{percent(sum(option.probability for option in rest)):>8}"
    yield from ("", f"Step 1, backbone of {top[0].key}", *_bars(decision.backbones), "")
    yield "No model was asked. Later steps depend on what the models reply: --run asks them."


def _bars(options: Sequence[Option]) -> Iterator[str]:
    largest = max(option.probability for option in options)
    for option in options:
        bar = "█" * round(_BAR * option.probability / largest)
        yield f"  {option.key:<32}{percent(option.probability):>8}  {bar}".rstrip()
