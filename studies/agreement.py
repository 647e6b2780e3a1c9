"""Grades recorded model outputs and compares the verdicts with those their publishers gave.

    python -m studies.agreement [--data-dir FOLDER] [--file math ...]

The folder (else GMR_DATA_DIR) holds outputs/*.jsonl.gz, one output a line, and humaneval/HumanEval.jsonl.gz. Writes
reports/grading/agreement.md and disagreements.csv. Whether upstream's rule is ours is told from the record alone, never
from our verdict (docs/grading.md).
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import csv
import enum
import functools
import gzip
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from tqdm import tqdm

from harness import files
from harness.benchmarks import Tools, benchmark
from harness.benchmarks.extraction import last_box
from harness.benchmarks.items import CodeTask, Item, Status, Verdict
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.programs import parse
from harness.benchmarks.sources import DATA_DIR
from harness.errors import UserError, unknown
from harness.files import write_atomically
from harness.runner import layout
from harness.sandbox import Sandbox
from harness.sandbox.jail.confinement import FULL

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
_LONGEST_EXTRACT = 160


@dataclass(frozen=True, slots=True)
class Record:
    """One model output: the question as upstream numbers it, its text, upstream's gold, extraction and verdict."""

    file: str
    item_id: str
    model: str
    upstream: str
    response: str
    gold: str
    upstream_pred: str | None
    upstream_correct: bool | None
    meta: Mapping[str, Any]

    @property
    def key(self) -> str:
        """What no other record of the file has."""
        return "/".join(filter(None, (self.item_id, self.model, str(self.meta.get("strategy", "")))))


def read(folder: Path, file: str) -> list[Record]:
    """Return the records of a file of outputs, in its order."""
    if file not in BENCHMARKS:
        raise unknown("file of outputs", file, BENCHMARKS, "the data directory")
    return [_record(file, fields) for fields in _json_lines(folder / "outputs" / f"{file}.jsonl.gz")]


