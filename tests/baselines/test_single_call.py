"""Single LLM, CoT and Complex-CoT: one call each, to the letter."""

import pytest

from baselines import cot
from harness.benchmarks.items import Item
from harness.llm.request import Message, Turn
from harness.runner.method import build
from tests import scripted
from tests.fixtures import RULES
from tests.scripted import ScriptedClient, setting

ITEM = Item(id="1", benchmark="gsm_hard", question="How many eggs?", gold="3.0")


@pytest.mark.parametrize(
    ("module", "config", "opening"),
    [
        ("baselines.single", {}, ""),
        ("baselines.cot", {"style": "step_by_step"}, cot.INSTRUCTIONS["step_by_step"] + "\n\n"),
        ("baselines.cot", {"style": "complex"}, cot.INSTRUCTIONS["complex"] + "\n\n"),
    ],
)
@pytest.mark.parametrize("reply", ["The answer is 3", ""])
async def test_one_call_at_temperature_zero_static_first(
    module: str, config: dict[str, str], opening: str, reply: str
) -> None:
    client = ScriptedClient(reply)
    context = scripted.context(ITEM, client, RULES)
    trajectory = context.close(await build(module, setting(), config).solve(ITEM, context))
    assert trajectory.answer == reply
    [(backbone, request)] = client.asked
    assert backbone == "small"
    assert request.messages == (Message("user", f"{opening}{RULES}\n\nQuestion:\nHow many eggs?"),)
    assert (request.temperature, request.max_tokens, request.draw) == (0.0, 2048, 0)
    assert request.metadata == Turn(style=config.get("style", "direct"))
    [call] = trajectory.calls
    assert (trajectory.depth, call.purpose, call.is_step) == (1, "solve", True)
