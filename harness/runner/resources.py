"""Open everything that a cell works with: call log, client, sandbox, encoder, caches and recordings."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, fields

from harness.agents.code_tools import CodeTools
from harness.agents.runtime import ErrorShare, Runtime
from harness.benchmarks.base import Tools
from harness.benchmarks.math_verifier import MathVerifier
from harness.database import CALL_LOG, Cache
from harness.errors import StoppedError, UserError
from harness.llm.archive import bounded_memory, data_of
from harness.llm.backbones import as_served
from harness.llm.call_log import ATTEMPT_LOG, AttemptLog, CallLog
from harness.llm.client import ChatClient, Spending, write_served
from harness.llm.encoder import Embeddings, SentenceEncoder
from harness.llm.recordings import Recordings
from harness.llm.request import Served
from harness.runner import layout
from harness.runner.plan import Plan
from harness.runner.results import read_rows
from harness.sandbox import FULL, Execution, Outcome, Program, Sandbox

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Resources:
    """What a cell works with, open."""

    runtime: Runtime
    served: Mapping[str, Served]  # descriptions of the models, by backbone
    log: CallLog
    attempts: AttemptLog


@asynccontextmanager
async def open_resources(plan: Plan) -> AsyncIterator[Resources]:
    """Open the resources of a cell, and lock its call log.

    Raises:
        UserError: if the log is in use, an endpoint is unreachable or serves another model, or programs cannot be
            confined.
        StoppedError: if the block is cancelled. Its message says what is kept.
    """
    with CallLog(plan.folder / CALL_LOG) as log:
        if len(log):
            logger.info("%s: %d finished calls in its log", plan.cell, len(log))
        try:
            async with AsyncExitStack() as stack:
                yield await _opened(plan, log, stack)
        except asyncio.CancelledError as error:
            kept = f"{len(log)} finished calls of {plan.cell} are kept, and the same command resumes with them"
            raise StoppedError(kept) from error


async def _opened(plan: Plan, log: CallLog, stack: AsyncExitStack) -> Resources:
    cell, run, is_foreign = plan.cell, plan.cell.run, plan.questions.is_foreign
    attempts = stack.enter_context(AttemptLog(plan.folder / ATTEMPT_LOG))
    path = layout.cache(run.name if is_foreign or plan.encoder else None)
    # The vectors file of the cell records its embeddings for bundles, and what programs did once.
    cache, vectors = (stack.enter_context(Cache(each)) for each in (path, plan.folder / layout.VECTORS))
    recordings = stack.enter_context(Recordings(run.recorded, cell))
    spending = None
    if run.budget is not None:
        spending = Spending(run.name, run.budget, lambda: layout.logs(run.name), run.declared.values())
    answers = recordings if run.recorded else None
    client = ChatClient(plan.endpoints, log, attempts, plan.in_process, spending, answers)
    await stack.enter_async_context(client)
    served = {key: await client.served(key, backbone.model) for key, backbone in cell.backbones.items()}
    sandbox = await stack.enter_async_context(Sandbox(cache=cache, own=vectors, reuses=not is_foreign))
    check_confinement(sandbox.level, served, is_recorded=bool(run.recorded))
    verifier = await stack.enter_async_context(MathVerifier(cache=cache, own=vectors))
    encoder = plan.encoder or SentenceEncoder()
    embeddings = Embeddings(encoder, cache, vectors, recordings.vector, plan.vectors, keeps=run.served)
    await stack.enter_async_context(embeddings)
    runtime = Runtime(
        client=client,
        backbones={key: as_served(recordings.pinned(cell.backbones[key]), model) for key, model in served.items()},
        benchmark=plan.benchmark,
        tools=Tools(sandbox, verifier),
        code_tools=CodeTools(sandbox, recorded_tools(plan)),
        embeddings=embeddings,
        seed=plan.setting.seed,
        errors=ErrorShare(run.max_error_share, f"gmr retry --preset {run.name}"),
        greedy=cell.is_greedy,
    )
    write_served(plan.folder, served.values(), len(log))
    return Resources(runtime, served, log, attempts)


def recorded_tools(plan: Plan) -> dict[Program, Execution]:
    """Results of programs in recorded enumerations, which are not run again."""
    executions: dict[Program, Execution] = {}
    for recording in plan.cell.run.recorded:
        path = recording.results / "tree" / plan.cell.benchmark / "tools.parquet"
        with data_of(path), bounded_memory(path):
            for row in read_rows(path) if path.exists() else ():
                program = Program(**{field.name: row.pop(field.name) for field in fields(Program)})
                executions.setdefault(program, Execution(**{**row, "outcome": Outcome(row["outcome"])}))
    return executions


def check_confinement(level: str, served: Mapping[str, Served], *, is_recorded: bool = False) -> None:
    """Raise a UserError if only resource limits confine programs of real models.

    Recorded models count as real, since a stranger's recording may call them simulated.
    This applies to all methods and benchmarks, since roles may run programs on any question.
    """
    real = [key for key, model in served.items() if is_recorded or not model.simulated]
    if real and level != FULL:
        raise UserError(
            f"only resource limits confine programs on this machine (sandbox level {level}), which is not enough for "
            f"programs of real or recorded models ({', '.join(real)}). `gmr check sandbox` shows what is missing; use "
            "a Linux virtual machine or container. Presets with simulated backbones work here"
        )
