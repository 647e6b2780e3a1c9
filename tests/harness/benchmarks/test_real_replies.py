"""Replies of a small real model, read one by one: what each states, and whether it is right.

They are SmolLM2-135M-Instruct's (Hugging Face, Apache-2.0) to questions of the mini-benchmarks, from calls of all
methods. ``answer`` is what a reader takes the reply to state, for programs whether it has the function asked for.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness.benchmarks import Tools, benchmark, keys
from harness.benchmarks.base import Benchmark
from harness.benchmarks.items import Item
from harness.benchmarks.prepare import load_items

REPLIES = [orjson.loads(line) for line in (Path(__file__).parent / "real_replies.jsonl").read_bytes().splitlines()]


async def verdict(subject: Benchmark, item: Item, row: dict[str, Any], tools: Tools) -> tuple[Any, bool]:
    """Return the answer found, for programs whether one is, and whether it is right."""
    answer = subject.extract(item, row["reply"], row["cut_off"])
    if item.code is not None:
        graded = await subject.grade(item, row["reply"], tools, row["cut_off"])
        return answer is not None and f"def {item.code.entry_point}(" in answer, graded.correct
    stated = row["answer"] if answer and row["answer"] and subject.same(item, answer, row["answer"]) else answer
    return stated, answer is not None and subject.same(item, item.gold, answer)


@pytest.mark.parametrize("key", keys())
async def test_extraction_and_grading_agree_with_a_reader(key: str, tools: Tools) -> None:
    subject, items = benchmark(key), {item.id: item for item in load_items(key, "embedded").items}
    rows = [row for row in REPLIES if row["benchmark"] == key]
    verdicts = [(row["reply"], await verdict(subject, items[row["id"]], row, tools)) for row in rows]
    assert verdicts == [(row["reply"], (row["answer"], row["right"])) for row in rows]
    if key not in ("mbpp", "humaneval"):
        # Were what a reader takes it to state the reference, a reply would be right.
        stating = [row for row in rows if row["answer"] is not None]
        restated = [replace(items[row["id"]], gold=row["answer"]) for row in stating]
        rights = [(await verdict(subject, item, row, tools))[1] for item, row in zip(restated, stating, strict=True)]
        assert [row["reply"] for row, right in zip(stating, rights, strict=True) if not right] == []
