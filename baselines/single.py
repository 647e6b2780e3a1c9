"""Single LLM: the question and the output rules, one call.

Reasoning is not forbidden: the lengths implied by the published costs show that the models explained themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.items import Item
from harness.method import Setting
from harness.prompts import question_prompt
from harness.trajectory import Desk


@dataclass(frozen=True)
class Config:
    """Single LLM has nothing to set."""


@dataclass(frozen=True)
class SingleLLM:
    """One backbone, one call."""

    backbone: str

    async def solve(self, item: Item, desk: Desk) -> str:
        """The reply to the bare question."""
        return (await desk.ask(self.backbone, question_prompt("", desk.rules, item))).text


def build(setting: Setting, config: Config) -> SingleLLM:
    """The method for one backbone."""
    return SingleLLM(setting.one_backbone)
