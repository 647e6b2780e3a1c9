"""Tools, upstream's files, and a few questions of our own in each upstream schema (``samples.jsonl``).

One MBPP record is an unused few-shot prompt. In one MMLU-Pro record ``answer_index`` and letter disagree, as in
upstream's question 3983.
"""

import os
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness.benchmarks.base import Tools
from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.items import Item
from harness.benchmarks.math_verifier import MathVerifier
from harness.sandbox import Sandbox


def rows(name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in Path(__file__).with_name(name).read_bytes().splitlines()]


ALL: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
for record in rows("samples.jsonl"):
    ALL[record.pop("benchmark")].append(record)


def item_of(key: str, index: int = 0) -> Item:
    return benchmark(key).normalise(ALL[key])[index]


@pytest.fixture
async def tools() -> AsyncIterator[Tools]:
    async with Sandbox() as sandbox, MathVerifier() as math_verify:
        yield Tools(sandbox, math_verify)


@pytest.fixture
def mirror() -> Path:
    folder = os.environ.get("GMR_DATA_DIR")
    if not folder:
        pytest.skip("GMR_DATA_DIR is not set: no real benchmark files")
    return Path(folder)
