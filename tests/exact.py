"""A benchmark whose answers are whole texts."""

from __future__ import annotations

from typing import Any

from harness.benchmarks.items import Item, Status, Verdict


class Exact:
    """Stands where a Benchmark does; right when the text is the gold answer."""

    key = "toy"
    output_rules = ""

    def extract(self, item: Item, text: str) -> str | None:
        return text

    async def grade(self, item: Item, text: str, tools: Any) -> Verdict:
        return Verdict(text == item.gold, text, Status.GRADED)
