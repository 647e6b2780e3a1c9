"""Self-consistency (Wang et al. 2023) of the best single backbone, matched to another method's cost (D-BASE-2)."""

import math

from pydantic import PositiveFloat

from harness.agents.prompts import question_prompt
from harness.files import Declaration
from harness.method import CallSpec, Context, Item
from harness.runner.setting import Setting
from harness.training.loop import OptionScores


class Config(Declaration):
    """Settings of self-consistency."""

    temperature: PositiveFloat = 0.7


class SelfConsistency(OptionScores):
    """Majority vote over samples of the backbone with the best training accuracy."""

    def __init__(self, setting: Setting, config: Config) -> None:
        super().__init__(setting.pool, setting.max_epochs)
        self._backbones, self._target, self._temperature = setting.pool, setting.target.cost, config.temperature

    async def solve(self, item: Item, context: Context) -> str:
        """Sample until the target cost is spent (at least once), then vote.

        A sample that would exceed the target is drawn with the probability that makes the mean cost equal the target.
        A call without cost ends the sampling.
        """
        prompt, texts, spent = question_prompt("", context.rules, item), list[str](), 0.0
        spared = context.uniform(1, "spared part of a sample")
        while not texts or spent * (1 + spared / len(texts)) < self._target:
            spec = CallSpec(slot=len(texts), temperature=self._temperature, is_sample=True)
            reply = await context.ask(self.best, prompt, spec)
            texts.append(reply.text)
            cost = self._backbones[self.best].cost(reply.prompt_tokens, reply.completion_tokens)
            spent = spent + cost if cost else math.inf
        return await vote(texts, item, context)


async def vote(texts: list[str], item: Item, context: Context) -> str:
    """Return the first reply with the majority answer. Programs that fail a visible example do not vote."""
    if item.code is not None:
        texts = [text for text in texts if await context.code_tools.passes(item, text)] or texts
    replies = [(text, answer) for text in texts if (answer := context.extract(text)) is not None]
    votes = [sum(context.same(answer, other) for _, other in replies) for _, answer in replies]
    return replies[votes.index(max(votes))][0] if replies else texts[0]


build = SelfConsistency
