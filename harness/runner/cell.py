"""Run a cell: train a learning method, answer and grade the test questions, write results."""

import asyncio
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from harness.errors import UserError
from harness.files import write_atomically
from harness.llm.call_log import seconds_of
from harness.runner import layout
from harness.runner.evaluation import evaluate, progress
from harness.runner.plan import Plan
from harness.runner.record import record_of, record_of_answers
from harness.runner.resources import open_resources
from harness.runner.results import TEST_SPLIT, TRAINING_SPLIT, write, write_training
from harness.runner.setting import build
from harness.training.loop import Learned, Training


async def run(plan: Plan) -> dict[str, Any]:
    """Run or resume a cell, and return the content of ``run.json``.

    Raises:
        UserError: if its log is in use, an endpoint is unreachable, or the disk is full.
        StoppedError: if it is cancelled.
    """
    started, clock = time.time(), time.perf_counter()
    method = build(plan.cell.entry.module, plan.setting, plan.config, trained=plan.cell.entry.trained)
    async with open_resources(plan) as resources:
        runtime, attempts = resources.runtime, resources.attempts
        if plan.cell.entry.trained:
            training = Training(plan.questions.train, runtime, str(plan.cell), plan.in_flight)
            await train(method, training, plan.folder, {**plan.cell.record, "simulated": runtime.simulated})
        tests = [(method.solve, item) for item in plan.questions.test]
        answered = await evaluate(tests, runtime, str(plan.cell), in_flight=plan.in_flight)
        items = plan.questions.train if plan.cell.answers_training else []
        label, others = f"{plan.cell}, training questions", [(method.solve, item) for item in items]
        of_training = await evaluate(others, runtime, label, in_flight=plan.in_flight)
        if plan.cell.answers_training:
            # Routers that learn from these answers as recordings need no encoder then.
            questions = (*items, *plan.questions.test)
            await asyncio.gather(*(runtime.embeddings.embed(item.question) for item in questions))
        await runtime.embeddings.check_recorded()
        timing = {
            "started": started,
            "wall_s": time.perf_counter() - clock,
            "test_s": seconds_of(attempts.path, {call.key for each in answered for call in each.trajectory.calls}),
            "in_flight": plan.in_flight,
            "platform": platform.platform(),
            "python": platform.python_version(),
            "calls": {**runtime.client.counts, "failed_attempts": attempts.failed},
        }
        # The timing of recorded replies would be meaningless.
        if not plan.cell.run.recorded or runtime.client.counts["asked"]:
            write_atomically(plan.folder / layout.TIMING, orjson.dumps(timing, option=orjson.OPT_INDENT_2))
        of_answers = record_of_answers(plan, resources.log, [*answered, *of_training])
        record = {**record_of(plan, resources), **of_answers}
        utility = method.utility if plan.cell.entry.trained else None
        plan.cell.identity.write()
        return write(plan.folder, {TEST_SPLIT: answered, TRAINING_SPLIT: of_training}, record, utility)


async def train(method: Any, training: Training, folder: Path, identity: Mapping[str, Any]) -> None:
    """Train a method, and write what it learned. Raises UserError if it does not return that."""
    with progress(training.runtime.client, training.progress):
        learned = await method.fit(training)
    if not isinstance(learned, Learned):
        problem = f"fit of {identity['module']} returned a {type(learned).__name__}"
        raise UserError(problem, "return Learned(tensors, metadata), such as what training.outcomes() returned")
    write_training(folder, training, learned, identity)