def _json_lines(path: Path) -> list[dict[str, Any]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    except (OSError, EOFError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); point --data-dir or {DATA_DIR} to its folder") from error


def _record(file: str, fields: Mapping[str, Any]) -> Record:
    upstream, _, _ = fields["upstream"].partition(":")
    response = fields["response"]
    # This publisher stored the backslashes of its chain-of-thought texts doubled.
    if upstream == "microsoft/rho" and fields["meta"].get("strategy") == "cot":
        response = response.replace("\\\\", "\\")
    known = {name: fields[name] for name in ("model", "upstream_pred", "upstream_correct", "meta")}
    return Record(
        file, str(fields["item_id"]), upstream=upstream, response=response, gold=fields["gold"] or "", **known
    )


class Questions:
    """Turns records into questions and answers, with upstream's reference answer and upstream's tests."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "humaneval" / "HumanEval.jsonl.gz"

    def item(self, record: Record) -> Item:
        """Return the question as far as grading needs it."""
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
        return self._problems[record.item_id]

    @functools.cached_property
    def _problems(self) -> dict[str, Mapping[str, Any]]:
        return {problem["task_id"]: problem for problem in _json_lines(self._path)}


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


class Class(enum.StrEnum):
    """Who is right where two verdicts disagree."""

    OURS = "ours right"
    UPSTREAM = "upstream right"
    AMBIGUOUS = "ambiguous"


class Rule(enum.StrEnum):
    """The rule of ours whose verdict is compared."""

    LETTER = "letter"
    NUMBER = "number"
    STRING = "string rule"
    SYMBOLIC = "Math-Verify"
    TESTS = "tests"


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which an upstream rule departs from ours.

    Attributes:
        words: What upstream does.
        right: Who is right where the verdicts disagree for this reason.
    """

    words: str
    right: Class


UNGRADED = Difference("stored no answer, or drew one at random, and gave no verdict", Class.OURS)
STRAY_LETTER = Difference("takes the last letter anywhere in the text", Class.OURS)
SEVERAL_OPTIONS = Difference("takes the first of several options named", Class.OURS)
OTHER_LETTER = Difference("takes a letter, or a line, from elsewhere than the box", Class.OURS)
DIGITS_ALONE = Difference("takes the last run of digits, without sign and decimals", Class.OURS)
UNREAD = Difference("keeps the calculation or the unit as part of the answer", Class.OURS)
HUNDREDTH = Difference("accepts a hundredth and a hundredfold of the value", Class.OURS)
CLOSING_SENTENCE = Difference("keeps the closing sentence as part of the answer", Class.OURS)
LAST_NUMBER = Difference("takes the last number where no answer is stated", Class.OURS)
BRACKETS = Difference("compares intervals without their brackets", Class.OURS)
VALUES = Difference("compares values, not spellings", Class.UPSTREAM)
SETTINGS = Difference("the test passes settings of its own", Class.AMBIGUOUS)
PROSE = Difference("finds the answer in prose, or several", Class.UPSTREAM)
PLAIN_NUMBERS = Difference("reads plain text as a number or its own way, not as LaTeX", Class.AMBIGUOUS)
CUT_OFF = Difference("runs a text that breaks off as it stands", Class.AMBIGUOUS)
OTHER_TESTS = Difference("the tests at hand do not give its verdict", Class.OURS)

# The pairs of this project are about the string rule, those of the others about Math-Verify's.
STRING_PAIRS = "hendrycks/math"

_LETTER = r"(?:\([A-J](?![\w'])|(?:[B-HJ](?![\w'])|[AI](?![\w'])(?!\s+[a-z])))"
_SEVERAL = re.compile(rf"answer is \(?[A-J]\)?\s*(?:,|/|&|\band\b|\bor\b)\s*{_LETTER}")
_FIRST = re.compile(r"answer is \(?[A-J]\)?")
_PLAIN_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def difference(record: Record, rule: Rule) -> Difference | None:
    """In what the rule behind a recorded verdict differs from ours, ``None`` where they are the same rule."""
    if rule is Rule.LETTER:
        return _of_letters(record)
    if rule is Rule.NUMBER:
        return _of_numbers(record)
    if rule is Rule.TESTS:
        return _of_tests(record)
    if record.file == "answer_pairs":
        return _of_pairs(record)
    return _of_formulas(record) or (VALUES if rule is Rule.STRING else None)


def _of_letters(record: Record) -> Difference | None:
    if record.file == "mmlu_stem":
        return OTHER_LETTER
    if record.meta["upstream_rule"] == "last_letter":
        return STRAY_LETTER
    if record.upstream_correct is None:
        return UNGRADED
    first = _FIRST.search(record.response)
    return SEVERAL_OPTIONS if first and _SEVERAL.match(record.response, first.start()) else None


def _of_numbers(record: Record) -> Difference | None:
    if record.upstream == "lm-sys/RouteLLM":
        text = record.response.replace(",", "")
        runs = list(re.finditer(r"\d+", text))
        return DIGITS_ALONE if runs and text[: runs[-1].start()].endswith(("-", ".")) else None
    predicted = record.upstream_pred or ""
    if not _PLAIN_NUMBER.fullmatch(predicted):
        return UNREAD
    return HUNDREDTH if _off_by_a_hundred(predicted, record.gold) else None


def _of_formulas(record: Record) -> Difference | None:
    predicted = record.upstream_pred or ""
    if "Ihopeitiscorrect" in predicted:
        return CLOSING_SENTENCE
    if not re.search(r"boxed|answer is", record.response):
        return LAST_NUMBER
    if _brackets(predicted) != _brackets(record.gold):
        return BRACKETS
    return HUNDREDTH if _off_by_a_hundred(predicted, record.gold) else None


def _of_pairs(record: Record) -> Difference | None:
    if record.upstream == STRING_PAIRS:
        return None
    if record.meta.get("extra"):
        return SETTINGS
    if bare_answer(record.gold) is None or bare_answer(record.response) is None:
        return PROSE
    is_formula = all(re.search(r"\$|\\boxed|\\[(\[]", text) for text in (record.gold, record.response))
    return None if is_formula else PLAIN_NUMBERS


def _of_tests(record: Record) -> Difference | None:
    outcome = record.meta["recheck"]
    if outcome in ("fail:SyntaxError", "fail:IndentationError"):
        return CUT_OFF
    return OTHER_TESTS if (outcome == "pass") is not record.upstream_correct else None


def _brackets(answer: str) -> str | None:
    """The brackets that enclose a list of values, if any do."""
    text = answer.replace("\\left", "").replace("\\right", "").strip()
    return text[0] + text[-1] if re.fullmatch(r"[(\[].*,.*[)\]]", text) else None


def _off_by_a_hundred(predicted: str, gold: str) -> bool:
    try:
        given, expected = (float(text.replace(",", "")) for text in (predicted, gold))
    except ValueError:
        return False
    ratio = given / expected if expected else 0.0
    return any(abs(ratio / factor - 1) < 1e-3 for factor in (0.01, 100.0))


_RULES = {
    "mmlu_pro": (Rule.LETTER,),
    "mmlu_stem": (Rule.LETTER,),
    "math": (Rule.STRING, Rule.SYMBOLIC),
    "gsm8k": (Rule.NUMBER,),
    "humaneval": (Rule.TESTS,),
    "mbpp": (Rule.TESTS,),
}
_RIGHT = {"ours": Class.OURS, "upstream": Class.UPSTREAM, "neither": Class.AMBIGUOUS}
# By file, our rule and record: who is right, and why, as read by a person.
_REVIEWED: Any = files.read_yaml(Path(__file__).with_name("agreement_reviewed.yaml"))


@dataclass(frozen=True, slots=True)
class Comparison:
    """One record under one of our rules; ``ours`` is None where the rule decides nothing."""

    record: Record
    rule: Rule
    ours: bool | None
    extracted: str | None
    difference: Difference | None

    @property
    def agrees(self) -> bool | None:
        """Whether both verdicts are the same, None where one is missing."""
        if self.ours is None or self.record.upstream_correct is None:
            return None
        return self.ours is self.record.upstream_correct

    @property
    def judged(self) -> tuple[Class, str]:
        """Who is right where the verdicts disagree, and why: by the reviewed records, else by the difference."""
        known = _REVIEWED.get(self.record.file, {}).get(str(self.rule), {}).get(self.record.key)
        if known:
            return _RIGHT[known["right"]], known["reason"]
        if self.difference:
            return self.difference.right, f"upstream {self.difference.words}"
        return Class.AMBIGUOUS, "not reviewed"


async def compare(records: Sequence[Record], folder: Path) -> list[Comparison]:
    """Grade records by the benchmarks they belong to; outputs on MATH are compared under both of its rules."""
    questions, progress = Questions(folder), tqdm(total=len(records), unit=" outputs")
    async with Sandbox() as sandbox, MathVerifier() as math_verify:
        if sandbox.level != FULL:
            raise UserError(f"real models wrote the recorded programs, and the sandbox offers only {sandbox.level!r}")
        tools = Tools(sandbox, math_verify)

        async def one(record: Record) -> list[Comparison]:
            answer, item = questions.answer(record), questions.item(record)
            verdict = await benchmark(BENCHMARKS[record.file]).grade(item, answer, tools)
            if verdict.status is Status.SANDBOX_ERROR:
                raise UserError(f"the sandbox failed on {record.file} {record.key} ({verdict.detail}); mend the cause")
            progress.update()
            return [
                Comparison(record, rule, _ours(rule, verdict), verdict.answer, difference(record, rule))
                for rule in _rules(record)
            ]

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(record)) for record in records]
    return [comparison for task in tasks for comparison in task.result()]


