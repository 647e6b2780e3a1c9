import pytest

from baselines import cot, single
from harness.agents.trajectory import Context
from harness.benchmarks.items import Item
from harness.errors import UserError
from harness.llm.request import Message
from harness.runner.method import build
from tests import scripted
from tests.scripted import ScriptedClient, setting

ITEM = Item(id="1", benchmark="gsm_hard", question="How many eggs?", gold="3.0")
RULES = "End with a line that says: The answer is <number>."


def context(client: ScriptedClient) -> Context:
    return scripted.context(ITEM, client, RULES)


@pytest.mark.parametrize(
    ("module", "config", "opening"),
    [
        ("baselines.single", {}, ""),
        ("baselines.cot", {"style": "step_by_step"}, cot.INSTRUCTIONS["step_by_step"] + "\n\n"),
        ("baselines.cot", {"style": "complex"}, cot.INSTRUCTIONS["complex"] + "\n\n"),
    ],
)
async def test_one_call_at_temperature_zero_static_first(module: str, config: dict[str, str], opening: str) -> None:
    client = ScriptedClient("The answer is 3")
    its_context = context(client)
    answer = await build(module, setting(), config).solve(ITEM, its_context)
    trajectory = its_context.close(answer)
    assert answer == "The answer is 3"
    [(backbone, request)] = client.asked
    assert backbone == "small"
    assert request.messages == (Message("user", f"{opening}{RULES}\n\nQuestion:\nHow many eggs?"),)
    assert (request.temperature, request.max_tokens, request.draw) == (0.0, 2048, 0)
    assert request.metadata == {
        "kind": "solve",
        "style": config.get("style", "direct"),
        "form": "answer",
        "role": "",
        "instruction": "",
    }
    [call] = trajectory.calls
    assert (trajectory.depth, call.purpose, call.is_step) == (1, "solve", True)


async def test_an_empty_reply_is_passed_on() -> None:
    its_context = context(ScriptedClient(""))
    assert await single.build(setting(), single.Config()).solve(ITEM, its_context) == ""
    assert len(its_context.close("").calls) == 1


def test_an_unknown_style_or_field_or_module_is_one_line() -> None:
    with pytest.raises(UserError, match="style: 'few_shot' should be 'step_by_step' or 'complex'"):
        build("baselines.cot", setting(), {"style": "few_shot"})
    with pytest.raises(UserError, match="unknown key 'stile'; did you mean 'style'"):
        build("baselines.cot", setting(), {"stile": "complex"})
    with pytest.raises(UserError, match=r"names the module 'baselines\.nothing'"):
        build("baselines.nothing", setting(), {})
