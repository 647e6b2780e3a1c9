"""Right and wrong answers to a question: number, letter, program or other text.

A benchmark may define its own ``wrong_answers(item)`` and ``present(item, answer)``. Wrong programs are not executed
here. They change the last return value or return a constant, so that they always terminate.
"""

import ast
import functools
import hashlib
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from harness.benchmarks.base import Benchmark
from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.extraction import fenced
from harness.benchmarks.items import Item
from harness.benchmarks.programs import canonical

_POOL_SIZE = 4
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
# The result of a replacement is never much larger.
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    **dict.fromkeys((ast.Sub, ast.Mult, ast.Pow), ast.Add),
    **dict.fromkeys((ast.Add, ast.Div, ast.Mod), ast.Sub),
}


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers to a question."""

    item: Item
    benchmark: Benchmark
    right: str  # as in replies
    wrong: Sequence[str]  # one to four, most likely first

    @functools.lru_cache(maxsize=4096)  # noqa: B019 - answers live as long as the process
    def find_answer(self, text: str) -> str | None:
        """Extract the answer from a text, normalised to an equal known answer. None if there is none."""
        answer = self.benchmark.extract(self.item, text)
        # Any word parses as a program, but does not define the function.
        if answer is None or (self.item.code is not None and self.item.code.entry_point not in answer):
            return None
        known = (self.right, *self.wrong)
        return next((each for each in known if self.benchmark.same(self.item, answer, each)), answer)


@functools.cache
def answers_to(item: Item) -> Answers:
    bench = benchmark(item.benchmark)
    right = item.gold if item.code is None else canonical(item.gold)
    return Answers(item, bench, right, wrong_answers(bench, item))


def present(bench: Benchmark, item: Item, answer: str) -> str:
    if own := getattr(bench, "present", None):
        return str(own(item, answer))
    if item.code is not None:
        return fenced(answer)
    if NUMBER.fullmatch(answer):
        return f"The answer is {format(Decimal(answer), 'f').removesuffix('.0')}"
    return f"The answer is \\boxed{{{answer}}}"


def wrong_answers(bench: Benchmark, item: Item) -> list[str]:
    wrong: list[str] = []
    for candidate in _candidates(bench, item):
        if len(wrong) < _POOL_SIZE and not any(bench.same(item, candidate, other) for other in (item.gold, *wrong)):
            wrong.append(candidate)
    return wrong


def _candidates(bench: Benchmark, item: Item) -> Sequence[str]:
    if own := getattr(bench, "wrong_answers", None):
        return tuple(own(item))
    if item.code is not None:
        return wrong_programs(item.gold, item.code.entry_point)
    if item.options:
        others = set(string.ascii_uppercase[: len(item.options)]) - {item.gold}
        return sorted(others, key=lambda letter: hashlib.sha256(f"{item.id}/{letter}".encode()).digest())
    if NUMBER.fullmatch(item.gold):
        gold = Decimal(item.gold)
        return [format(value, "f") for value in (gold + 1, gold * 2, gold - 1, gold * 10, gold + 10, gold - 2)]
    # Other text: increase one of its numbers by 1 or 2.
    numbers = [(step, match) for step in (1, 2) for match in re.finditer(r"\d{1,15}", item.gold)]
    changed = [f"{item.gold[: at.start()]}{int(at[0]) + step}{item.gold[at.end() :]}" for step, at in numbers]
    return [*changed, "0", "1", "2", "3"]


def wrong_programs(source: str, entry_point: str) -> list[str]:
    """Return variants of a program with a changed last return value, or with a constant return value."""
    tree = ast.parse(canonical(source))
    constants = [f"{ast.unparse(tree)}\n\ndef {entry_point}(*_):\n    return {value}" for value in ("None", "-1", "''")]
    calls_itself = any(isinstance(node, ast.Name) and node.id == entry_point for node in ast.walk(tree))
    function = next(
        (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == entry_point), None
    )
    last = function.body[-1] if function is not None and not calls_itself else None
    if not isinstance(last, ast.Return) or last.value is None:
        return constants
    changed: list[ast.expr] = [ast.UnaryOp(ast.Not(), last.value)]
    if isinstance(last.value, ast.BinOp) and (operator := _OPERATORS.get(type(last.value.op))):
        changed.insert(0, ast.BinOp(last.value.left, operator(), last.value.right))
    variants: list[str] = []
    for last.value in changed:
        variants.append(ast.unparse(tree))
    return [*variants, *constants]
