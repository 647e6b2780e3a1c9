"""Our verdict on a record beside the recorded one."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.benchmarks.base import Tools
from harness.benchmarks.items import Status, Verdict
from harness.benchmarks.registry import benchmark
from harness.declarations import Declaration, Text, read
from harness.errors import UserError
from workflow.agreement.differences import STRING_PAIRS, Class, Difference, Rule, difference
from workflow.agreement.questions import BENCHMARKS, Questions
from workflow.agreement.records import Record

REVIEWED = Path(__file__).with_name("reviewed.yaml")

_RULES = {
    "mmlu_pro": (Rule.LETTER,),
    "mmlu_stem": (Rule.LETTER,),
    "math": (Rule.STRING, Rule.SYMBOLIC),
    "gsm8k": (Rule.NUMBER,),
    "humaneval": (Rule.TESTS,),
    "mbpp": (Rule.TESTS,),
}


class Reviewed(Declaration):
    """Who is right where the rules differ, and why."""

    right: Literal["ours", "upstream", "neither"]
    reason: Text


_RIGHT = {"ours": Class.OURS, "upstream": Class.UPSTREAM, "neither": Class.AMBIGUOUS}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One record under one of our rules.

    Attributes:
        record: The record.
        rule: Our rule.
        ours: Our verdict; ``None`` where the rule decides nothing.
        extracted: What we extracted, ``None`` where there was nothing.
        difference: How upstream's rule departs from ours; ``None`` where both are the same.
    """

    record: Record
    rule: Rule
    ours: bool | None
    extracted: str | None
    difference: Difference | None

    @property
    def agrees(self) -> bool | None:
        """Whether both verdicts are the same, ``None`` where one is missing."""
        if self.ours is None or self.record.upstream_correct is None:
            return None
        return self.ours is self.record.upstream_correct

    @property
    def judged(self) -> tuple[Class, str]:
        """Who is right where the verdicts disagree, and why: by the reviewed records, else by the difference."""
        known = _reviewed().get(self.record.file, {}).get(self.rule, {}).get(self.record.key)
        if known:
            return _RIGHT[known.right], known.reason
        if self.difference:
            return self.difference.right, f"upstream {self.difference.words}"
        return Class.AMBIGUOUS, "not reviewed"


async def compare(record: Record, questions: Questions, tools: Tools) -> list[Comparison]:
    """Grade one record by the benchmark it belongs to; outputs on MATH are compared under both of its rules.

    Raises:
        UserError: The sandbox failed twice.
    """
    key = BENCHMARKS[record.file]
    verdict = await benchmark(key).grade(questions.item(record), questions.answer(record), tools)
    if verdict.status is Status.SANDBOX_ERROR:
        raise UserError(f"the sandbox failed on {record.file} {record.key} ({verdict.detail}); mend the cause")
    return [
        Comparison(record, rule, _verdict(rule, verdict), verdict.answer, difference(record, rule))
        for rule in _rules(record)
    ]


def _rules(record: Record) -> tuple[Rule, ...]:
    if record.file == "answer_pairs":
        return (Rule.STRING if record.upstream == STRING_PAIRS else Rule.SYMBOLIC,)
    return _RULES[record.file]


def _verdict(rule: Rule, verdict: Verdict) -> bool | None:
    # A text without an answer is wrong by either rule.
    if rule is Rule.SYMBOLIC and verdict.answer is not None:
        return verdict.also.get("math_verify")
    return verdict.correct


@functools.cache
def _reviewed() -> dict[str, dict[str, dict[str, Reviewed]]]:
    reviewed: dict[str, dict[str, dict[str, Reviewed]]] = read(REVIEWED, dict[str, dict[str, dict[str, Reviewed]]])
    return reviewed
