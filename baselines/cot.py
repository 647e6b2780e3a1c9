"""CoT (Wei et al. 2022) and Complex-CoT (Fu et al. 2023), zero-shot and without voting (D-BASE-1)."""

from typing import Literal

from harness.agents.prompts import question_prompt
from harness.files import Declaration
from harness.method import CallSpec, Context, Item
from harness.runner.setting import Setting

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


class ChainOfThought:
    """One backbone, one call, one instruction to reason."""

    def __init__(self, setting: Setting, config: Config) -> None:
        self._backbone, self._style = setting.one_backbone, config.style

    async def solve(self, item: Item, context: Context) -> str:
        prompt = question_prompt(INSTRUCTIONS[self._style], context.rules, item)
        return (await context.ask(self._backbone, prompt, CallSpec(purpose=self._style))).text


build = ChainOfThought
