"""Single LLM: one call with the question and the output rules. Reasoning is not forbidden."""

from harness.files import Declaration
from harness.method import Context, Item
from harness.runner.setting import Setting


class Config(Declaration):
    """Single LLM has no settings."""


class SingleLLM:
    """One backbone, one call."""

    def __init__(self, setting: Setting, config: Config) -> None:
        self._backbone = setting.one_backbone

    async def solve(self, item: Item, context: Context) -> str:
        return await context.ask_question(self._backbone)


build = SingleLLM
