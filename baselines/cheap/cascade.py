"""Cascade from the cheapest to the most expensive backbone (after FrugalGPT, Chen et al. 2023; D-BASE-4).

A reply is accepted if two samples of the backbone agree (Yue et al. 2024). There is no trained judge.
"""

from pydantic import PositiveFloat

from harness.agents.prompts import question_prompt
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.files import Declaration
from harness.method import CallSpec, Context
from harness.runner.setting import Setting


class Config(Declaration):
    """Settings of the cascade."""

    temperature: PositiveFloat = 0.7  # of the two samples that must agree


class Cascade:
    """Asks backbones in order of price until a reply is accepted. The last one is always accepted."""

    def __init__(self, setting: Setting, config: Config) -> None:
        self._order = sorted(setting.pool, key=lambda key: setting.pool[key].price_in + setting.pool[key].price_out)
        self._temperature = config.temperature

    async def solve(self, item: Item, context: Context) -> str:
        """Return the first accepted reply.

        With visible examples, a reply at temperature 0 is accepted if its program passes all of them. Otherwise two
        samples must have the same answer. The last backbone is asked once, at temperature 0.
        """
        has_examples = item.code is not None and bool(item.code.visible)
        prompt, text = question_prompt("", context.rules, item), ""
        for step, backbone in enumerate(self._order, 1):
            is_last = step == len(self._order)
            slots, temperature = (1, 0.0) if is_last or has_examples else (2, self._temperature)
            replies = await gather(
                context.ask(backbone, prompt, CallSpec(step, slot=slot, temperature=temperature, is_sample=slots > 1))
                for slot in range(slots)
            )
            text = replies[0].text
            answers = [context.extract(reply.text) for reply in replies]
            first, last = answers[0], answers[-1]
            has_agreed = first is not None and last is not None and context.same(first, last)
            if is_last or (await context.code_tools.passes(item, text) if has_examples else has_agreed):
                break
        return text


build = Cascade
