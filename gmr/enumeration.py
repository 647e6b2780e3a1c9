"""Exhaustive enumeration of GMR's first step: every role and backbone on every question (docs/runs.md).

At temperature 0 the prompt identifies a call. The log of an enumeration therefore answers every call that a router
with ``max_depth: 1`` can make.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, astuple, replace
from itertools import islice, product
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from gmr.config import Config, pool_of
from gmr.rollout import aggregate
from harness.agents.activation import act
from harness.agents.prompts import Record
from harness.agents.roles import Role
from harness.agents.runtime import Context
from harness.agents.trajectory import Answered
from harness.benchmarks.items import Item
from harness.errors import UserError
from harness.files import sha256, write_atomically
from harness.llm.call_log import CallLog
from harness.runner import layout
from harness.runner.cell import open_log, open_runtime, record_of
from harness.runner.evaluation import attempt
from harness.runner.plan import Plan
from harness.runner.results import TEST_SPLIT, TRAINING_SPLIT, write_table

_PURPOSES = ("act", "second_call", "aggregate")
NODES = pa.schema(
    [
        *((name, pa.string()) for name in ("item_id", "split", "role", "backbone")),
        ("stored", pa.bool_()),  # whether the aggregation call sees the step's record
        ("correct", pa.bool_()),
        *((name, pa.string()) for name in ("status", "answer", "text")),  # of the aggregation reply
        *((f"{purpose}_{name}", pa.string()) for purpose in _PURPOSES for name in ("key", "finish_reason")),
        *((name, pa.int64()) for name in ("prompt_tokens", "completion_tokens")),
        *((name, pa.float64()) for name in ("cost_steps", "cost_total")),
    ]
)

CALL_KEYS = [f"{purpose}_key" for purpose in _PURPOSES]
# Programs that the tools of roles ran, with the results that agents saw.
TOOLS = pa.schema(
    [
        *((name, pa.string()) for name in ("source", "setup", "checks", "entry_point", "show")),  # of the program
        *((name, pa.string()) for name in ("outcome", "detail", "shown")),  # of its execution
        *((name, pa.bool_()) for name in ("is_loaded", "was_idle")),
    ]
)


class Branch(NamedTuple):
    """One action of a single-step trajectory."""

    role: Role
    backbone: str
    stored: bool

    async def solve(self, item: Item, context: Context) -> str:
        """Act once and aggregate. Also embeds all texts that a router needs."""
        await context.embed(item.question)
        text = await act(self.role, self.backbone, item, (), context, step=1)
        await context.embed(text)
        memory = [Record(self.role.name, text)] if self.stored else []
        return await aggregate(item, memory, [self.backbone], context)


async def enumerate_steps(plan: Plan) -> dict[str, Any]:
    """Run or resume an enumeration and return the content of its ``run.json``. Raises StoppedError if cancelled.

    ``plan`` is that of a cell of a single-step router. Writes to the enumeration's folder the call log, the embeddings,
    ``tools.parquet`` (programs run by tools) and ``nodes.parquet`` (two rows for each question, role and backbone: with
    the step stored, and with an empty memory).
    """
    if not isinstance(plan.config, Config):
        raise UserError(f"{plan.cell.method} is no variant of GMR, whose first steps are enumerated; name gmr_one_step")
    plan = replace(plan, folder=layout.tree(plan.run.name, plan.cell.benchmark))
    with open_log(plan) as log:
        return await _enumerate(plan, log)


async def _enumerate(plan: Plan, log: CallLog) -> dict[str, Any]:
    pool = pool_of(plan.config, plan.setting)
    questions = {TRAINING_SPLIT: plan.questions.train, TEST_SPLIT: plan.questions.test}
    splits = {item.id: split for split, items in questions.items() for item in items}
    items = [item for each in questions.values() for item in each]
    async with open_runtime(plan, log) as (runtime, served, *_):
        for text in (*(role.profile for role in pool.roles), *(backbone.profile for backbone in pool.backbones)):
            await runtime.embeddings.embed(text)
        actions = product(pool.backbones, pool.roles, (True, False))
        branches = [Branch(role, backbone.key, stored) for backbone, role, stored in actions]
        attempts = [(branch.solve, item) for branch in branches for item in items]
        label = f"{plan.cell.benchmark}, {len(pool.roles)} roles"
        answered = iter(await attempt(attempts, runtime, label, in_flight=plan.in_flight, unit="paths"))
        rows = [row for branch in branches for row in _rows(islice(answered, len(items)), splits, branch)]
        # An enumeration trains nothing and answers both splits.
        untrained = plan.cell.entry.model_copy(update={"trained": False})
        cell = replace(plan.cell, entry=untrained, answers_training=True)
        record = record_of(replace(plan, cell=cell), runtime, served)
        executions = runtime.code_tools.executions
    write_table(plan.folder / "nodes.parquet", NODES, rows, simulated=record["simulated"])
    ran = [{**asdict(program), **asdict(executions[program])} for program in sorted(executions, key=astuple)]
    write_table(plan.folder / "tools.parquet", TOOLS, ran, simulated=record["simulated"])
    tables = {name: sha256(plan.folder / name) for name in ("nodes.parquet", "tools.parquet")}
    run = {**record, "roles": [role.key for role in pool.roles], "tables": tables}
    write_atomically(plan.folder / "run.json", orjson.dumps(run, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
    return run


def _rows(answered: Iterable[Answered], splits: Mapping[str, str], branch: Branch) -> Iterator[dict[str, Any]]:
    for trajectory, verdict in answered:
        calls = {call.purpose: call for call in trajectory.calls}
        yield {
            "item_id": trajectory.item.id,
            "split": splits[trajectory.item.id],
            "role": branch.role.key,
            "backbone": branch.backbone,
            "stored": branch.stored,
            "correct": verdict.correct,
            "status": verdict.status.value,
            "answer": verdict.answer,
            "text": trajectory.answer,
            **{
                f"{purpose}_{name}": getattr(calls[purpose], name) if purpose in calls else None
                for purpose in _PURPOSES
                for name in ("key", "finish_reason")
            },
            "prompt_tokens": sum(call.prompt_tokens for call in trajectory.calls),
            "completion_tokens": sum(call.completion_tokens for call in trajectory.calls),
            "cost_steps": trajectory.cost_steps,
            "cost_total": trajectory.cost_total,
        }
