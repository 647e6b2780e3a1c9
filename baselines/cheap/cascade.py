"""Cascade: asks models, or roles of one model, until a reply is accepted (after FrugalGPT, Chen et al. 2023; D-BASE-4).

A reply is accepted if its program passes the tests that the question shows. There is no trained judge.
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import PositiveFloat

from gmr.rollout import aggregate
from harness.agents.activation import act
from harness.agents.prompts import Record, question_prompt
from harness.agents.roles import Role, by_key
from harness.concurrency import gather
from harness.errors import check_names
from harness.files import Declaration, Distinct
from harness.method import CallSpec, Context, Decision, Item
from harness.runner.setting import Setting


class Config(Declaration):
    """Settings of the cascade."""

    order: Literal["cheapest_first", "dearest_first"] = "cheapest_first"  # of models, by price
    # Roles of the row's backbone, in this order, instead of models. Each reply is that of a stored first step of GMR.
    roles: Distinct[str] = ()
    # If a question shows no test: accept a reply if two samples agree (Yue et al. 2024), or accept the first reply.
    without_tests: Literal["samples", "accept"] = "samples"
    temperature: PositiveFloat = 0.7  # of the two samples


class Cascade:
    """Takes one option after another until a reply is accepted. The last one is always accepted."""

    def __init__(self, setting: Setting, config: Config) -> None:
        self._config = config
        check_names("role", config.roles, by_key(), "harness/agents/roles.yaml")
        prices = {key: backbone.price_in + backbone.price_out for key, backbone in setting.pool.items()}
        models = sorted(prices, key=lambda key: prices[key], reverse=config.order == "dearest_first")
        roles = [(setting.one_backbone, by_key()[key]) for key in config.roles]
        self._options: Sequence[tuple[str, Role | None]] = roles or [(key, None) for key in models]

    async def solve(self, item: Item, context: Context) -> str:
        """Return the first accepted reply, at temperature 0 unless two samples must have the same answer."""
        has_tests = item.code is not None and bool(item.code.visible)
        is_sampled = not has_tests and self._config.without_tests == "samples"
        texts = [""]
        for step, (backbone, role) in enumerate(self._options, 1):
            is_last = step == len(self._options)
            slots, temperature = (2, self._config.temperature) if is_sampled and not is_last else (1, 0.0)
            specs = [CallSpec(step, slot=at, temperature=temperature, is_sample=slots > 1) for at in range(slots)]
            texts = await gather(_reply(backbone, role, item, context, spec) for spec in specs)
            if is_last:
                break
            if has_tests:
                is_accepted = bool(await context.code_tools.passes(item, texts[0]))
                context.decide(Decision(step, "test", 0, "passed" if is_accepted else "failed", 2, 0.0))
            else:
                answers = [answer for text in texts if (answer := context.extract(text)) is not None]
                is_accepted = slots == 1 or (len(answers) == 2 and context.same(*answers))
            if is_accepted:
                break
        return texts[0]


async def _reply(backbone: str, role: Role | None, item: Item, context: Context, spec: CallSpec) -> str:
    if role is None:
        return (await context.ask(backbone, question_prompt("", context.rules, item), spec)).text
    text = await act(role, backbone, item, (), context, spec)
    # The list has a backbone for each step so far, which gives the final call its place in the trajectory.
    return await aggregate(item, [Record(role.name, text)], [backbone] * spec.step, context)


build = Cascade
