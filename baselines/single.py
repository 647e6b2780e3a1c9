"""Single LLM: one call with the question and the output rules; reasoning is not forbidden."""

from __future__ import annotations

from dataclasses import dataclass

from harness.agents.prompts import question_prompt
from harness.agents.trajectory import Context
from harness.benchmarks.items import Item
from harness.files import Declaration
from harness.runner.method import Setting


class Config(Declaration):
    """Settings of Single LLM: none."""


@dataclass(frozen=True)
class SingleLLM:
    """One backbone, one call."""

    backbone: str

    async def solve(self, item: Item, context: Context) -> str:
        """Return the reply to the bare question."""
        return (await context.ask(self.backbone, question_prompt("", context.rules, item))).text


def build(setting: Setting, config: Config) -> SingleLLM:
    """Return the method for one backbone."""
    return SingleLLM(setting.one_backbone)
