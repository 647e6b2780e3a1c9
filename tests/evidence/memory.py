"""How much memory a cell needs by its number of questions: made-up ones, through everything that a real cell uses.

``python -m tests.evidence.memory 1000 10000`` evaluates each number in a process of its own and prints its peak: the
client, the call log, the evaluation and the tables are the real ones, and replies come from a canned endpoint of the
same process. Every question is asked three times in a chain, with a text of its own each time.
"""

from __future__ import annotations

import asyncio
import hashlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import results
from harness.agents.error_share import ErrorShare
from harness.agents.runtime import Runtime
from harness.agents.trajectory import Context, Decision
from harness.benchmarks.items import Item
from harness.llm.attempts import AttemptLog
from harness.llm.call_log import CallLog
from harness.llm.client import ChatClient
from harness.llm.endpoints import simulated
from harness.llm.request import Message, Reply, Request
from harness.llm.served import Served
from harness.runner.evaluation import evaluate
from harness.runner.progress import Progress
from tests.exact import Exact
from tests.scripted import backbone

QUESTION, REPLY = 500, 1_000
STEPS = 3
IN_FLIGHT = 256
MODEL = "org/canned"


class Canned:
    """Replies with text that follows from the request and does not repeat itself."""

    def complete(self, request: Request) -> Reply:
        return Reply(made_up(request.messages[-1].content, REPLY), 400, 250, "stop", MODEL)

    def served(self, model: str) -> Served:
        return Served(model, "simulated")


class Chain:
    """Asks three times, each time with the reply before, and records a decision a step."""

    async def solve(self, item: Item, context: Context) -> str:
        text = ""
        for step in range(1, STEPS + 1):
            prompt = (Message("system", item.question), Message("user", f"{item.id} {step} {text}"))
            text = (await context.ask("canned", prompt, step=step)).text
            context.decide(Decision(step, "next", 0, "canned", 5, -0.5 * step))
        return text


def made_up(seed: str, length: int) -> str:
    """Hexadecimal text that follows from a seed."""
    return hashlib.shake_256(seed.encode()).hexdigest(length // 2)


async def cell(number: int, folder: Path) -> None:
    """Answer and grade so many questions, log the calls and write the tables."""
    items = [
        Item(id=f"q{n}", benchmark="toy", question=made_up(f"question {n}", QUESTION), gold="") for n in range(number)
    ]
    attempts = AttemptLog(folder / "attempts.jsonl")
    with CallLog(folder / "calls.sqlite") as log:
        async with ChatClient({"canned": simulated()}, log, attempts, in_process=Canned()) as client:
            nothing: dict[str, Any] = {"tools": None, "code_tools": None, "embeddings": None}
            runtime = Runtime(
                client=client,
                backbones={"canned": backbone("canned", 1, MODEL)},
                benchmark=Exact(),  # type: ignore[arg-type]
                seed=0,
                errors=ErrorShare(0.05),
                **nothing,
            )
            progress = Progress("toy", number)
            answered = await evaluate(Chain(), items, runtime, progress, in_flight=IN_FLIGHT)
    results.write(folder, answered, {"cell": "toy"})
    attempts.close()


def main(words: Sequence[str]) -> None:
    """Measure each number given; with ``--one``, be the process that is measured."""
    if words[:1] == ["--one"]:
        with tempfile.TemporaryDirectory() as folder:
            before, started = _peak(), time.perf_counter()
            asyncio.run(cell(int(words[1]), Path(folder)))
            print(f"{words[1]:>8} {before:10.0f} {_peak():10.0f} {time.perf_counter() - started:8.0f}")
        return
    print("questions  start/MiB   peak/MiB  seconds", flush=True)
    for number in words or ["1000", "10000"]:
        subprocess.run([sys.executable, "-m", "tests.evidence.memory", "--one", number], check=True)


def _peak() -> float:
    """Largest resident set so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**10 if sys.platform == "linux" else 2**20)


if __name__ == "__main__":
    main(sys.argv[1:])
