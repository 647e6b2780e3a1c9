"""Self-consistency (Wang et al. 2023) of the best single backbone, at the cost of another method (D-BASE-2)."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from pydantic import PositiveFloat

from harness.agents.prompts import question_prompt
from harness.agents.trajectory import Answered, Context
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.files import Declaration
from harness.runner.method import Setting
from harness.training.survey import Survey


class Config(Declaration):
    """Settings of self-consistency."""

    temperature: PositiveFloat = 0.7  # of every sample


class SelfConsistency(Survey):
    """Samples of the backbone that did best on the training questions, and a vote among their answers."""

    def __init__(self, setting: Setting, config: Config) -> None:
        super().__init__(setting)
        self._target, self._temperature = setting.target.cost, config.temperature

    def utility(self, answered: Answered) -> float:
        """Return 1 for a right answer and 0 for a wrong one, whatever it costs."""
        return float(answered.verdict.correct)

    def choose(self) -> tuple[str, float]:
        """Return the backbone that is right most often, of equals the cheapest, and its samples of a question.

        They are the cost to be met over the mean cost of a training question, at least one; one before training.
        """
        if not len(self.correct):
            return self.pool[0], 1.0
        accuracy, costs = self.correct.mean(axis=0), self.costs.mean(axis=0)
        best = int(np.lexsort((costs, -accuracy))[0])
        return self.pool[best], max(1.0, self._target / costs[best]) if costs[best] else 1.0

    async def solve(self, item: Item, context: Context) -> str:
        """Return the reply that wins the vote; the number of samples is drawn between the two nearest whole ones."""
        backbone, samples = self.choose()
        count = math.floor(samples) + context.bernoulli(1, "one sample more", samples % 1)
        prompt = question_prompt("", context.rules, item)
        asked = (context.ask(backbone, prompt, slot=slot, temperature=self._temperature) for slot in range(count))
        return await vote([reply.text for reply in await gather(asked)], item, context)


async def vote(texts: list[str], item: Item, context: Context) -> str:
    """Return the first reply with the most frequent answer, of programs among those that pass the visible examples."""
    if item.code is not None:
        texts = [text for text in texts if await context.code_tools.passes(item, text)] or texts
    answers = [context.extract(text) for text in texts]
    counts = Counter(answer for answer in answers if answer is not None)
    return texts[answers.index(counts.most_common(1)[0][0])] if counts else texts[0]


build = SelfConsistency
