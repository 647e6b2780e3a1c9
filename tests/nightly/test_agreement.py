"""Agreement of the graders with recorded verdicts: model outputs graded here and by their publishers.

    pytest -m nightly -s --timeout 0 tests/nightly/test_agreement.py [-k math]

GMR_DATA_DIR has outputs/*.jsonl.gz, one output per line, and humaneval/HumanEval.jsonl.gz. The tests print verdicts and
agreement, and write disagreements to reports/grading/FILE.csv. Whether upstream's rule equals ours is decided from the
recorded output, never from our verdict (docs/grading.md).
"""

import ast
import builtins
import functools
import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.benchmarks.base import Tools
from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.items import CodeTask, Item, Status, Verdict
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.prepare import load_items
from harness.benchmarks.programs import task_of
from harness.concurrency import gather
from harness.files import read_yaml, write_atomically
from harness.runner import layout
from harness.sandbox import Sandbox
from harness.sandbox.jail.confinement import FULL
from tests.harness.benchmarks.conftest import mirror

__all__ = ["mirror"]

pytestmark = [pytest.mark.nightly, pytest.mark.realdata]

# Who is right where two verdicts disagree.
OURS, UPSTREAM, AMBIGUOUS = "ours right", "upstream right", "ambiguous"
AGREEMENT = 0.995
# With fewer verdicts than this a single one weighs more than the agreement leaves.
FEW = 200
# The rules of ours whose verdicts are compared.
LETTER, NUMBER, STRING, SYMBOLIC, TESTS = "letter", "number", "string rule", "Math-Verify", "tests"
# The rules that are compared on a file of outputs.
FILES = {"mmlu_pro": (LETTER,), "math": (STRING, SYMBOLIC), "gsm8k": (NUMBER,)}
FILES |= dict.fromkeys(("humaneval", "mbpp"), (TESTS,))
BENCHMARKS = {"gsm8k": "gsm_hard", "mmlu_stem": "mmlu_pro"}  # others have the name of the benchmark that grades them
# Those who published programs ran them behind imports like these; our own questions ask the program for its imports.
COMMON_IMPORTS = """\
import collections, copy, datetime, functools, hashlib, heapq, itertools, math, operator, random, re, string, sys
from collections import *
from typing import *
"""
# Several options named as the answer; a capital A or I before a word in small letters is none.
_LETTER = r"(?:\([A-J](?![\w'])|(?:[B-HJ](?![\w'])|[AI](?![\w'])(?!\s+[a-z])))"
_SEVERAL = re.compile(rf"answer is \(?[A-J]\)?\s*(?:,|/|&|\band\b|\bor\b)\s*{_LETTER}")
_BY_VALUE, _BREAKS_OFF = "compares values, not spellings", "runs a text that breaks off as it stands"
# Where upstream does otherwise, we are right, but for these.
_NOT_OURS = {_BY_VALUE: UPSTREAM, _BREAKS_OFF: AMBIGUOUS}
_LONGEST_EXTRACT = 160


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply, its question with upstream's reference answer and tests, and upstream's extraction and verdict."""

    file: str
    key: str
    item: Item
    text: str
    cut_off: bool = False
    upstream: str = ""
    upstream_pred: str = ""
    upstream_correct: bool | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)


def outputs(folder: Path, file: str) -> Iterator[Reply]:
    for line in _json_lines(folder / "outputs" / f"{file}.jsonl.gz"):
        upstream, meta, text = line["upstream"].partition(":")[0], line["meta"], line["response"]
        meta = ast.literal_eval(meta) if isinstance(meta, str) else meta
        # This publisher stored the backslashes of its chain-of-thought texts doubled.
        if upstream == "microsoft/rho" and meta.get("strategy") == "cot":
            text = text.replace("\\\\", "\\")
        item = _question(line, meta, folder)
        if meta.get("kind") == "completion":
            text = f"{item.question}{text}"
        key = "/".join(filter(None, (item.id, line["model"], str(meta.get("strategy") or ""))))
        predicted = str(line["upstream_pred"] or "")
        yield Reply(file, key, item, text, False, upstream, predicted, line["upstream_correct"], meta)


def _question(line: Mapping[str, Any], meta: Mapping[str, Any], folder: Path) -> Item:
    key, id_, gold = line["benchmark"], str(line["item_id"]), line["gold"] or ""
    if key == "humaneval":
        (problem,) = [one for one in _json_lines(folder / "humaneval" / "HumanEval.jsonl.gz") if one["task_id"] == id_]
        (item,) = benchmark(key).normalise([problem])
        task = task_of(item)
        return replace(item, code=replace(task, setup=f"{COMMON_IMPORTS}\n{task.setup}"))
    if key == "mbpp":
        return Item(id_, key, "", "", code=CodeTask(function_under_test(gold), COMMON_IMPORTS, gold, ()))
    if key == "gsm8k":
        gold = repr(float(str(gold).replace(",", "")))
    options = tuple(meta.get("options") or (_options().get(id_, ()) if key == "mmlu_pro" else ()))
    return Item(id_, BENCHMARKS.get(key, key), meta.get("question") or "", gold, options=options)


@functools.cache
def _options() -> dict[str, tuple[str, ...]]:
    return {item.id: item.options for item in load_items("mmlu_pro", "real").items}


@functools.cache
def _json_lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def function_under_test(tests: str) -> str:
    """Return the function that the tests of an output call: in an assert, else the argument of ``check``."""
    asserts = "\n".join(re.findall(r"^\s*assert\b.*", tests, re.MULTILINE))
    names = re.findall(r"(?<![\w.])(\w+)\(", asserts) + re.findall(r"^\s*check\((\w+)\)", tests, re.MULTILINE)
    # A built-in is around the call of another function, or the name of this one.
    names = [name for name in names if name != "candidate"]
    return next((name for name in names if not hasattr(builtins, name)), names[0] if names else "")


def another_rule(output: Reply, rule: str) -> str | None:
    """Return what upstream's rule does otherwise than ours, or None where they are the same rule."""
    predicted, response = output.upstream_pred, output.text
    match rule:
        case "letter":
            if output.meta["upstream_rule"] == "last_letter":
                return "takes the last letter anywhere in the text"
            first = re.search(r"answer is \(?[A-J]\)?", response)
            if first and _SEVERAL.match(response, first.start()):
                return "takes the first of several options named"
        case "number" if output.upstream == "lm-sys/RouteLLM":
            if re.search(r"[-.]\d+\D*$", response.replace(",", "")):
                return "takes the last run of digits, without sign and decimals"
        case "number":
            if not re.fullmatch(r"-?\d[\d,]*(?:\.\d+)?", predicted):
                return "keeps the calculation or the unit as part of the answer"
        case "tests":
            if output.meta["recheck"] in ("fail:SyntaxError", "fail:IndentationError"):
                return _BREAKS_OFF
            if (output.meta["recheck"] == "pass") is not output.upstream_correct:
                return "the tests at hand do not give its verdict"
        case _:
            if "Ihopeitiscorrect" in predicted:
                return "keeps the closing sentence as part of the answer"
            if not re.search(r"boxed|answer is", response):
                return "takes the last number where no answer is stated"
            if _brackets(predicted) != _brackets(output.item.gold):
                return "compares intervals without their brackets"
    if _off_by_a_hundred(predicted, output.item.gold):
        return "accepts a hundredth and a hundredfold of the value"
    return _BY_VALUE if rule == STRING else None


