"""A trained router at work on one question: what it would do first, or all of what it does."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.trajectories import Record, call_texts, record_of
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
    """A router rebuilt from its checkpoint, what the checkpoint says of it, and the plan of a cell that it answers."""

    path: Path
    facts: Mapping[str, Any]
    plan: Plan
    router: GMR


def restore(path: Path, preset: Callable[[str, Sequence[str]], Preset], *, greedy: bool = False) -> Restored:
    """Rebuild a router from its checkpoint; if ``greedy``, one that takes the most probable choice everywhere.

    ``preset`` gives the preset to work under, by the name of that it was trained under and its backbones. Raises
    UserError for no router's checkpoint, or one with other roles, backbones, profiles or embeddings.
    """
    found = checkpoint.load(path)
    facts = found.facts
    if facts.get("module") != _MODULE or not facts.keys() >= _FACTS:
        holds = facts.get("method", "something else")
        raise UserError(f"{path} holds no router of Gated-Memory Routing but {holds}; name a checkpoint of gmr")
    trained, now = _weights(facts["encoder"]), _weights(SentenceEncoder().identity)
    if trained != now:
        raise UserError(
            f"the router was trained with embeddings of {trained}, config/encoder.yaml declares {now}; restore that "
            "file, or train again"
        )
    chosen = preset(facts["preset"], [key for key, _ in facts["backbones"]])
    made = plan(chosen, Cell(facts["method"], facts["benchmark"], facts["backbone"], facts["seed"]))
    made = dataclasses.replace(made, folder=layout.RESULTS / chosen.name / "route" / facts["benchmark"], shared=())
    router: GMR = build(_MODULE, made.setting, {**facts["config"], **({"decode": "greedy"} if greedy else {})})
    router.load(found)
    return Restored(path, facts, made, router)


def _weights(encoder: str) -> str:
    """Return the weights in an encoder's name; between libraries and processors only last digits of vectors differ."""
    return encoder.partition("-fp32-")[0]


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
    """Return a question of the user's own, whose id is a hash of its text; UserError for a blank or garbled text."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UserError("the question is not valid UTF-8; check the encoding of the terminal or of the file it is from")
    if not text.strip():
        raise UserError("the question is blank; write it in quotes behind `gmr route`, or give --item")
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Item(id=f"own/{digest[:12]}", benchmark=restored.plan.cell.benchmark, question=text, gold="")


def prepared_question(restored: Restored, item: str) -> Item:
    """Return a prepared question of the router's benchmark; UserError if there is no such question."""
    by_id = {one.id: one for one in restored.plan.data.pool}
    check_item(item, list(by_id), restored.plan.cell.benchmark)
    return by_id[item]


def next_decision(restored: Restored, item: Item) -> FirstDecision:
    """Return the router's first decision; no model is asked and nothing is written."""
    return first_decision(restored.router, SentenceEncoder().encode(item.question).vector)


async def run(restored: Restored, item: Item) -> Walk:
    """Walk a trajectory with the preset's backbones, and grade it where a gold answer is; its calls are logged."""
    made = restored.plan
    path = made.folder / layout.CALL_LOG
    async with AsyncExitStack() as stack:
        log = stack.enter_context(CallLog(path))
        log.forget_failed()
        attempts = stack.enter_context(AttemptLog(made.folder / "attempts.jsonl"))
        runtime, served = await open_runtime(made, log, attempts, stack)
        context = runtime.context(item)
        trajectory = context.close(await restored.router.solve(item, context))
        verdict = await grade(made.benchmark, trajectory, runtime.tools) if item.gold else _UNJUDGED
    with call_texts(path) as said:
        record = record_of(Answered(trajectory, verdict), None, said, has_gates=True)
    return Walk(made.preset.name, is_simulated(made, served), restored.router.config.decode, record)


def to_text(about: Mapping[str, Any], found: FirstDecision | Walk, page: Page) -> str:
    """Return what a router was found to do, for the eyes of a person."""
    trained = f"trained on {'SIMULATED backbones' if about['simulated'] else 'models'}"
    run = f"preset {about['preset']}, seed {about['seed']}, {count(about['epoch'], 'epoch')}"
    lines = [f"{about['method']} for {about['benchmark']}, {trained}: {run}", about["checkpoint"], ""]
    if isinstance(found, FirstDecision):
        lines += ["Question", *page.indented(about["question"], "  "), "", *_outlook_lines(found)]
        return "\n".join(lines)
    if found.simulated:
        unknown = "Simulators know the prepared questions alone (--item), nothing of any other text."
        lines = [f"{SIMULATED_WARNING}.", *([] if about["item"] else [unknown]), "", *lines]
    asked = "simulated backbones" if found.simulated else "models"
    lines += [f"Run with the {asked} of preset {found.preset}, decoding by {found.decode}.", ""]
    return "\n".join([*lines, *record_lines(found.record, page)])


def _outlook_lines(outlook: FirstDecision) -> Iterator[str]:
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
