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
import functools
import gzip
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pandas as pd
import typer
from tqdm import tqdm

from harness import files
from harness.benchmarks import Tools, benchmark
from harness.benchmarks.code_grading import task_of
from harness.benchmarks.extraction import last_box
from harness.benchmarks.items import CodeTask, Item, Status, Verdict
from harness.benchmarks.loading import DATA_DIR
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.programs import parse
from harness.errors import UserError, unknown
from harness.files import write_atomically
from harness.runner import layout
from harness.sandbox import Sandbox
from harness.sandbox.jail.confinement import FULL

# Who is right where two verdicts disagree.
OURS, UPSTREAM, AMBIGUOUS = RIGHT = ("ours right", "upstream right", "ambiguous")
# The rules of ours whose verdicts are compared.
LETTER, NUMBER, STRING, SYMBOLIC, TESTS = "letter", "number", "string rule", "Math-Verify", "tests"
# The benchmark that grades a file of outputs, and the rules that are compared.
FILES = {
    "mmlu_pro": ("mmlu_pro", (LETTER,)),
    "mmlu_stem": ("mmlu_pro", (LETTER,)),
    "math": ("math", (STRING, SYMBOLIC)),
    "gsm8k": ("gsm_hard", (NUMBER,)),
    "answer_pairs": ("math", (STRING, SYMBOLIC)),
    "humaneval": ("humaneval", (TESTS,)),
    "mbpp": ("mbpp", (TESTS,)),
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
HUMANEVAL = Path("humaneval", "HumanEval.jsonl.gz")


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
    if file not in FILES:
        raise unknown("file of outputs", file, FILES, "the data directory")
    return [_record(file, **fields) for fields in _json_lines(folder / "outputs" / f"{file}.jsonl.gz")]


@functools.cache
def _json_lines(path: Path) -> list[dict[str, Any]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    except (OSError, EOFError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); point --data-dir or {DATA_DIR} to its folder") from error


def _record(file: str, *, item_id: Any, upstream: str, response: str, gold: str | None, **fields: Any) -> Record:
    upstream, _, _ = upstream.partition(":")
    # This publisher stored the backslashes of its chain-of-thought texts doubled.
    if upstream == "microsoft/rho" and fields["meta"].get("strategy") == "cot":
        response = response.replace("\\\\", "\\")
    known = {name: fields[name] for name in ("model", "upstream_pred", "upstream_correct", "meta")}
    return Record(file, str(item_id), upstream=upstream, response=response, gold=gold or "", **known)


def question_and_answer(record: Record, folder: Path) -> tuple[Item, str]:
    """Return the question, with upstream's reference answer and tests, and the text to grade.

    What is an answer without any text around it gets the form our benchmark asks for.
    """
    key, gold, response = FILES[record.file][0], record.gold, record.response
    if record.file == "humaneval":
        (problem,) = [one for one in _json_lines(folder / HUMANEVAL) if one["task_id"] == record.item_id]
        (item,) = benchmark(key).normalise([problem])
        task = task_of(item)
        item = replace(item, code=replace(task, setup=f"{COMMON_IMPORTS}\n{task.setup}"))
        return item, problem["prompt"] + response if record.meta.get("kind") == "completion" else response
    if record.file == "mbpp":
        task = CodeTask(function_under_test(gold), COMMON_IMPORTS, gold, ())
        return Item(record.item_id, key, "", "", code=task), response
    if record.file == "gsm8k":
        gold = repr(float(gold.replace(",", "")))
    item, alone = Item(record.item_id, key, "", gold), None
    if record.file == "answer_pairs":
        item, alone = replace(item, gold=bare_answer(gold) or gold), bare_answer(response)
    return item, response if alone is None else benchmark(key).present(item, alone)


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
    asserted = [part for node in nodes if isinstance(node, ast.Assert) for part in ast.walk(node.test)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    names = [*map(_called, asserted), *(_id(one.args[0]) for one in calls if _called(one) == "check" and one.args)]
    return next((name for name in names if name not in ("", "candidate") and not hasattr(builtins, name)), "")


def _called(node: ast.AST) -> str:
    return _id(node.func) if isinstance(node, ast.Call) else ""


def _id(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


class Difference(NamedTuple):
    """What an upstream rule does otherwise than ours, and who is right where the verdicts disagree for this reason."""

    words: str
    right: str


HUNDREDTH = Difference("accepts a hundredth and a hundredfold of the value", OURS)
# The pairs of this project are about the string rule, those of the others about Math-Verify's.
STRING_PAIRS = "hendrycks/math"

_LETTER = r"(?:\([A-J](?![\w'])|(?:[B-HJ](?![\w'])|[AI](?![\w'])(?!\s+[a-z])))"
_SEVERAL = re.compile(rf"answer is \(?[A-J]\)?\s*(?:,|/|&|\band\b|\bor\b)\s*{_LETTER}")
_FIRST = re.compile(r"answer is \(?[A-J]\)?")
_PLAIN_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def difference(record: Record, rule: str) -> Difference | None:
    """In what the rule behind a recorded verdict differs from ours, ``None`` where they are the same rule."""
    if record.file == "answer_pairs":
        return _of_pairs(record)
    if rule in (STRING, SYMBOLIC):
        return _of_formulas(record) or (
            Difference("compares values, not spellings", UPSTREAM) if rule == STRING else None
        )
    return {LETTER: _of_letters, NUMBER: _of_numbers, TESTS: _of_tests}[rule](record)


def _of_letters(record: Record) -> Difference | None:
    if record.file == "mmlu_stem":
        return Difference("takes a letter, or a line, from elsewhere than the box", OURS)
    if record.meta["upstream_rule"] == "last_letter":
        return Difference("takes the last letter anywhere in the text", OURS)
    if record.upstream_correct is None:
        return Difference("stored no answer, or drew one at random, and gave no verdict", OURS)
    first = _FIRST.search(record.response)
    return (
        Difference("takes the first of several options named", OURS)
        if first and _SEVERAL.match(record.response, first.start())
        else None
    )


def _of_numbers(record: Record) -> Difference | None:
    if record.upstream == "lm-sys/RouteLLM":
        text = record.response.replace(",", "")
        runs = list(re.finditer(r"\d+", text))
        return (
            Difference("takes the last run of digits, without sign and decimals", OURS)
            if runs and text[: runs[-1].start()].endswith(("-", "."))
            else None
        )
    predicted = record.upstream_pred or ""
    if not _PLAIN_NUMBER.fullmatch(predicted):
        return Difference("keeps the calculation or the unit as part of the answer", OURS)
    return HUNDREDTH if _off_by_a_hundred(predicted, record.gold) else None


def _of_formulas(record: Record) -> Difference | None:
    predicted = record.upstream_pred or ""
    if "Ihopeitiscorrect" in predicted:
        return Difference("keeps the closing sentence as part of the answer", OURS)
    if not re.search(r"boxed|answer is", record.response):
        return Difference("takes the last number where no answer is stated", OURS)
    if _brackets(predicted) != _brackets(record.gold):
        return Difference("compares intervals without their brackets", OURS)
    return HUNDREDTH if _off_by_a_hundred(predicted, record.gold) else None


def _of_pairs(record: Record) -> Difference | None:
    if record.upstream == STRING_PAIRS:
        return None
    if record.meta.get("extra"):
        return Difference("the test passes settings of its own", AMBIGUOUS)
    if bare_answer(record.gold) is None or bare_answer(record.response) is None:
        return Difference("finds the answer in prose, or several", UPSTREAM)
    is_formula = all(re.search(r"\$|\\boxed|\\[(\[]", text) for text in (record.gold, record.response))
    return None if is_formula else Difference("reads plain text as a number or its own way, not as LaTeX", AMBIGUOUS)


def _of_tests(record: Record) -> Difference | None:
    outcome = record.meta["recheck"]
    if outcome in ("fail:SyntaxError", "fail:IndentationError"):
        return Difference("runs a text that breaks off as it stands", AMBIGUOUS)
    return (
        Difference("the tests at hand do not give its verdict", OURS)
        if (outcome == "pass") is not record.upstream_correct
        else None
    )


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


_RIGHT = {"ours": OURS, "upstream": UPSTREAM, "neither": AMBIGUOUS}
# By file, our rule and record: who is right, and why, as read by a person.
_REVIEWED: Any = files.read_yaml(Path(__file__).with_name("agreement_reviewed.yaml"))


def _row(record: Record, rule: str, verdict: Verdict) -> dict[str, Any]:
    # A text without an answer is wrong by either rule.
    symbolic = rule == SYMBOLIC and verdict.answer is not None
    ours, upstream = verdict.also.get("math_verify") if symbolic else verdict.correct, record.upstream_correct
    reviewed, another = _REVIEWED.get(record.file, {}).get(rule, {}).get(record.key), difference(record, rule)
    right, reason = AMBIGUOUS, "not reviewed"
    if reviewed:
        right, reason = _RIGHT[reviewed["right"]], reviewed["reason"]
    elif another:
        right, reason = another.right, f"upstream {another.words}"
    extracts = [" ".join((text or "").split())[:_LONGEST_EXTRACT] for text in (verdict.answer, record.upstream_pred)]
    return {
        "file": record.file,
        "record": record.key,
        "our rule": rule,
        "upstream's rule": "another" if another else "the same",
        "ours": ours,
        "upstream": upstream,
        "ours extracted": extracts[0],
        "upstream extracted": extracts[1],
        "class": right if ours is not upstream else "",
        "reason": reason,
    }


async def compare(records: Sequence[Record], folder: Path) -> pd.DataFrame:
    """Grade records; return a row for each of our rules under which there are two verdicts, with who is right."""
    progress = tqdm(total=len(records), unit=" outputs")
    async with Sandbox() as sandbox, MathVerifier() as math_verify:
        if sandbox.level != FULL:
            raise UserError(f"real models wrote the recorded programs, and the sandbox offers only {sandbox.level!r}")
        tools = Tools(sandbox, math_verify)

        async def one(record: Record) -> list[dict[str, Any]]:
            item, answer = question_and_answer(record, folder)
            verdict = await benchmark(item.benchmark).grade(item, answer, tools)
            if verdict.status is Status.SANDBOX_ERROR:
                raise UserError(f"the sandbox failed on {record.file} {record.key} ({verdict.detail}); mend the cause")
            progress.update()
            return [_row(record, rule, verdict) for rule in _rules(record)]

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(record)) for record in records]
    rows = pd.DataFrame([row for task in tasks for row in task.result()])
    return rows.dropna(subset=["ours", "upstream"])


def _rules(record: Record) -> tuple[str, ...]:
    if record.file == "answer_pairs":
        return (STRING if record.upstream == STRING_PAIRS else SYMBOLIC,)
    return FILES[record.file][1]


def to_markdown(compared: pd.DataFrame) -> str:
    """Return verdicts and agreements by file, our rule and whether upstream's is the same."""
    rows = [("outputs", "our rule", "upstream's rule", "verdicts", "agree", "%", *RIGHT), ("---",) * 9]
    for names, members in compared.groupby(["file", "our rule", "upstream's rule"], sort=False):
        agree, *classes = ((members["class"] == name).sum() for name in ("", *RIGHT))
        rows.append((*names, len(members), agree, f"{100 * agree / len(members):.2f}", *classes))
    lines = [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join(["# Agreement with recorded verdicts", "", *lines, ""])


def main(
    data_dir: Annotated[Path | None, typer.Option(help=f"The data directory; {DATA_DIR} without.")] = None,
    file: Annotated[list[str] | None, typer.Option(help=f"Only these: {', '.join(FILES)}.")] = None,
) -> None:
    """Grade recorded outputs and compare with the verdicts their publishers gave (reports/grading)."""
    named = data_dir or os.environ.get(DATA_DIR)
    if not named:
        raise UserError(f"which folder holds the recorded outputs? Name it by --data-dir or in {DATA_DIR}")
    records = [record for name in file or FILES for record in read(Path(named), name)]
    compared = asyncio.run(compare(records, Path(named)))
    folder = layout.REPORTS / "grading"
    write_atomically(folder / "agreement.md", to_markdown(compared))
    disagree = compared[compared["class"] != ""].drop(columns="upstream's rule")
    write_atomically(folder / "disagreements.csv", disagree.to_csv(index=False))
    typer.echo(to_markdown(compared))


if __name__ == "__main__":
    from workflow.cli import run

    run(lambda: typer.run(main))
