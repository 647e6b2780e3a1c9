"""Training and test as a whole: budget, freezing, learning, resumption."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import baselines.puppeteer.method
from baselines.puppeteer.agents import KEYS, to_facts
from baselines.puppeteer.method import Puppeteer
from baselines.puppeteer.policy import state_of
from harness.agents import results
from harness.benchmarks.items import Item
from harness.errors import UserError
from harness.llm.request import Reply, Request
from harness.runner.evaluation import evaluate
from harness.runner.progress import Progress
from harness.training.checkpoint import Checkpoint
from harness.training.loop import CHECKPOINT, checkpoint
from tests.baselines.puppeteer.world import ITEMS, Client, NoPrograms, content, embedding, method, runtime, training

SMALL: dict[str, Any] = {"epochs": {"default": 2}, "batch": 2, "lr": 1e-3}


def some(number: int) -> tuple[Item, ...]:
    return tuple(Item(f"t{at}", "toy", f"Task {at}?", "right") for at in range(number))


def says(request: Request, number: int) -> str:
    """A reply that follows from the request alone, so that neither order nor resumption shows in it."""
    return f"{request.key[:6]}. The answer is {'right' if int(request.key, 16) % 3 else 'wrong'}"


async def fitted(folder: Path, client: Any, seed: int = 0, questions: int = 4, **changes: Any) -> Puppeteer:
    made = method(seed, **{**SMALL, **changes})
    its = training(folder, client, some(questions), seed)
    await made.fit(its)
    its.finish()
    return made


async def ask_test_questions(folder: Path, made: Puppeteer, client: Any) -> None:
    place = runtime(client, code_tools=NoPrograms())
    answered = await evaluate(made, ITEMS, place, Progress("toy", len(ITEMS)), in_flight=3)
    results.write(folder, answered, {"cell": "toy"}, made.utility)


def log(folder: Path, measure: str) -> list[float]:
    rows = pq.read_table(folder / "training.parquet").to_pylist()
    return [row["value"] for row in rows if row["measure"] == measure]


# Budget and updates


async def test_a_batch_is_sixteen_questions_and_the_policy_is_frozen_over_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def no_learning(learning: Any, answered: Any, traces: Any, parameters_b: float, config: Any) -> dict[str, float]:
        seen.append((len(answered), len(traces), parameters_b))
        return {}

    monkeypatch.setattr(baselines.puppeteer.method, "learn", no_learning)
    await fitted(tmp_path, Client(says), questions=20, batch=16, max_steps=1)
    assert seen == [(16, 16, 1), (4, 4, 1)] * 2
    rows = pq.read_table(tmp_path / "training_calls.parquet").to_pylist()
    orders = [list(dict.fromkeys(row["item_id"] for row in rows if row["epoch"] == epoch)) for epoch in (1, 2)]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(item.id for item in some(20))
    assert orders[0] != orders[1]


async def test_one_update_a_question_is_made_strictly_in_order(tmp_path: Path) -> None:
    client = Client(says, late=lambda number: number % 4)
    await fitted(tmp_path, client, update="per_question", epochs={"default": 1})
    assert log(tmp_path, "trajectories") == [1.0] * 4
    asked = [
        next(word for word in text.splitlines() if word.startswith("Task"))
        for text in (messages[1].content for messages in client.conversations)
    ]
    # The calls of a question are over before the next one begins.
    assert len(list(dict.fromkeys(asked))) == 4
    assert [text for at, text in enumerate(asked) if at == 0 or asked[at - 1] != text] == list(dict.fromkeys(asked))


@pytest.mark.parametrize(("max_epochs", "trained"), [(0, 0), (1, 1), (9, 2)])
async def test_a_run_may_shorten_the_training(tmp_path: Path, max_epochs: int, trained: int) -> None:
    made, its = method(max_epochs=max_epochs, **SMALL), training(tmp_path, Client(says), some(4))
    await made.fit(its)
    its.finish()
    assert checkpoint.load(tmp_path / CHECKPOINT).facts["epoch"] == trained
    assert set(pq.read_table(tmp_path / "training_calls.parquet")["epoch"].to_pylist()) == set(range(1, trained + 1))


async def test_the_log_has_a_line_for_every_measure_and_action(tmp_path: Path) -> None:
    await fitted(tmp_path, Client(says))
    names = {row["measure"] for row in pq.read_table(tmp_path / "training.parquet").to_pylist()}
    assert {"loss", "entropy", "return", "utility", "depth", "accuracy", "at_step_limit"} <= names
    assert {f"share_{key}" for key in KEYS} <= names
    shares = np.array([log(tmp_path, f"share_{key}") for key in KEYS])
    np.testing.assert_allclose(shares.sum(axis=0), 1)
    decisions = pq.read_table(tmp_path / "training_decisions.parquet").to_pylist()
    assert {row["name"] for row in decisions} == {"action"}
    assert {row["choice"] for row in decisions} <= set(KEYS)


# Test


async def test_the_policy_does_not_learn_at_test(tmp_path: Path) -> None:
    made = await fitted(tmp_path, Client(says))
    state = state_of(embedding("any"), [])
    before = made.policy.log_probs(state)
    await ask_test_questions(tmp_path / "a", made, Client(says))
    await ask_test_questions(tmp_path / "b", made, Client(says))
    assert np.array_equal(made.policy.log_probs(state), before)
    assert content(tmp_path / "a") == content(tmp_path / "b")


async def test_greedy_selection_rules_the_test_and_not_the_training(tmp_path: Path) -> None:
    made = {way: await fitted(tmp_path / way, Client(says), selection=way) for way in ("sample", "greedy")}
    trained = [content(tmp_path / way)["training_decisions.parquet"] for way in made]
    assert trained[0] == trained[1]
    context = runtime(Client(says), code_tools=NoPrograms()).context(ITEMS[0])
    trajectory = context.close(await made["greedy"].solve(ITEMS[0], context))
    log_probs = made["greedy"].policy.log_probs(state_of(embedding(ITEMS[0].question), []), (len(KEYS) - 1,))
    assert trajectory.decisions[0].choice == KEYS[int(log_probs.argmax())]


async def test_what_training_maximises_stands_beside_each_test_question(tmp_path: Path) -> None:
    made = await fitted(tmp_path, Client(says), epochs={"default": 0})
    await ask_test_questions(tmp_path, made, Client(says))
    rows = pq.read_table(tmp_path / "items.parquet").to_pylist()
    for row in rows:
        end = 0.99 ** row["depth"] * (1 if row["correct"] else -1)
        # A backbone of one billion parameters: six steps of some hundred tokens cost next to nothing.
        assert end - 0.01 < row["utility"] < end
    assert len({row["correct"] for row in rows}) == 2


async def test_a_loaded_policy_answers_as_the_trained_one(tmp_path: Path) -> None:
    made = await fitted(tmp_path, Client(says))
    loaded = method(**SMALL)
    loaded.load(checkpoint.load(tmp_path / CHECKPOINT))
    for name, one in (("a", made), ("b", loaded)):
        await ask_test_questions(tmp_path / name, one, Client(says))
    assert content(tmp_path / "a") == content(tmp_path / "b")


async def test_a_policy_without_weights_does_not_answer() -> None:
    with pytest.raises(RuntimeError, match="call fit or load first"):
        await method().solve(ITEMS[0], runtime(Client()).context(ITEMS[0]))


async def test_a_policy_over_other_actions_is_refused(tmp_path: Path) -> None:
    await fitted(tmp_path, Client(says), epochs={"default": 0})
    found = checkpoint.load(tmp_path / CHECKPOINT)
    assert found.facts["actions"] == to_facts()["actions"]
    reworded = [[key, f"{profile}!"] for key, profile in found.facts["actions"]]
    for actions, message in ((found.facts["actions"][1:], "'reasoning' where"), (reworded, "profile of 'planning'")):
        with pytest.raises(UserError, match=message) as caught:
            method().load(Checkpoint(found.tensors, {**found.facts, "actions": actions}))
        assert "\n" not in str(caught.value)


# Learning


@pytest.mark.parametrize("seed", range(2))
async def test_the_agent_that_brings_right_answers_is_preferred(tmp_path: Path, seed: int) -> None:
    def answering(request: Request, number: int) -> str:
        final = "Candidate answers" in request.messages[-1].content
        concluded = "Concluder" in request.messages[-1].content
        return f"{number}. The answer is {'right' if final and concluded else 'wrong'}"

    more: dict[str, Any] = {"epochs": {"default": 9}, "batch": 8, "lr": 2e-3, "entropy_weight": 0.1, "max_steps": 2}
    made = await fitted(tmp_path, Client(answering), seed, questions=24, **more)
    untrained = method(seed)
    untrained.load(checkpoint.load(tmp_path / "checkpoints" / "epoch-00.safetensors"))
    conclude = KEYS.index("conclude")
    share = [
        np.mean([np.exp(one.policy.log_probs(state_of(embedding(item.question), [])))[conclude] for item in ITEMS])
        for one in (untrained, made)
    ]
    assert share[1] > 2 * share[0]
    utilities = log(tmp_path, "utility")
    assert np.mean(utilities[-3:]) > np.mean(utilities[:3])


# Resumption


class Failing(Client):
    """Breaks down at one call, once."""

    def __init__(self, at: int) -> None:
        super().__init__(says, late=lambda number: number % 3)
        self.at = at

    async def complete(self, backbone: str, request: Request) -> Reply:
        if len(self.asked) == self.at:
            self.at = -1
            raise UserError("the endpoint is gone")
        return await super().complete(backbone, request)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], list[int]]:
    """What an undisturbed run leaves behind, and how many calls each of its epochs made."""
    folder, client = tmp_path_factory.mktemp("undisturbed"), Client(says)

    async def run() -> None:
        await ask_test_questions(folder, await fitted(folder, client), client)

    asyncio.run(run())
    epochs = pq.read_table(folder / "training_calls.parquet").column("epoch").to_pylist()
    return content(folder), [epochs.count(epoch) for epoch in (1, 2)]


@pytest.mark.parametrize("when", ["in the first epoch", "after an epoch", "in mid-epoch"])
async def test_an_interrupted_training_ends_in_the_same_bytes(
    tmp_path: Path, undisturbed: tuple[dict[str, bytes], list[int]], when: str
) -> None:
    whole, (first, second) = undisturbed
    client = Failing({"in the first epoch": first // 2, "after an epoch": first}.get(when, first + 3 * second // 4))
    with pytest.raises(UserError, match="the endpoint is gone"):
        await fitted(tmp_path, client)
    assert (tmp_path / "checkpoints" / "epoch-01.safetensors").exists() == (when != "in the first epoch")
    before = len(client.asked)
    made = await fitted(tmp_path, client)
    assert len(client.asked) - before == (first + second if when == "in the first epoch" else second)
    await ask_test_questions(tmp_path, made, client)
    assert content(tmp_path) == whole


async def test_latency_does_not_show(tmp_path: Path, undisturbed: tuple[dict[str, bytes], list[int]]) -> None:
    client = Client(says, late=lambda number: 5 * number % 7)
    await ask_test_questions(tmp_path, await fitted(tmp_path, client), client)
    assert content(tmp_path) == undisturbed[0]


async def test_another_seed_is_another_training(tmp_path: Path) -> None:
    for seed in (0, 1):
        await fitted(tmp_path / str(seed), Client(says), seed, epochs={"default": 1})
    first, second = (content(tmp_path / name) for name in ("0", "1"))
    assert first[CHECKPOINT] != second[CHECKPOINT]
    assert first["training_decisions.parquet"] != second["training_decisions.parquet"]
