"""A recorded cell replayed: its trajectories walked again with what was recorded, and every figure compared.

What was learned is taken as recorded, and so are the tables of the training; of these, each call is looked up in the
log. Then the method answers the test questions again: decisions are forced to be the recorded ones and their
log-probabilities computed again, prompts are built again and have to be those of recorded calls, programs are executed
again, answers extracted and graded again, tokens and costs added up again.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from harness import results
from harness.agents.code_tools import CodeTools
from harness.agents.error_share import ErrorShare
from harness.agents.runtime import Runtime
from harness.benchmarks import Tools
from harness.benchmarks.items import Verdict
from harness.benchmarks.math_verifier import MathVerifier
from harness.cache import Cache
from harness.errors import UserError
from harness.files import code_of
from harness.llm.attempts import AttemptLog
from harness.llm.backbones import Backbone
from harness.llm.call_log import CallLog
from harness.llm.embeddings import Embeddings
from harness.llm.encoder import SentenceEncoder
from harness.llm.served import Served
from harness.recording import Recording
from harness.results import Answered
from harness.rewalk import RecordedClient, RecordedContext, Walk
from harness.runner import finished, layout
from harness.runner.evaluation import evaluate
from harness.runner.plan import Plan
from harness.runner.progress import Progress
from harness.runner.setup import check_confinement
from harness.sandbox import Outcome
from harness.sandbox.cache import MACHINES_OWN, CachedSandbox
from harness.tables import rows_of
from harness.training.loop import CHECKPOINT, TABLES

logger = logging.getLogger(__name__)

AT_ONCE = 64
_ADDED_ON_WRITING = ("schema", "run_id")
_PROGRAM_ENDED = {str(outcome) for outcome in Outcome}


async def run(plan: Plan, recording: Recording) -> dict[str, Any]:
    """Replay a cell, and write it as the recorded run had it.

    Returns:
        The content of ``run.json``.

    Raises:
        UserError: The bundle lacks something of the cell, holds it altered, or is of another version of the suite; or
            the replay differs from what was recorded. The message names the first item, step or call.
    """
    recorded = orjson.loads(recording.read(plan.folder / "run.json"))
    _check_origin(plan, recorded)
    log_path = layout.call_log(plan.preset.name, plan.cell)
    recording.check(plan.folder / f"{name}.parquet" for name in results.TABLES)
    recording.place([log_path, *_learned(plan)])
    then = {one.trajectory.item.id: one for one in results.read(recording.path(plan.folder), plan.test)}
    walk = Walk(str(plan.cell), {key: one.trajectory for key, one in then.items()})
    async with AsyncExitStack() as stack:
        log = stack.enter_context(CallLog(log_path))
        _check_training(plan, log, recorded)
        _check_calls(plan, log, then)
        runtime = await _open(plan, recording, recorded, log, walk, stack)
        method = finished.trained_method(plan, recorded)
        progress = Progress(str(plan.cell), len(plan.test))
        now = await evaluate(method, plan.test, runtime, progress, in_flight=AT_ONCE)
    identity = {key: value for key, value in recorded.items() if key not in _ADDED_ON_WRITING}
    utility = method.utility if plan.method.trained else None  # type: ignore[attr-defined]
    found = results.write(plan.folder, _compared(plan, then, now), identity, utility)
    if found["run_id"] != recorded["run_id"]:
        (plan.folder / "run.json").unlink()
        raise UserError(
            f"{plan.cell}: the tables are not to the byte what the cell's run_id names; the bundle was altered, or "
            "another version of pyarrow writes here (install those of constraints.txt)"
        )
    logger.info("%s: replayed, log-probabilities within %.1e of the recorded ones", plan.cell, walk.deviation)
    return found


def _check_origin(plan: Plan, recorded: Mapping[str, Any]) -> None:
    data = plan.data.checksum, plan.data.split_checksum, len(plan.test)
    facts = {
        "code": (recorded["code"], code_of(plan.method.module)),
        "configuration": (recorded["config_hash"], plan.config_hash),
        "questions": (tuple(recorded["data"][name] for name in ("checksum", "split_checksum", "n_test")), data),
        "grading rules": (recorded["rule_version"], plan.benchmark.rule_version),
    }
    for name, (then, now) in facts.items():
        if then != now:
            raise UserError(f"{plan.cell} was recorded with other {name}; replay it in the checkout that recorded it")


def _learned(plan: Plan) -> list[Path]:
    """The files of a training: its tables, and what was learned."""
    if not plan.method.trained:
        return []
    return [plan.folder / CHECKPOINT, *(plan.folder / f"{name}.parquet" for name in TABLES)]


def _check_training(plan: Plan, log: CallLog, recorded: Mapping[str, Any]) -> None:
    """Look for every call of the training, each to be found in the log with the tokens and the cost of its row."""
    if not plan.method.trained:
        return
    backbones = _backbones(plan, recorded)
    for row in rows_of(plan.folder / "training_calls.parquet"):
        reply = log.get(row["key"])
        where = f"{plan.cell}, training, epoch {row['epoch']}, item {row['item_id']}, step {row['step']}"
        if reply is None:
            raise UserError(
                f"{where}: a call is missing: {row['purpose']}, {row['backbone']} (call {row['key']}); the bundle was "
                "altered or is incomplete"
            )
        cost = backbones[row["backbone"]].cost(reply.prompt_tokens, reply.completion_tokens)
        if (reply.prompt_tokens, reply.completion_tokens, cost) != (
            row["prompt_tokens"],
            row["completion_tokens"],
            row["cost"],
        ):
            raise UserError(f"{where}: tokens or cost are not those of call {row['key']}; the bundle was altered")


def _check_calls(plan: Plan, log: CallLog, then: Mapping[str, Answered]) -> None:
    """Look for every call before the walk begins, so that the first one missing is the same however it is walked."""
    for item, one in then.items():
        for call in one.trajectory.calls:
            if call.key not in log:
                raise UserError(
                    f"{plan.cell}, item {item}, step {call.step}: a call is missing: {call.purpose}, {call.backbone} "
                    f"(call {call.key}); the bundle was altered or is incomplete"
                )


def _backbones(plan: Plan, recorded: Mapping[str, Any]) -> dict[str, Backbone]:
    """The backbones as their servers reported them then."""
    return {key: replace(plan.backbones[key], revision=recorded["backbones"][key]["revision"]) for key in plan.rows}


async def _open(
    plan: Plan, recording: Recording, recorded: Mapping[str, Any], log: CallLog, walk: Walk, stack: AsyncExitStack
) -> Runtime:
    attempts = AttemptLog(plan.folder / "attempts.jsonl")
    stack.callback(attempts.close)
    client = await stack.enter_async_context(RecordedClient({}, log, attempts))
    cache = stack.enter_context(Cache(layout.cache()))
    sandbox = await stack.enter_async_context(CachedSandbox(cache))
    served = {key: Served(one["model"], one.get("served_by")) for key, one in recorded["backbones"].items()}
    check_confinement(sandbox.level, served)
    return Runtime(
        client=client,
        backbones=_backbones(plan, recorded),
        benchmark=plan.benchmark,
        tools=Tools(sandbox, await stack.enter_async_context(MathVerifier())),
        code_tools=CodeTools(sandbox),
        embeddings=await stack.enter_async_context(Embeddings(SentenceEncoder(), cache)),
        seed=plan.seed,
        errors=ErrorShare(1.0),
        greedy=plan.preset.greedy,
        contexts=functools.partial(RecordedContext, walk=walk),
    )


def _compared(plan: Plan, then: Mapping[str, Answered], now: Iterable[Answered]) -> Iterator[Answered]:
    """The answers with their recorded verdicts, each compared with what the replay made of it."""
    for one in now:
        item = one.trajectory.item.id
        known = then[item]
        if one.trajectory != known.trajectory:
            parts = ("answer", "calls", "decisions", "embedded", "truncated")
            part = next(name for name in parts if getattr(one.trajectory, name) != getattr(known.trajectory, name))
            raise UserError(f"{plan.cell}, item {item}: {part} not as recorded; the bundle was altered")
        _compare(plan, item, known.verdict, one.verdict)
        yield known


def _compare(plan: Plan, item: str, then: Verdict, now: Verdict) -> None:
    # A second opinion that ran out of time is none.
    if _judged(then) == _judged(now) and all(now.also.get(rule, said) == said for rule, said in then.also.items()):
        return
    told = f"{_told(then)} is recorded, {_told(now)} found"
    if _is_machines(then) or _is_machines(now):
        logger.warning("%s, item %s: %s; a machine's own limits decide that, the record stands", plan.cell, item, told)
        return
    raise UserError(f"{plan.cell}, item {item}: another verdict: {told}; the bundle was altered, or see docs/replay.md")


def _judged(verdict: Verdict) -> tuple[object, ...]:
    """What has to be the same; the words on how a program failed are another Python's own."""
    return verdict.correct, verdict.answer, verdict.status


def _told(verdict: Verdict) -> str:
    return f"{'right' if verdict.correct else 'wrong'} ({verdict.status}, {verdict.detail or verdict.answer})"


def _is_machines(verdict: Verdict) -> bool:
    """Whether the time or the memory a machine has may have decided."""
    ended = verdict.detail.partition(":")[0]
    return ended in _PROGRAM_ENDED and Outcome(ended) in MACHINES_OWN