def _brackets(answer: str) -> str | None:
    text = answer.replace("\\left", "").replace("\\right", "").strip()
    return text[0] + text[-1] if re.fullmatch(r"[(\[].*,.*[)\]]", text) else None


def _off_by_a_hundred(predicted: str, gold: str) -> bool:
    try:
        given, expected = (float(text.replace(",", "")) for text in (predicted, gold))
    except ValueError:
        return False
    ratio = given / expected if expected else 0.0
    return any(abs(ratio / factor - 1) < 1e-3 for factor in (0.01, 100.0))


# By file, our rule and output: who is right, and why, as read by a person.
_REVIEWED: Any = read_yaml(Path(__file__).with_name("agreement_reviewed.yaml"))


def _row(output: Reply, rule: str, verdict: Verdict) -> dict[str, Any]:
    """Return the row of one record under one rule: both verdicts and, where they differ, who is right.

    Who is right says a review, else the difference between the rules.
    """
    # A text without an answer is wrong by either rule.
    is_symbolic = rule == SYMBOLIC and verdict.answer is not None
    ours = verdict.also.get("math_verify") if is_symbolic else verdict.correct
    reviewed = _REVIEWED.get(output.file, {}).get(rule, {}).get(output.key)
    another = another_rule(output, rule)
    right, reason = AMBIGUOUS, "not reviewed"
    if reviewed:
        right = {"ours": OURS, "upstream": UPSTREAM, "neither": AMBIGUOUS}[reviewed["right"]]
        reason = reviewed["reason"]
    elif another:
        right, reason = _NOT_OURS.get(another, OURS), f"upstream {another}"
    extracts = [" ".join((text or "").split())[:_LONGEST_EXTRACT] for text in (verdict.answer, output.upstream_pred)]
    return {
        "file": output.file,
        "record": output.key,
        "our rule": rule,
        "upstream's rule": "another" if another else "the same",
        "ours": ours,
        "upstream": output.upstream_correct,
        "ours extracted": extracts[0],
        "upstream extracted": extracts[1],
        "class": right if ours is not output.upstream_correct else "",
        "reason": reason,
    }


async def compare(replies: Sequence[Reply]) -> pd.DataFrame:
    async with Sandbox() as sandbox, MathVerifier() as math_verify:
        assert sandbox.level == FULL, "real models wrote the recorded programs"
        tools = Tools(sandbox, math_verify)

        async def grade(output: Reply) -> list[dict[str, Any]]:
            verdict = await benchmark(output.item.benchmark).grade(output.item, output.text, tools)
            assert verdict.status is not Status.SANDBOX_ERROR, verdict.detail
            return [_row(output, rule, verdict) for rule in FILES[output.file]]

        graded = await gather(map(grade, replies))
    return pd.DataFrame([row for rows in graded for row in rows]).dropna(subset=["ours", "upstream"])


@pytest.mark.parametrize("file", FILES)
async def test_verdicts_agree_under_the_same_rule_and_what_disagrees_is_reviewed(file: str, mirror: Path) -> None:
    compared = await compare(list(outputs(mirror, file)))
    rules = [compared[name] for name in ("file", "our rule", "upstream's rule")]
    print(pd.crosstab(rules, compared["class"].replace("", "agree"), margins=True).to_string())
    disagree = compared[compared["class"] != ""]
    write_atomically(layout.REPORTS / "grading" / f"{file}.csv", disagree.to_csv(index=False))
    same = compared[compared["upstream's rule"] == "the same"]
    # Of the string rule none is the same.
    assert len(same) > FEW
    assert (same["class"] == "").mean() >= AGREEMENT
    assert "not reviewed" not in set(disagree["reason"])
    reviewed = {(rule, key) for rule, keys in _REVIEWED.get(file, {}).items() for key in keys}
    assert reviewed <= set(disagree[["our rule", "record"]].itertuples(index=False, name=None))
    # The headline on MATH gives no credit that others withhold.
    headline = compared[compared["our rule"] == STRING]
    assert not (headline["ours"].astype(bool) & ~headline["upstream"].astype(bool)).any()
