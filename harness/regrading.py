"""A finished cell graded again by the rules of now, from the texts it keeps; no model is asked and nothing is trained.

What a cell answered stands in its tables: the text that was graded, and of every call why it ended. That is all that
grading looks at, so rules that have not changed give the same verdicts, and the same bytes.

A learned method was rewarded by the rules of its training. It is not trained again; its cell says so from then on, in
``regraded_from``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from harness import results
from harness.agents.grading import grade
from harness.benchmarks import Tools
from harness.benchmarks.items import Verdict
from harness.benchmarks.math_verifier import MathVerifier
from harness.cache import Cache
from harness.concurrency import gather
from harness.files import write_atomically
from harness.results import Answered, Utility
from harness.runner import finished, layout
from harness.runner.method import build
from harness.runner.plan import Plan
from harness.sandbox.cache import CachedSandbox

AT_ONCE = 64
REGRADED_FROM = "regraded_from"
_ADDED_ON_WRITING = ("schema", "run_id")


class Change(NamedTuple):
    """An answer whose verdict is another now, in whatever part of it."""

    item_id: str
    then: Verdict
    now: Verdict

    @property
    def kind(self) -> str:
        """``"wrong -> right"``, ``"right -> wrong"``, ``"status"``, or ``"other"`` where neither of these changed."""
        if self.then.correct != self.now.correct:
            return "wrong -> right" if self.now.correct else "right -> wrong"
        return "status" if self.then.status is not self.now.status else "other"


@dataclass(frozen=True)
class Regraded:
    """A finished cell, as it was graded and as it is graded now.

    Attributes:
        plan: Of the cell.
        run: Its ``run.json``.
        then: Its answers with their verdicts, in the order of the test.
        now: The same answers with the verdicts of now.
    """

    plan: Plan
    run: Mapping[str, Any]
    then: Sequence[Answered]
    now: Sequence[Answered]

    @property
    def rules(self) -> tuple[str, str]:
        """Versions of the rules, then and now."""
        return self.run["rule_version"], self.plan.benchmark.rule_version

    @property
    def accuracies(self) -> tuple[float, float]:
        """Fractions of right answers, then and now."""
        then, now = (sum(one.verdict.correct for one in answers) / len(answers) for answers in (self.then, self.now))
        return then, now

    @property
    def changes(self) -> list[Change]:
        """The answers with another verdict, in the order of the test."""
        pairs = zip(self.then, self.now, strict=True)
        return [
            Change(then.trajectory.item.id, then.verdict, now.verdict)
            for then, now in pairs
            if then.verdict != now.verdict
        ]

    @property
    def is_due(self) -> bool:
        """Whether the cell has to be written again to be of the rules of now."""
        then, now = self.rules
        return then != now or bool(self.changes)


async def regrade(plan: Plan) -> Regraded:
    """Grade the answers of a finished cell; nothing of the cell is changed.

    Programs run at the level of confinement that they ran at then.

    Raises:
        UserError: The cell is not finished, is damaged, or is of other settings or questions than the plan; the
            machine does not have the level; the sandbox is broken.
    """
    run = finished.answers(plan)
    then = results.read(plan.folder, plan.test)
    level = run["sandbox"] if any(item.code for item in plan.test) else None
    slots = asyncio.Semaphore(AT_ONCE)
    async with AsyncExitStack() as stack:
        sandbox = CachedSandbox(stack.enter_context(Cache(layout.cache())), level=level)
        tools = Tools(
            await stack.enter_async_context(sandbox),
            await stack.enter_async_context(MathVerifier()),
        )

        async def one(answered: Answered) -> Answered:
            async with slots:
                return Answered(answered.trajectory, await grade(plan.benchmark, answered.trajectory, tools))

        return Regraded(plan, run, then, await gather(one(answered) for answered in then))


def write(regraded: Regraded) -> None:
    """Put the verdicts of now into the cell, as a run of the cell would have written them.

    Its answers, calls, decisions and training stay as they are. A timing of the cell is of its answers alone, so it
    goes on being one of this cell.

    Raises:
        UserError: The disk is full, or a folder cannot be written.
    """
    plan = regraded.plan
    identity = {key: value for key, value in regraded.run.items() if key not in (*_ADDED_ON_WRITING, REGRADED_FROM)}
    identity |= {"rule_version": plan.benchmark.rule_version, **_note(regraded)}
    run = results.write(plan.folder, regraded.now, identity, _utility(plan))
    _follow(plan, regraded.run["run_id"], run["run_id"])


def _note(regraded: Regraded) -> dict[str, str]:
    """What a learned cell says of the rules that rewarded it, where they are not the ones it is graded by."""
    rewarded_by = regraded.run.get(REGRADED_FROM, regraded.run["rule_version"])
    is_other = rewarded_by != regraded.plan.benchmark.rule_version
    return {REGRADED_FROM: rewarded_by} if regraded.plan.method.trained and is_other else {}


def _utility(plan: Plan) -> Utility | None:
    if not plan.method.trained:
        return None
    learner = build(plan.method.module, plan.setting, plan.method.config, trained=True)
    utility: Utility = learner.utility
    return utility


def _follow(plan: Plan, then: str, now: str) -> None:
    """Let the timing of a cell name the run that the cell is now; one of an earlier run stays that."""
    path = layout.timing(plan.preset.name, plan.cell) / "timing.json"
    if not path.is_file():
        return
    timing = orjson.loads(path.read_bytes())
    if timing["cell"]["run_id"] == then:
        timing["cell"]["run_id"] = now
        write_atomically(path, orjson.dumps(timing, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
