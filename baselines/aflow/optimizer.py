"""Prompt of the optimizer (``optimizer_system.j2``, ``optimizer_user.j2``; D-AF-3)."""

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
    """Input of a proposal: the parent round, the rounds that edited it, and questions it failed."""

    parent: Round
    children: Sequence[Round]
    failures: Sequence[tuple[Item, Failure]]


def optimizer_prompt(
    situation: Situation, schema: Mapping[str, Any], domain: str, rules: str, refused: Sequence[str]
) -> tuple[Message, ...]:
    """Build the optimizer's prompt, with the reasons why earlier proposals for the parent were refused."""
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
    """Cut the middle of a long text, since answers are mostly at the end."""
    text = text.strip()
    if len(text) <= length:
        return text
    return f"{text[: length // 3]} [...] {text[-(length - length // 3) :]}"


def response_format_of(schema: Mapping[str, Any]) -> str:
    """Build OpenAI's response_format for a schema, as JSON text."""
    proposal = {"name": "proposal", "strict": True, "schema": schema}
    return orjson.dumps({"type": "json_schema", "json_schema": proposal}).decode()
