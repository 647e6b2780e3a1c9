"""A record as what our graders take: a question, and the text of an answer to it."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.benchmarks.extraction import last_box
from harness.benchmarks.items import CodeTask, Item
from harness.benchmarks.programs import parse
from harness.benchmarks.registry import benchmark
from workflow.agreement.records import Record, json_lines

BENCHMARKS = {
    "mmlu_pro": "mmlu_pro",
    "mmlu_stem": "mmlu_pro",
    "math": "math",
    "gsm8k": "gsm_hard",
    "answer_pairs": "math",
    "humaneval": "humaneval",
    "mbpp": "mbpp",
}
# Those who published programs ran them behind imports like these; our own questions ask the program for its imports.
COMMON_IMPORTS = """\
import collections, copy, datetime, functools, hashlib, heapq, itertools, math, operator, random, re, string, sys
from collections import *
from typing import *
"""

_FORMULA = re.compile(
    r"\s*(?:\$\$([^$]+)\$\$|\$([^$]+)\$|\\\(((?:(?!\\\)).)+)\\\)|\\\[((?:(?!\\\]).)+)\\\])\s*", re.DOTALL
)


class Questions:
    """Turns records into questions and answers.

    Args:
        folder: The data directory, whose HumanEval file is read when the first record of it comes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._humaneval: dict[str, Mapping[str, Any]] = {}

    def item(self, record: Record) -> Item:
        """The question as far as grading needs it, with upstream's reference answer and upstream's tests."""
        key = BENCHMARKS[record.file]
        if record.file == "humaneval":
            return self._humaneval_item(record)
        if record.file == "mbpp":
            task = CodeTask(function_under_test(record.gold), COMMON_IMPORTS, record.gold, ())
            return Item(record.item_id, key, "", "", code=task)
        gold = record.gold
        if record.file == "gsm8k":
            gold = repr(float(gold.replace(",", "")))
        elif record.file == "answer_pairs":
            gold = bare_answer(gold) or gold
        return Item(record.item_id, key, "", gold)

    def answer(self, record: Record) -> str:
        """The text to grade; what is an answer without any text around it gets the form our benchmark asks for."""
        if record.file == "answer_pairs":
            alone = bare_answer(record.response)
            return record.response if alone is None else benchmark("math").present(self.item(record), alone)
        if record.meta.get("kind") == "completion":
            return str(self._problem(record)["prompt"]) + record.response
        return record.response

    def _humaneval_item(self, record: Record) -> Item:
        (item,) = benchmark("humaneval").normalise([self._problem(record)])
        if item.code is None:
            raise ValueError(f"{item.id} has no tests")
        return replace(item, code=replace(item.code, setup=f"{COMMON_IMPORTS}\n{item.code.setup}"))

    def _problem(self, record: Record) -> Mapping[str, Any]:
        if not self._humaneval:
            path = self._folder / "humaneval" / "HumanEval.jsonl.gz"
            self._humaneval = {problem["task_id"]: problem for problem in json_lines(path)}
        return self._humaneval[record.item_id]


def bare_answer(text: str) -> str | None:
    """The answer a text consists of: its box, its one formula, or a text without any words; ``None`` for prose."""
    box = last_box(text)
    if box is not None:
        return box if len(re.findall(r"\\boxed", text)) == 1 else None
    formula = _FORMULA.fullmatch(text)
    if formula:
        return next(group for group in formula.groups() if group is not None).strip()
    # Commands of LaTeX are no words, and what stands in \text{...} belongs to the answer.
    words = re.sub(r"\\text\s*\{[^{}]*\}|\\[a-zA-Z]+", " ", text)
    return None if "$" in text or re.search(r"[a-zA-Z]{2,}\s+\S", words) else text


def function_under_test(tests: str) -> str:
    """The function that the tests of a record are about: the one an assert calls, else the one handed to ``check``."""
    tree = parse(tests)
    nodes = list(ast.walk(tree)) if tree is not None else []
    asserted = _called(part for node in nodes if isinstance(node, ast.Assert) for part in ast.walk(node.test))
    handed = [
        call.args[0].id
        for call in nodes
        if isinstance(call, ast.Call) and _name(call) == "check" and call.args and isinstance(call.args[0], ast.Name)
    ]
    return next((name for name in [*asserted, *handed] if name != "candidate" and not hasattr(builtins, name)), "")


def _called(nodes: Iterable[ast.AST]) -> list[str]:
    return [name for node in nodes if isinstance(node, ast.Call) and (name := _name(node))]


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""
