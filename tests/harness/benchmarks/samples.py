"""A few questions of our own in each upstream schema (``samples.jsonl``).

One MBPP record is an unused few-shot prompt. In one MMLU-Pro record ``answer_index`` and letter disagree, as in
upstream's question 3983.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

import orjson

from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.items import Item


def rows(name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in Path(__file__).with_name(name).read_bytes().splitlines()]


ALL: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
for record in rows("samples.jsonl"):
    ALL[record.pop("benchmark")].append(record)


def item_of(key: str, index: int = 0) -> Item:
    return benchmark(key).normalise(ALL[key])[index]
