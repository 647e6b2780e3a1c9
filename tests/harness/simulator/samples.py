from collections.abc import Sequence
from typing import Any

from harness.agents.prompts import question_prompt
from harness.benchmarks import benchmark
from harness.benchmarks.items import Item
from harness.benchmarks.prepare import load_items
from harness.files import ROOT
from harness.llm.backbones import load
from harness.llm.request import Message

MODELS = load(ROOT / "config" / "backbones.yaml")


def word_problems(count: int) -> list[Item]:
    """Return synthetic questions with a number for an answer, none of them alike."""
    texts = "Crate {} weighs {} grams and holds {} jars. What do {} crates weigh?"
    numbers = [(n, n * 37 + 5, n % 11, n % 7 + 3) for n in range(count)]
    return [Item(str(row[0]), "gsm_hard", texts.format(*row), repr(float(row[1] * row[3]))) for row in numbers]


def mini(key: str, count: int) -> list[Item]:
    return load_items(key, "embedded").items[:count]


def request_for(item: Item, backbone: str = "qwen-2.5-14B", style: str = "direct", **fields: Any) -> dict[str, Any]:
    prompt = question_prompt("", benchmark(item.benchmark).output_rules, item)
    return {**asked(prompt, backbone, style=style), "temperature": 0.0, "seed": 0, **fields}


def asked(messages: Sequence[Message], backbone: str = "qwen-2.5-14B", **turn: str) -> dict[str, Any]:
    shown = [message._asdict() for message in messages]
    return {"model": MODELS[backbone].model, "messages": shown, "max_tokens": 4096, "metadata": turn}
