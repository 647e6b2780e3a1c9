"""Real replies with the question they answer: recorded outputs (GMR_DATA_DIR/outputs) and the replies in evidence/."""

import ast
import builtins
import functools
import gzip
import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.items import CodeTask, Item
from harness.benchmarks.prepare import load_items
from harness.benchmarks.programs import task_of
from harness.files import ROOT

BENCHMARKS = {"gsm8k": "gsm_hard", "mmlu_stem": "mmlu_pro"}  # others have the name of the benchmark that grades them
FILES = ("mmlu_pro", "mmlu_stem", "math", "gsm8k", "humaneval", "mbpp")
RECENT = ("recent-mmlu_pro", "recent-math", "recent-gsm8k", "recent-gsm8k_freeform", "recent-code")
# Those who published programs ran them behind imports like these; our own questions ask the program for its imports.
COMMON_IMPORTS = """\
import collections, copy, datetime, functools, hashlib, heapq, itertools, math, operator, random, re, string, sys
from collections import *
from typing import *
"""


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


def recorded() -> Iterator[Reply]:
    """Yield the final replies of the bundles in evidence/."""
    questions = {
        (key, item.id): item
        for key in ("math", "gsm_hard", "mmlu_pro", "mbpp", "humaneval")
        for item in load_items(key, "real").items
    }
    for path in sorted((ROOT / "evidence").glob("*/*.zip")):
        with zipfile.ZipFile(path) as bundle:
            for name in sorted(bundle.namelist()):
                if not name.endswith(("items.parquet", "nodes.parquet")):
                    continue
                key = name.split("/")[4 if name.endswith("items.parquet") else 3]
                for row in pd.read_parquet(io.BytesIO(bundle.read(name))).to_dict("records"):
                    cut_off = row.get("cut_off", row.get("aggregate_finish_reason") == "length")
                    place = f"{row['item_id']}/{name}/{row.get('role')}/{row.get('backbone')}/{row.get('stored')}"
                    yield Reply(path.stem, place, questions[key, row["item_id"]], row["text"] or "", bool(cut_off))


def annotated() -> Iterator[Reply]:
    """Yield the replies of SmolLM2 that the tests of extraction read; ``upstream`` is a reader."""
    rows = (ROOT / "tests" / "harness" / "benchmarks" / "real_replies.jsonl").read_text().splitlines()
    for row in map(json.loads, rows):
        (item,) = [item for item in load_items(row["benchmark"], "embedded").items if item.id == row["id"]]
        key = f"{row['id']}/{row['purpose']}"
        yield Reply("SmolLM2", key, item, row["reply"], row["cut_off"], "a reader", str(row["answer"]), row["right"])


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
