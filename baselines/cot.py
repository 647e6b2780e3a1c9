"""CoT (Wei et al. 2022) and Complex-CoT (Fu et al. 2023), zero-shot and without voting (D-BASE-1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.agents.prompts import question_prompt
from harness.agents.trajectory import Context
from harness.benchmarks.items import Item
from harness.files import Declaration
from harness.llm.request import Turn
from harness.runner.method import Setting

Cue = Literal["step_by_step", "complex"]

INSTRUCTIONS: dict[Cue, str] = {
    "step_by_step": "Work through the question step by step before you answer.",
    "complex": (
        "Split the problem into as many small explicit sub-steps as it allows. Derive the result of every sub-step in "
        "full, cross-check it against the sub-steps before it, and answer only when all of them agree."
    ),
}


class Config(Declaration):
    """Settings: ``step_by_step`` for CoT, ``complex`` for Complex-CoT."""

    style: Cue


@dataclass(frozen=True)
class ChainOfThought:
    """One backbone, one call, one instruction to reason."""

    backbone: str
    style: Cue

    async def solve(self, item: Item, context: Context) -> str:
        """Return the reply to the instruction, the rules and the question."""
        prompt = question_prompt(INSTRUCTIONS[self.style], context.rules, item)
        return (await context.ask(self.backbone, prompt, Turn(style=self.style))).text


def build(setting: Setting, config: Config) -> ChainOfThought:
    """Return the method for one backbone."""
    return ChainOfThought(setting.one_backbone, config.style)
