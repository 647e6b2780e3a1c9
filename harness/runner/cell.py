"""Run a cell: open its runtime, train a learning method, answer and grade the test questions, write results."""

import asyncio
import logging
import platform
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import orjson

from harness.agents.code_tools import CodeTools
from harness.agents.runtime import ErrorShare, Runtime
from harness.agents.trajectory import Answered
from harness.benchmarks.base import Tools
from harness.benchmarks.math_verifier import MathVerifier
from harness.database import CALL_LOG, Cache
from harness.errors import StoppedError, UserError
from harness.files import sha256, write_atomically
from harness.fingerprint import prompts_of
from harness.llm.backbones import Backbone
from harness.llm.budget import Spending
from harness.llm.call_log import ATTEMPT_LOG, AttemptLog, CallLog, seconds_of
from harness.llm.client import ChatClient, write_served
from harness.llm.encoder import Embeddings, SentenceEncoder
from harness.llm.recordings import SERVERS, Recordings, data_of
from harness.llm.request import NOT_SENT, Sampling, Served
from harness.runner import layout
from harness.runner.evaluation import evaluate, progress
from harness.runner.plan import Plan
from harness.runner.results import TEST_SPLIT, TRAINING_SPLIT, read_rows, write, write_training
from harness.runner.setting import build
from harness.sandbox import Execution, Outcome, Program, Sandbox
from harness.sandbox.jail.confinement import FULL
from harness.training.loop import Learned, Training

logger = logging.getLogger(__name__)

SERVER_CHANGED = f"a server's description changed during the run ({SERVERS})"


async def run(plan: Plan) -> dict[str, Any]:
    """Run or resume a cell, and return the content of ``run.json``.

    Raises:
        UserError: if its log is in use, an endpoint is unreachable, or the disk is full.
        StoppedError: if it is cancelled.
    """
    with open_log(plan) as log:
        return await _run(plan, log)


@contextmanager
def open_log(plan: Plan) -> Iterator[CallLog]:
    """Open the call log of a cell. Convert cancellation to a StoppedError that says what is kept."""
    with CallLog(plan.folder / CALL_LOG) as log:
        if len(log):
            logger.info("%s: %d finished calls in its log", plan.cell, len(log))
        try:
            yield log
        except asyncio.CancelledError as error:
            kept = f"{len(log)} finished calls of {plan.cell} are kept, and the same command resumes with them"
            raise StoppedError(kept) from error


async def _run(plan: Plan, log: CallLog) -> dict[str, Any]:
    started, clock = time.time(), time.perf_counter()
    method = build(plan.cell.entry.module, plan.setting, plan.config, trained=plan.cell.entry.trained)
    async with open_runtime(plan, log) as (runtime, served, attempts):
        client = runtime.client
        if plan.cell.entry.trained:
            training = Training(plan.questions.train, runtime, str(plan.cell), plan.in_flight)
            with progress(client, training.progress):
                learned = await method.fit(training)
            if not isinstance(learned, Learned):
                problem = f"fit of {plan.cell.entry.module} returned a {type(learned).__name__}"
                raise UserError(problem, "return Learned(tensors, metadata), such as what training.outcomes() returned")
            about = {**plan.identity.content["record"], "simulated": runtime.simulated}
            write_training(plan.folder, training, learned, about)
        answered = await evaluate(method, plan.questions.test, runtime, str(plan.cell), in_flight=plan.in_flight)
        label, train = f"{plan.cell}, training questions", plan.questions.train if plan.cell.answers_training else ()
        of_training = await evaluate(method, train, runtime, label, in_flight=plan.in_flight)
        if plan.cell.answers_training:
            # Routers that learn from these answers as recordings need no encoder then.
            questions = (*train, *plan.questions.test)
            await asyncio.gather(*(runtime.embeddings.embed(item.question) for item in questions))
        record = {**record_of(plan, runtime, served), "sampling": _sampling([*answered, *of_training])}
        if plan.run.recordings:
            record |= _replies(plan, log, [*answered, *of_training])
        timing = {
            "started": started,
            "wall_s": time.perf_counter() - clock,
            "test_s": seconds_of(attempts.path, {call.key for each in answered for call in each.trajectory.calls}),
            "in_flight": plan.in_flight,
            "platform": platform.platform(),
            "python": platform.python_version(),
            "calls": {**client.counts, "failed_attempts": attempts.failed},
        }
    # The timing of recorded replies would be meaningless.
    if not plan.run.recorded or client.counts["asked"]:
        write_atomically(plan.folder / layout.TIMING, orjson.dumps(timing, option=orjson.OPT_INDENT_2))
    utility = method.utility if plan.cell.entry.trained else None
    plan.identity.write()
    return write(plan.folder, {TEST_SPLIT: answered, TRAINING_SPLIT: of_training}, record, utility)


