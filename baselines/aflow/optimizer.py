"""Prompt of the optimizer, in ``optimizer_system.j2`` and ``optimizer_user.j2`` (D-AF-3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from jinja2 import StrictUndefined, Template

from baselines.aflow.search import Failure, Round
from baselines.aflow.workflow import MOST_NODES, MOST_REPEATS, offered
from harness.benchmarks.items import Item
from harness.llm.request import Message


class Situation(NamedTuple):
    """Start of a proposal: a scored round, the rounds that tried an edit of it, questions it got wrong."""

    parent: Round
    children: Sequence[Round]
    failures: Sequence[tuple[Item, Failure]]


def optimizer_prompt(
    situation: Situation, schema: Mapping[str, Any], domain: str, rules: str, refused: Sequence[str]
) -> tuple[Message, ...]:
    """Return the prompt of a proposal that fits a schema, with the reasons why earlier ones were refused (D-AF-3)."""
    system = _template("system").render(
        domain=domain,
        operators=offered(domain).values(),
        most_nodes=MOST_NODES,
        most_repeats=MOST_REPEATS,
        rules=rules,
    )
    user = _template("user").render(
        situation._asdict(),
        workflow=situation.parent.tried.model_dump_json(by_alias=True, indent=2),
        schema=orjson.dumps(schema).decode(),
        refused=refused,
        clipped=clipped,
    )
    return (Message("system", system), Message("user", user))


def _template(role: str) -> Template:
    source = Path(__file__).with_name(f"optimizer_{role}.j2").read_text(encoding="utf-8")
    return Template(source, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)


def clipped(text: str, length: int) -> str:
    """Return a text without its middle if it is too long; answers mostly stand at the end."""
    text = text.strip()
    if len(text) <= length:
        return text
    return f"{text[: length // 3]} [...] {text[-(length - length // 3) :]}"


def response_format_of(schema: Mapping[str, Any]) -> str:
    """Return the response format that asks a server for a proposal that fits a schema."""
    proposal = {"name": "proposal", "strict": True, "schema": schema}
    return orjson.dumps({"type": "json_schema", "json_schema": proposal}).decode()
