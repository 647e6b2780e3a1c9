"""Settings, training and test as a whole. Resumption stands in tests/test_learners.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from baselines.puppeteer.agents import KEYS
from baselines.puppeteer.method import Puppeteer
from baselines.puppeteer.policy import Config, state_of
from harness.errors import UserError
from harness.llm.request import Request
from harness.runner.config import methods
from harness.runner.method import settings_of
from harness.training.checkpoint import Checkpoint
from harness.training.loop import CHECKPOINT, checkpoint
from tests.baselines.puppeteer.fixtures import NoPrograms, method
from tests.fixtures import ITEMS, Client, embedding, log, questions, trained
from tests.scripted import setting


def test_the_released_values_are_the_defaults_and_a_wrong_one_is_one_line() -> None:
    made = Config(**methods()["puppeteer"].config)
    assert (made.batch, made.max_steps, made.lr, made.gamma) == (16, 6, 1e-4, 0.99)
    assert (made.entropy_weight, made.step_weight, made.update) == (1.0, 1.0, "batched")
    assert [setting(benchmark=key).epochs(made.epochs) for key in ("math", "gsm_hard", "mbpp")] == [5, 5, 10]
    with pytest.raises(UserError, match="update: 'rarely' should be") as caught:
        settings_of("baselines.puppeteer", {"epochs": {"default": 1}, "update": "rarely"})
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="the row 'pool' is no backbone"):
        Puppeteer(setting("pool"), made)


async def fitted(folder: Path, client: Client, number: int = 4, **changes: Any) -> Puppeteer:
    return await trained(method(**changes), folder, client, questions(number, "t"), code_tools=NoPrograms())


async def test_one_update_a_question_is_made_strictly_in_order(tmp_path: Path) -> None:
    client = Client(late=lambda number: number % 4)
    await fitted(tmp_path, client, update="per_question", max_steps=2)
    assert log(tmp_path, "trajectories") == [1.0] * 4
    asked = [request.messages[1].content.splitlines()[1] for request in client.requests]
    # The calls of a question are over before the next one begins.
    order = list(dict.fromkeys(asked))
    assert len(order) == 4
    assert asked == [text for text in order for _ in range(asked.count(text))]


async def test_a_policy_over_other_actions_is_refused(tmp_path: Path) -> None:
    await fitted(tmp_path, Client(), epochs={"default": 0})
    found = checkpoint.load(tmp_path / CHECKPOINT)
    reworded = [[key, f"{profile}!"] for key, profile in found.facts["actions"]]
    for actions, message in ((found.facts["actions"][1:], "'reasoning' where"), (reworded, "profile of 'planning'")):
        with pytest.raises(UserError, match=message):
            method().load(Checkpoint(found.tensors, {**found.facts, "actions": actions}))


async def test_the_agent_that_brings_right_answers_is_preferred(tmp_path: Path) -> None:
    def answering(backbone: str, request: Request) -> str:
        final = "Candidate answers" in request.messages[-1].content
        concluded = "Concluder" in request.messages[-1].content
        return f"{request.key[:6]}. The answer is {'right' if final and concluded else 'wrong'}"

    more: dict[str, Any] = {"epochs": {"default": 9}, "batch": 8, "lr": 2e-3, "entropy_weight": 0.1, "max_steps": 2}
    made = await fitted(tmp_path, Client(answering), number=24, **more)
    untrained = method()
    untrained.load(checkpoint.load(tmp_path / "checkpoints" / "epoch-00.safetensors"))
    conclude = KEYS.index("conclude")
    share = [
        np.mean([np.exp(one.policy.log_probs(state_of(embedding(item.question), [])))[conclude] for item in ITEMS])
        for one in (untrained, made)
    ]
    assert share[1] > 2 * share[0]
    utilities = log(tmp_path, "utility")
    assert np.mean(utilities[-3:]) > np.mean(utilities[:3])