@asynccontextmanager
async def open_runtime(plan: Plan, log: CallLog) -> AsyncIterator[tuple[Runtime, Mapping[str, Served], AttemptLog]]:
    """Open the runtime of a cell. Yields it with the served models and the log of attempts.

    Raises UserError if an endpoint is unreachable or serves another model, or if programs cannot be confined.
    """
    async with AsyncExitStack() as stack:
        attempts = stack.enter_context(AttemptLog(plan.folder / ATTEMPT_LOG))
        path = layout.foreign_cache(plan.run.name) if plan.is_foreign else layout.cache()
        # The vectors file of the cell records its embeddings for bundles, and what programs did once.
        cache, vectors = (stack.enter_context(Cache(each)) for each in (path, plan.folder / layout.VECTORS))
        prompts = prompts_of(plan.cell.entry.module, plan.benchmark.output_rules)
        recordings = stack.enter_context(Recordings(plan.run.recorded, plan.cell, prompts))
        stack.callback(recordings.report_differing)
        spending = _spending_of(plan, log.path)
        answers = recordings if plan.run.recorded else None
        client = ChatClient(plan.endpoints, log, attempts, plan.in_process, spending, answers)
        await stack.enter_async_context(client)
        served = {key: await client.served(key, backbone.model) for key, backbone in plan.cell.backbones.items()}
        sandbox = await stack.enter_async_context(Sandbox(cache=cache, own=vectors, reuses=not plan.is_foreign))
        check_confinement(sandbox.level, served, is_recorded=bool(plan.run.recorded))
        verifier = await stack.enter_async_context(MathVerifier(cache=cache, own=vectors))
        embeddings = await stack.enter_async_context(Embeddings(SentenceEncoder(), cache, vectors, recordings.vector))
        urls = {key: endpoint.url for key, endpoint in plan.endpoints.items()}
        runtime = Runtime(
            client=client,
            backbones={
                key: as_served(recordings.pinned(plan.cell.backbones[key]), model) for key, model in served.items()
            },
            benchmark=plan.benchmark,
            tools=Tools(sandbox, verifier),
            code_tools=CodeTools(sandbox, _recorded_tools(plan)),
            embeddings=embeddings,
            seed=plan.setting.seed,
            errors=ErrorShare(plan.run.max_error_share, urls, f"gmr retry --preset {plan.run.name}"),
            greedy=plan.cell.is_greedy,
        )
        write_served(plan.folder, served.values(), len(log))
        yield runtime, served, attempts


def _recorded_tools(plan: Plan) -> dict[Program, Execution]:
    """Results of programs in recorded enumerations, which are not run again."""
    executions: dict[Program, Execution] = {}
    for recording in plan.run.recorded:
        path = recording.results / "tree" / plan.cell.benchmark / "tools.parquet"
        with data_of(path):
            for row in read_rows(path) if path.exists() else ():
                program = Program(**{field.name: row.pop(field.name) for field in fields(Program)})
                executions.setdefault(program, Execution(**{**row, "outcome": Outcome(row["outcome"])}))
    return executions


def _spending_of(plan: Plan, log: Path) -> Spending | None:
    name, budget = plan.run.name, plan.run.budget
    if budget is None:
        return None
    return Spending(name, budget, lambda: sorted(layout.logs(name)), list(plan.run.declared.values()), log)


def check_confinement(level: str, served: Mapping[str, Served], *, is_recorded: bool = False) -> None:
    """Raise a UserError if only resource limits confine programs of real models. Warn for simulated models.

    Recorded models count as real, since a stranger's recording may call them simulated.
    This applies to all methods and benchmarks, since roles may run programs on any question.
    """
    if level == FULL:
        return
    real = [key for key, model in served.items() if is_recorded or not model.simulated]
    if real:
        raise UserError(
            f"only resource limits confine programs on this machine (sandbox level {level}), which is not enough for "
            f"programs of real or recorded models ({', '.join(real)}). `gmr sandbox` shows what is missing; use a "
            "Linux virtual machine or container. Presets with simulated backbones work here"
        )
    logger.warning(
        f"sandbox level {level}: only resource limits confine programs of simulated backbones; real models would be "
        "refused here (gmr sandbox)"
    )


def as_served(backbone: Backbone, served: Served) -> Backbone:
    """Set the revision that the server reports, and mark simulated stand-ins.

    Raises UserError if the configuration pins another revision.
    """
    pinned = backbone.revision if not served.simulated else None
    if pinned and served.revision and pinned != served.revision:
        raise UserError(
            f"{backbone.key} is pinned to revision {pinned} but its server has {served.revision}; "
            "serve the pinned revision, or correct config/backbones.yaml"
        )
    is_stand_in = backbone.stand_in or served.simulated
    return backbone.model_copy(update={"revision": served.revision or backbone.revision, "stand_in": is_stand_in})


