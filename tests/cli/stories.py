"""Hand-made finished cells: prepared questions, tables and call log in the suite's format."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from harness.agents.trajectory import Answered, CallSpec, Decision
from harness.benchmarks.items import Item, Status, Verdict, checksum
from harness.llm.call_log import CallLog
from harness.llm.request import Message, Reply
from harness.runner import layout, results
from harness.runner.layout import Cell
from harness.scripted import ScriptedModel
from tests.analysis.cells import run_record
from tests.fixtures import context

PRESET = "embedded"
RIGHT = Verdict(True, "7", Status.GRADED)


@dataclass(frozen=True)
class Ask:
    """One call: its context arguments, message texts and reply."""

    reply: str | Reply
    messages: Sequence[tuple[str, str]] = (("user", "What is it?"),)
    backbone: str = "small"
    how: dict[str, Any] = field(default_factory=dict)
    tool: str = ""


@dataclass(frozen=True)
class Story:
    """One trajectory."""

    asks: Sequence[Ask]
    decisions: Sequence[Decision] = ()
    answer: str = "The answer is 7"
    verdict: Verdict = RIGHT


def prepare(items: Sequence[Item]) -> None:
    """Write the questions of one benchmark."""
    benchmark = items[0].benchmark
    split = {"train": [], "test": [item.id for item in items]}
    sums = {name: checksum(items) for name in ("checksum", "split_checksum", "pool_checksum")}
    facts = {"benchmark": benchmark, "title": benchmark, "data": "embedded", "source": "embedded", "splits": "official"}
    path = layout.manifest(PRESET, benchmark)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps({**facts, **sums, **split, "count": len(items)}))
    layout.items(PRESET, benchmark).write_bytes(b"".join(item.to_json() + b"\n" for item in items))


def finish(cell: Cell, items: Sequence[Item], stories: Sequence[Story]) -> None:
    """Write a finished cell below the working folder, with one story per question. Utility is the answer's length."""
    folder = layout.cell(PRESET, cell)
    answered = asyncio.run(_walk(cell, items, stories))
    record = run_record(cell.method, cell.backbone, cell.benchmark, cell.seed, len(items), simulated=True)
    identity = {name: value for name, value in record.items() if name not in ("schema", "run_id")}
    results.write(folder, {"test": answered}, identity, lambda one: float(len(one.trajectory.answer)))


async def _walk(cell: Cell, items: Sequence[Item], stories: Sequence[Story]) -> list[Answered]:
    folder = layout.cell(PRESET, cell)
    folder.mkdir(parents=True)
    answered = []
    with CallLog(folder / layout.CALL_LOG) as log:
        for item, story in zip(items, stories, strict=True):
            client = ScriptedModel("")
            table = context(item, client)
            for ask in story.asks:
                client.replies = [ask.reply]
                call = await table.ask(ask.backbone, tuple(Message(*one) for one in ask.messages), CallSpec(**ask.how))
                table.record_tool_output(call, ask.tool, item)
                reply = ask.reply if isinstance(ask.reply, Reply) else Reply(ask.reply, 100, 10, "stop", "org/model")
                await log.append(client.asked[-1][1], reply)
            for decision in story.decisions:
                table.decide(decision)
            answered.append(Answered(table.close(story.answer), story.verdict))
    return answered
