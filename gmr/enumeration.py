"""Exhaustive enumeration of GMR's first one or two steps: every action on every question (docs/runs.md).

At temperature 0 the prompt identifies a call. The log of an enumeration therefore answers every call that a router with
``max_depth`` 1 or 2 can make. Equal prompts are one call: with one role and two backbones, two steps take at most 20
calls a question.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, NonNegativeInt, model_validator

from gmr.config import Config, Pool, pool_of
from gmr.paths import Branch, Second
from harness.agents.roles import ToolOutput
from harness.agents.runtime import Runtime
from harness.concurrency import gather
from harness.errors import UserError, check_names
from harness.files import Declaration, sha256, write_atomically
from harness.method import Answered, Item
from harness.runner import layout
from harness.runner.evaluation import evaluate
from harness.runner.plan import Plan
from harness.runner.record import record_of
from harness.runner.resources import open_resources
from harness.runner.results import TEST_SPLIT, TRAINING_SPLIT, write_table

_MOST_STEPS = 2
_DRAW_TEMPERATURE = 0.7
_PURPOSES = ("act", "second_call", "aggregate")
_STEP_2 = ("act", "second_call")
NODES = pa.schema(
    [
        *((name, pa.string()) for name in ("item_id", "split", "role", "backbone")),
        *((name, pa.bool_()) for name in ("stored", "correct")),  # stored: whether the record of step 1 is
        *((name, pa.string()) for name in ("status", "answer", "text")),  # of the aggregation reply
        *((f"{purpose}_{name}", pa.string()) for purpose in _PURPOSES for name in ("key", "finish_reason")),
        *((name, pa.int64()) for name in ("prompt_tokens", "completion_tokens")),
        *((name, pa.float64()) for name in ("cost_steps", "cost_total")),
    ]
)
# Further columns of two steps. Those of step 2 are null in a path of one step; the columns of the aggregation reply are
# null where no aggregation was asked.
NODES_2 = pa.schema(
    [
        *NODES,
        *((f"step2_{name}", pa.string()) for name in ("role", "backbone")),
        ("step2_reads", pa.bool_()),  # whether step 2 sees the record of step 1
        ("step2_stored", pa.bool_()),
        ("step2_temperature", pa.float64()),
        *((f"step2_{purpose}_{name}", pa.string()) for purpose in _STEP_2 for name in ("key", "finish_reason")),
        ("tool_output", pa.string()),  # where records have the outcome of their program
        ("step1_passes", pa.bool_()),  # the examples that the question shows; null if it shows none
        ("step1_correct", pa.bool_()),  # of the step's own program, by all tests
        ("step2_correct", pa.bool_()),
    ]
)
# Programs that the tools of roles ran, with the results that agents saw.
TOOLS = pa.schema(
    [
        *((name, pa.string()) for name in ("source", "setup", "checks", "entry_point", "show")),  # of the program
        *((name, pa.string()) for name in ("outcome", "detail", "shown")),  # of its execution
        *((name, pa.bool_()) for name in ("is_loaded", "was_idle")),
    ]
)


class Selection(Declaration):
    """Part of an enumeration of two steps. ``run.json`` states it."""

    only: Literal["failed"] | None = None  # second steps only where step 1 failed its examples, and no final calls
    second: str | None = None  # backbone of second steps; None: every backbone
    # Samples of each failed first call, beside its second steps by the same role and backbone.
    draws: Annotated[int, Field(ge=0, le=100)] = 0
    passed: NonNegativeInt = 0  # test questions whose step 1 passed, read by the same role and backbone

    @model_validator(mode="after")
    def _needs_failed(self) -> Self:
        if (self.draws or self.passed) and self.only is None:
            raise ValueError("draws and passed add to `only: failed`; give that, too")
        return self


EVERYTHING = Selection()


async def enumerate_steps(plan: Plan, selection: Selection = EVERYTHING) -> dict[str, Any]:
    """Run or resume an enumeration and return the content of its ``run.json``. Raises StoppedError if cancelled.

    ``plan`` is that of a cell of a router with one or two steps. Writes to the enumeration's folder the call log, the
    embeddings, ``tools.parquet`` (programs run by tools) and ``nodes.parquet`` (one row for each path and question).
    """
    if not isinstance(plan.config, Config) or plan.config.max_depth > _MOST_STEPS:
        what = "no variant of GMR with max_depth 1 or 2, whose steps are enumerated"
        raise UserError(f"{plan.cell.method} is {what}; name gmr_one_step")
    if selection != EVERYTHING and plan.config.max_depth < _MOST_STEPS:
        raise UserError(f"{plan.cell.method} has one step, so all its paths are enumerated; name a method of two steps")
    if selection.second is not None:
        check_names("backbone", [selection.second], plan.cell.backbones, f"preset {plan.cell.run.name}")
    plan = replace(plan, folder=layout.tree(plan.cell.run.name, plan.cell.benchmark))
    pool = pool_of(plan.config, plan.setting)
    async with open_resources(plan) as resources:
        runtime = resources.runtime
        for text in (*(role.profile for role in pool.roles), *(backbone.profile for backbone in pool.backbones)):
            await runtime.embeddings.embed(text)
        enumeration = Enumeration(plan, runtime, pool, selection)
        rows = await enumeration.rows()
        await runtime.embeddings.check_recorded()
        # An enumeration trains nothing and answers both splits.
        untrained = plan.cell.entry.model_copy(update={"trained": False})
        cell = replace(plan.cell, entry=untrained, answers_training=True)
        record = {**record_of(replace(plan, cell=cell), resources), **plan.cell.record}
        schema = NODES if plan.config.max_depth == 1 else NODES_2
        write_table(plan.folder / "nodes.parquet", schema, rows, simulated=record["simulated"])
        executions = runtime.code_tools.executions
        ran = [{**asdict(program), **asdict(executions[program])} for program in sorted(executions, key=astuple)]
        write_table(plan.folder / "tools.parquet", TOOLS, ran, simulated=record["simulated"])
        tables = {name: sha256(plan.folder / name) for name in ("nodes.parquet", "tools.parquet")}
        run = {**record, "roles": [role.key for role in pool.roles], "tables": tables}
        if selection != EVERYTHING:
            run["selection"] = selection.model_dump()
        write_atomically(plan.folder / "run.json", orjson.dumps(run, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
        return run


class Enumeration:
    """Paths of a pool over all questions of a plan."""

    def __init__(self, plan: Plan, runtime: Runtime, pool: Pool, selection: Selection) -> None:
        self._plan, self._runtime, self._pool, self._selection = plan, runtime, pool, selection
        questions = {TRAINING_SPLIT: plan.questions.train, TEST_SPLIT: plan.questions.test}
        self._splits = {item.id: split for split, items in questions.items() for item in items}
        self._items = [item for items in questions.values() for item in items]
        self._actions = [(role, backbone.key) for backbone, role in product(pool.backbones, pool.roles)]

    async def rows(self) -> list[dict[str, Any]]:
        """Follow every path, or those of the selection. Return a row for each path and question."""
        place: ToolOutput = self._plan.config.tool_output
        firsts = [Branch(*action, False, None, False, place) for action in self._actions]
        closing = [(path, item) for first in firsts for path in self._closing(first) for item in self._items]
        if self._plan.config.max_depth == 1:
            return [self._row(path, answered) for (path, _), answered in await self._follow(closing)]
        opened = await self._follow([(first, item) for first in firsts for item in self._items])
        tools = self._runtime.code_tools
        passed = await gather(tools.passes(item, answered.trajectory.answer) for (_, item), answered in opened)
        # A question that shows no example is neither passed nor failed; a text without a program fails.
        step_1 = {
            (first, item.id): (item, answered, bool(passes) if item.code and item.code.visible else None)
            for ((first, item), answered), passes in zip(opened, passed, strict=True)
        }
        step_2 = await self._follow([pair for first in firsts for pair in self._second_steps(first, step_1)])
        verdicts = {(path, item.id): answered.verdict.correct for (path, item), answered in step_2}
        paths = [*opened, *step_2] if self._selection.only else await self._follow(closing)
        rows = []
        for (branch, item), answered in paths:
            own_1 = branch._replace(stored=False, second=None, closes=False, tool_output=place)
            _, first_answered, passes = step_1[own_1, item.id]
            row = self._row(branch, answered)
            row |= {"step1_passes": passes, "step1_correct": first_answered.verdict.correct}
            if branch.second is not None:
                second = branch.second._replace(stored=False)
                row["step2_correct"] = verdicts[branch._replace(stored=False, second=second, closes=False), item.id]
            rows.append(row)
        return rows

    def _second_steps(
        self, first: Branch, step_1: Mapping[tuple[Branch, str], tuple[Item, Answered, bool | None]]
    ) -> Iterator[tuple[Branch, Item]]:
        """Yield the second steps of a first step, without final calls."""
        selection, passed = self._selection, 0
        seconds = [action for action in self._actions if selection.second in (None, action[1])]
        for item in self._items:
            passes = step_1[first, item.id][2]
            is_test = self._splits[item.id] == TEST_SPLIT
            passed += bool(passes) and is_test
            for action in seconds:
                is_same = action == (first.role, first.backbone)
                read, other = Second(*action, True), Second(*action, False)
                if selection.only is None:
                    chosen = [first._replace(second=second) for second in (read, other)]
                elif passes is False:
                    without: Branch = first._replace(second=read, tool_output="none")
                    chosen = [first._replace(second=read), without, first._replace(second=other)]
                    draws = (Second(*action, False, False, _DRAW_TEMPERATURE, slot) for slot in range(selection.draws))
                    chosen += [first._replace(second=draw) for draw in draws if is_same]
                elif is_same and passes and is_test and passed <= selection.passed:
                    chosen = [first._replace(second=read)]
                else:
                    chosen = []
                yield from ((branch, item) for branch in chosen)

    def _closing(self, first: Branch) -> Iterator[Branch]:
        """Yield the paths that begin with an action and end with a final call."""
        seconds = self._actions if self._plan.config.max_depth > 1 else []
        for stored in (True, False):
            path = first._replace(stored=stored, closes=True)
            yield path
            for action in seconds:
                if self._selection.second in (None, action[1]):
                    for reads, kept in product((True, False) if stored else (False,), (True, False)):
                        yield path._replace(second=Second(*action, reads, kept))

    async def _follow(self, paths: Sequence[tuple[Branch, Item]]) -> list[tuple[tuple[Branch, Item], Answered]]:
        label = f"{self._plan.cell.benchmark}, {len(self._pool.roles)} roles"
        attempts = [(branch.solve, item) for branch, item in paths]
        answered = await evaluate(attempts, self._runtime, label, in_flight=self._plan.in_flight, unit="paths")
        return [*zip(paths, answered, strict=True)]

    def _row(self, branch: Branch, answered: Answered) -> dict[str, Any]:
        trajectory, verdict = answered
        calls = {(call.purpose, call.step): call for call in trajectory.calls}
        final = {"correct": verdict.correct, "status": verdict.status.value, "answer": verdict.answer}
        row = {
            "item_id": trajectory.item.id,
            "split": self._splits[trajectory.item.id],
            "role": branch.role.key,
            "backbone": branch.backbone,
            "stored": branch.stored,
            **({**final, "text": trajectory.answer} if branch.closes else {}),
            "prompt_tokens": sum(call.prompt_tokens for call in trajectory.calls),
            "completion_tokens": sum(call.completion_tokens for call in trajectory.calls),
            "cost_steps": trajectory.cost_steps,
            "cost_total": trajectory.cost_total,
            "tool_output": branch.tool_output,
        }
        if (second := branch.second) is not None:
            row |= {f"step2_{name}": getattr(second, name) for name in ("backbone", "reads", "stored", "temperature")}
            row["step2_role"] = second.role.key
        for (purpose, step), call in calls.items():
            prefix = "step2_" if step == 2 and purpose != "aggregate" else ""
            row |= {f"{prefix}{purpose}_key": call.key, f"{prefix}{purpose}_finish_reason": call.finish_reason}
        return row


def call_keys(nodes: Path) -> list[str]:
    """Return the columns of a table of paths that have keys of calls."""
    return [name for name in pq.read_schema(nodes).names if name.endswith("_key")]