def _rules(record: Record) -> tuple[Rule, ...]:
    if record.file == "answer_pairs":
        return (Rule.STRING if record.upstream == STRING_PAIRS else Rule.SYMBOLIC,)
    return _RULES[record.file]


def _ours(rule: Rule, verdict: Verdict) -> bool | None:
    # A text without an answer is wrong by either rule.
    if rule is Rule.SYMBOLIC and verdict.answer is not None:
        return verdict.also.get("math_verify")
    return verdict.correct


def shares(compared: Iterable[Comparison]) -> tuple[int, int]:
    """Return how many of the comparisons with two verdicts agree, and how many there are."""
    decided = [comparison.agrees for comparison in compared if comparison.agrees is not None]
    return sum(decided), len(decided)


def to_markdown(compared: Sequence[Comparison]) -> str:
    """Return the table by file, our rule and whether upstream's is the same."""
    head = ("outputs", "our rule", "upstream's rule", "verdicts", "agree", "%", *Class)
    groups: dict[tuple[str, ...], list[Comparison]] = {}
    for one in compared:
        key = (one.record.file, str(one.rule), "another" if one.difference else "the same")
        groups.setdefault(key, []).append(one)
    rows = [head, ("---",) * len(head), *((*names, *_counts(members)) for names, members in groups.items())]
    return "\n".join(["# Agreement with recorded verdicts", "", *(f"| {' | '.join(row)} |" for row in rows), ""])


def _counts(members: Sequence[Comparison]) -> list[str]:
    agree, decided = shares(members)
    classes = Counter(one.judged[0] for one in members if one.agrees is False)
    return [str(decided), str(agree), f"{100 * agree / max(decided, 1):.2f}", *(str(classes[name]) for name in Class)]


def to_csv(compared: Sequence[Comparison]) -> str:
    """Return every disagreement, with what either side extracted and who is right."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(
        ("file", "record", "our rule", "ours", "upstream", "ours extracted", "upstream extracted", "class", "reason")
    )
    for one in compared:
        if one.agrees is False:
            extracts = [" ".join((text or "").split()) for text in (one.extracted, one.record.upstream_pred)]
            verdicts = (one.ours, one.record.upstream_correct, *(text[:_LONGEST_EXTRACT] for text in extracts))
            writer.writerow((one.record.file, one.record.key, one.rule, *verdicts, *one.judged))
    return lines.getvalue()


def main(
    data_dir: Annotated[Path | None, typer.Option(help=f"The data directory; {DATA_DIR} without.")] = None,
    file: Annotated[list[str] | None, typer.Option(help=f"Only these: {', '.join(BENCHMARKS)}.")] = None,
) -> None:
    """Grade recorded outputs and compare with the verdicts their publishers gave (reports/grading)."""
    named = data_dir or os.environ.get(DATA_DIR)
    if not named:
        raise UserError(f"which folder holds the recorded outputs? Name it by --data-dir or in {DATA_DIR}")
    records = [record for name in file or BENCHMARKS for record in read(Path(named), name)]
    compared = asyncio.run(compare(records, Path(named)))
    folder = layout.REPORTS / "grading"
    write_atomically(folder / "agreement.md", to_markdown(compared))
    write_atomically(folder / "disagreements.csv", to_csv(compared))
    typer.echo(to_markdown(compared))


if __name__ == "__main__":
    from workflow.cli import run

    run(lambda: typer.run(main))