def record_of(plan: Plan, runtime: Runtime, served: Mapping[str, Served]) -> dict[str, Any]:
    """Content of ``run.json`` without the hashes of tables: everything that identifies the results."""
    questions, trained = plan.questions, plan.cell.entry.trained
    record = {
        **plan.identity.content["record"],
        "benchmark_title": questions.title,
        "simulated": runtime.simulated,
        "notes": _notes(plan, served),
        "data": {
            "source": questions.source,
            "splits": questions.splits,
            "checksum": questions.checksum,
            "split_checksum": questions.split_checksum,
            "n_test": len(questions.test),
            "n_train": len(questions.train) if trained or plan.cell.answers_training else 0,
        },
        "config": plan.config.model_dump(mode="json"),
        "backbones": {key: _backbone_record(runtime.backbones[key], model) for key, model in served.items()},
        "sandbox": runtime.tools.sandbox.level,
        "rule_version": plan.benchmark.rule_version,
        "python": platform.python_version(),  # runs the programs
        "prompts": prompts_of(plan.cell.entry.module, plan.benchmark.output_rules),
    }
    if plan.setting.matched is not None:
        record["matched"] = plan.setting.matched._asdict()
    if trained:
        record["encoder"] = runtime.embeddings.encoder.identity
        record["trained"] = sha256(plan.folder / layout.TRAINED)
    return record


def _replies(plan: Plan, log: CallLog, answered: Sequence[Answered]) -> dict[str, Any]:
    """Recordings with their digests, and the numbers of recorded and new replies."""
    keys = {call.key for each in answered for call in each.trajectory.calls}
    if plan.cell.entry.trained:
        keys |= {row["key"] for row in read_rows(plan.folder / "training_calls.parquet", ["key"])}
    asked = sum(key in log for key in keys)
    return {
        "recordings": {recording.path.name: recording.sha256 for recording in plan.run.recorded},
        "replies": {"recorded": len(keys) - asked, "asked": asked},
    }


def _sampling(answered: Sequence[Answered]) -> list[dict[str, float]]:
    """Distinct sampling parameters of the calls, sorted."""
    used = frozenset[Sampling]().union(*(each.trajectory.samplings for each in answered))
    return [sampling._asdict() for sampling in sorted(used)]


def _backbone_record(backbone: Backbone, served: Served) -> dict[str, Any]:
    record = {
        **served.details,
        "model": served.model,
        "parameters_b": backbone.parameters_b,
        "prices": [backbone.price_in, backbone.price_out],
        "served_by": served.owned_by,
        "revision": backbone.revision,
        "revision_confirmed": served.revision is not None,
    }
    if backbone.weights:
        record["weights"] = backbone.weights
    return record


def _notes(plan: Plan, served: Mapping[str, Served]) -> list[str]:
    """Differences from the setting of the paper."""
    backbones = plan.cell.backbones.values()
    notes = sorted({f"weights {backbone.weights}" for backbone in backbones if backbone.weights})
    for key, model in served.items():
        if model.quantisation and not plan.cell.backbones[key].weights:
            notes.append(f"{key}: {model.quantisation} weights, as reported by its server")
        if NOT_SENT in model.details:
            notes.append(f"{key}: {model.details[NOT_SENT]} not sent, since its server rejects it")
    if "earlier" in orjson.loads((plan.folder / SERVERS).read_bytes()):
        notes.append(SERVER_CHANGED)
    if any(backbone.price for backbone in backbones):
        notes.append("costs at the prices of the preset's pool")
    if merged := [backbone.key for backbone in backbones if backbone.system == "merge"]:
        notes.append(f"system message merged into the user's for {', '.join(merged)}")
    if plan.run.decoding == "greedy":
        notes.append("greedy decoding")
    scales = {str(model.details.get("length_scale", 1)) for model in served.values()}
    notes += [f"length_scale {scale}" for scale in sorted(scales - {"1"})]
    limit, is_trained = plan.cell.limit, plan.cell.entry.trained
    bounds: dict[str, Any] = {"training questions": limit.train, "epochs": limit.epochs} if is_trained else {}
    bounds["test questions"] = limit.test
    if limit.share is not None:
        notes.append(f"limit: {100 * limit.share:g}% of the questions")
    notes += [
        f"limit: {bound} {name if bound != 1 else name.removesuffix('s')}"
        for name, bound in bounds.items()
        if bound is not None
    ]
    return notes
