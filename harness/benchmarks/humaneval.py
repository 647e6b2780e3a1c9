"""HumanEval: complete a Python function from its signature and docstring."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness.benchmarks.code_grading import CodeBenchmark
from harness.benchmarks.items import CodeTask, Item, Split, share_split
from harness.benchmarks.programs import parse

# The edition that the published sample sizes imply has 161 problems and lacks these three.
NOT_IN_PUBLISHED = frozenset({"HumanEval/32", "HumanEval/38", "HumanEval/50"})


class HumanEval(CodeBenchmark):
    """Graded by the problem's ``check`` function, which is called explicitly: upstream's tests only define it."""

    def normalise(self, records: Sequence[Mapping[str, Any]]) -> list[Item]:
        """Return the items; imports and helpers of the prompt run before every answer, even one that repeats them."""
        return [self._item(record) for record in records]

    def _item(self, record: Mapping[str, Any]) -> Item:
        prompt, name = record["prompt"], record["entry_point"]
        return Item(
            id=record["task_id"],
            benchmark=self.key,
            question=prompt,
            gold=prompt + record["canonical_solution"],
            code=CodeTask(
                entry_point=name,
                setup=prompt[: prompt.rindex(f"def {name}(")].strip(),
                checks=f"{record['test'].strip()}\n\ncheck({name})\n",
                visible=_visible_examples(prompt),
            ),
            difficulty=record.get("difficulty"),
        )

    def _published_split(self, items: Sequence[Item]) -> Split:
        return share_split([item.id for item in items if item.id not in NOT_IN_PUBLISHED], self.key)


BENCHMARK = HumanEval


def _visible_examples(prompt: str) -> tuple[str, ...]:
    """Return the docstring's ``>>>`` lines as asserts; doctest refuses all of them for one badly indented line."""
    lines = [line.strip() for line in prompt.splitlines()]
    pairs = zip(lines, [*lines[1:], ""], strict=True)
    return tuple(filter(None, (_as_assert(line[3:].strip(), after) for line, after in pairs if line.startswith(">>>"))))


def _as_assert(call: str, expected: str) -> str | None:
    match parse(call):
        case ast.Module([ast.Expr(ast.Compare())]):
            return f"assert {call}"
        case ast.Module([ast.Expr()]):
            value = re.sub(r"\"\"\"$|'''$", "", expected).strip()
            with contextlib.suppress(ValueError, SyntaxError):
                ast.literal_eval(value)
                return f"assert {call} == {value}"
    return None
