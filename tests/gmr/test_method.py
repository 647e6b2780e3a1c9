"""Training and test as a whole: budget, learning, resumption, variants."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import gmr.method
from gmr.config import Config, Pool
from gmr.method import GMR
from gmr.router import Router
from harness.agents import results
from harness.benchmarks.items import Item
from harness.errors import UserError
from harness.llm.request import Reply, Request
from harness.runner.config import methods
from harness.runner.evaluation import evaluate
from harness.runner.progress import Progress
from harness.training.loop import CHECKPOINT, checkpoint
from tests.gmr.world import (
    ITEMS,
    LARGE,
    POOL,
    Answering,
    Client,
    Plan,
    Scripted,
    content,
    embedding,
    method,
    right_if,
    runtime,
    training,
)
from tests.scripted import setting

ONCE = {"default": 1}
TINY: Mapping[str, Any] = {"epochs": {"default": 2}, "batch": 2, "group": 2, "max_depth": 3}


def some(number: int) -> tuple[Item, ...]:
    return tuple(Item(id=f"t{at}", benchmark="toy", question=f"Task {at}?", gold="right") for at in range(number))


async def fitted(folder: Path, client: Any, seed: int = 0, questions: int = 4, **changes: Any) -> GMR:
    made = method(seed, **{**TINY, **changes})
    its = training(folder, client, some(questions), seed)
    await made.fit(its)
    its.finish()
    return made


async def ask_test_questions(folder: Path, made: GMR, client: Any) -> None:
    answered = await evaluate(made, ITEMS[4:], runtime(client), Progress("toy", 4), in_flight=3)
    results.write(folder, answered, {"cell": "toy"})


def decisions(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / "training_decisions.parquet").to_pylist()
    return rows


def share(made: GMR, backbone: int) -> float:
    """Mean probability of a backbone over questions and roles, before the first step."""
    states = [made.policy.begin(embedding(item.question)) for item in ITEMS]
    return float(np.mean([made.policy.backbones(state, role)[backbone] for state in states for role in range(4)]))


# Budget


async def test_the_published_budget_of_humaneval_to_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """32 questions x 10 epochs x 6 rollouts x 6 steps = 11,520 steps in 20 updates of 96 trajectories (D-GMR-10)."""
    updates = []

    def no_learning(learning: Any, answered: Any, traces: Any, config: Config, noise: tuple[int, int]) -> Any:
        updates.append((len(traces), sum(len(trace.steps) for trace in traces), noise))
        return {}

    monkeypatch.setattr(gmr.method, "learn", no_learning)
    monkeypatch.setattr(Router, "snapshot", lambda self: Scripted(*[Plan(0, 0, None, None, None)] * 6))
    made = method(epochs={"default": 10}, halting=False)
    its = training(tmp_path, client := Client(), some(32))
    await made.fit(its)
    its.finish()
    assert [(size, number) for size, _, (_, number) in updates] == [(96, number) for number in range(1, 21)]
    assert sum(steps for _, steps, _ in updates) == 32 * 10 * 6 * 6 == 11_520
    calls = pq.read_table(tmp_path / "training_calls.parquet")
    assert sum(calls.column("is_step").to_pylist()) == 11_520
    assert len(client.asked) == len(calls) == 11_520 + 1_920
    log = pq.read_table(tmp_path / "training.parquet").to_pylist()
    assert {row["value"] for row in log if row["measure"] == "depth"} == {6.0}
    assert [row["value"] for row in log if row["measure"] == "trajectories"] == [96.0] * 20


async def test_a_last_batch_that_is_not_full_is_used_and_every_epoch_has_its_own_order(tmp_path: Path) -> None:
    its = training(tmp_path, Client(), some(5))
    made = method(**TINY, llm_router=False)
    await made.fit(its)
    its.finish()
    log = pq.read_table(tmp_path / "training.parquet").to_pylist()
    sizes = [(row["epoch"], row["update"], row["value"]) for row in log if row["measure"] == "trajectories"]
    assert sizes == [(1, 1, 4.0), (1, 2, 4.0), (1, 3, 2.0), (2, 4, 4.0), (2, 5, 4.0), (2, 6, 2.0)]
    calls = pq.read_table(tmp_path / "training_calls.parquet").to_pylist()
    orders = [list(dict.fromkeys(row["item_id"] for row in calls if row["epoch"] == epoch)) for epoch in (1, 2)]
    assert sorted(orders[0]) == sorted(orders[1]) == [item.id for item in some(5)]
    assert orders[0] != orders[1]
    assert {row["rollout"] for row in calls} == {0, 1}


@pytest.mark.parametrize(("max_epochs", "trained"), [(0, 0), (1, 1), (9, 2)])
async def test_a_run_may_shorten_the_training(tmp_path: Path, max_epochs: int, trained: int) -> None:
    made, its = method(max_epochs=max_epochs, **TINY), training(tmp_path, Client(), some(4))
    await made.fit(its)
    its.finish()
    assert checkpoint.load(tmp_path / CHECKPOINT).facts["epoch"] == trained
    epochs = set(pq.read_table(tmp_path / "training_calls.parquet")["epoch"].to_pylist())
    assert epochs == set(range(1, trained + 1))
    assert await made.solve(ITEMS[4], runtime(Client()).context(ITEMS[4]))


# Learning


@pytest.mark.parametrize("seed", range(3))
async def test_a_backbone_that_is_always_wrong_and_dearer_is_given_up(tmp_path: Path, seed: int) -> None:
    client = Client(right_if("small"), tokens=(1000, 300))
    made = await fitted(tmp_path, client, seed, questions=16, epochs=ONCE, batch=4, group=6)
    untrained = method(seed, **TINY)
    untrained.load(checkpoint.load(tmp_path / "checkpoints" / "epoch-00.safetensors"))
    assert share(untrained, LARGE) > 0.3
    assert share(made, LARGE) < 0.1
    answered = await evaluate(made, ITEMS, runtime(client, seed), Progress("toy", len(ITEMS)), in_flight=4)
    assert sum(one.verdict.correct for one in answered) >= len(ITEMS) - 1


@pytest.mark.parametrize("first", [1, 5])
async def test_a_choice_that_collapses_is_said_once_however_late(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    def learned(*given: Any) -> dict[str, float]:
        (_, update) = given[-1]
        return {"entropy_backbone": 1.0 if update < first else 0.05}

    monkeypatch.setattr("gmr.method.learn", learned)
    await fitted(tmp_path, Client(right_if("small")), questions=20, epochs=ONCE, group=4, batch=4)
    said = [record.getMessage() for record in caplog.records if "entropy of the backbone choice" in record.getMessage()]
    assert [f"0.050 nats after {first} of 5 updates" in one for one in said] == [True]


# Resumption


class Failing(Client):
    """Breaks down at one call, once."""

    def __init__(self, answering: Answering, at: int) -> None:
        super().__init__(answering, late=lambda number: number % 3)
        self.at = at

    async def complete(self, backbone: str, request: Request) -> Reply:
        if len(self.asked) == self.at:
            self.at = -1
            raise UserError("the endpoint is gone")
        return await super().complete(backbone, request)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], list[int]]:
    """What an undisturbed run leaves behind, and how many calls each of its epochs made."""
    folder, client = tmp_path_factory.mktemp("undisturbed"), Client(right_if("small"))

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
    at = {"in the first epoch": first // 2, "after an epoch": first, "in mid-epoch": first + 3 * second // 4}[when]
    client = Failing(right_if("small"), at)
    with pytest.raises(UserError, match="the endpoint is gone"):
        await fitted(tmp_path, client)
    assert (tmp_path / "checkpoints" / "epoch-01.safetensors").exists() == (when != "in the first epoch")
    assert not (tmp_path / CHECKPOINT).exists()
    before = len(client.asked)
    made = await fitted(tmp_path, client)
    asked = len(client.asked) - before
    assert asked == (first + second if when == "in the first epoch" else second)
    await ask_test_questions(tmp_path, made, client)
    assert content(tmp_path) == whole


async def test_a_finished_training_is_not_done_again(
    tmp_path: Path, undisturbed: tuple[dict[str, bytes], list[int]]
) -> None:
    await fitted(tmp_path, Client(right_if("small")))
    client = Client(right_if("small"))
    made = await fitted(tmp_path, client)
    assert client.asked == []
    await ask_test_questions(tmp_path, made, client)
    assert content(tmp_path) == undisturbed[0]


async def test_latency_does_not_show(tmp_path: Path, undisturbed: tuple[dict[str, bytes], list[int]]) -> None:
    client = Client(right_if("small"), late=lambda number: 5 * number % 7)
    made = await fitted(tmp_path, client)
    await ask_test_questions(tmp_path, made, client)
    assert content(tmp_path) == undisturbed[0]


async def test_another_seed_is_another_training(tmp_path: Path) -> None:
    for seed in (0, 1):
        await fitted(tmp_path / str(seed), Client(), seed, epochs=ONCE)
    first, second = (content(tmp_path / name) for name in ("0", "1"))
    assert first[CHECKPOINT] != second[CHECKPOINT]
    assert first["training_decisions.parquet"] != second["training_decisions.parquet"]


# A trained router elsewhere


async def test_a_loaded_router_answers_as_the_trained_one(tmp_path: Path) -> None:
    client = Client(right_if("small"))
    made = await fitted(tmp_path, client)
    loaded = method(**TINY)
    loaded.load(checkpoint.load(tmp_path / CHECKPOINT))
    for name, one in (("a", made), ("b", loaded)):
        await ask_test_questions(tmp_path / name, one, client)
    assert content(tmp_path / "a") == content(tmp_path / "b")


async def test_a_router_without_weights_does_not_answer() -> None:
    with pytest.raises(RuntimeError, match="call fit or load first"):
        await method().solve(ITEMS[0], runtime(Client()).context(ITEMS[0]))


async def test_a_router_does_not_fit_another_pool(tmp_path: Path) -> None:
    await fitted(tmp_path, Client(), epochs={"default": 0})
    other = method(**TINY)
    other.pool = Pool(POOL.roles, POOL.backbones[:1])
    with pytest.raises(UserError, match="trained with 2 backbones and is given 1"):
        other.load(checkpoint.load(tmp_path / CHECKPOINT))


# Variants


async def test_the_greedy_switch_rules_the_test_and_not_the_training(tmp_path: Path) -> None:
    ways = ("sample", "greedy")
    made = {way: await fitted(tmp_path / way, Client(), epochs=ONCE, decode=way) for way in ways}
    sampled, greedy = (content(tmp_path / way) for way in ways)
    assert sampled["training_decisions.parquet"] == greedy["training_decisions.parquet"]
    context = runtime(Client()).context(ITEMS[0])
    trajectory = context.close(await made["greedy"].solve(ITEMS[0], context))
    policy = made["greedy"].policy
    state = policy.begin(np.asarray(await context.embed(ITEMS[0].question)))
    role = next(decision.choice for decision in trajectory.decisions if decision.name == "role")
    assert role == POOL.roles[int(policy.roles(state).argmax())].key


async def test_full_history_and_no_memory_gates_are_one_method(tmp_path: Path) -> None:
    found = []
    for key in ("full_history", "gmr_no_memory_gates"):
        entry = methods()[key]
        made = GMR(setting("pool", benchmark="toy"), Config(**{**entry.config, **TINY, "epochs": ONCE}))
        made.pool = POOL
        its, client = training(tmp_path / key, Client(right_if("small"))), Client(right_if("small"))
        await made.fit(its)
        its.finish()
        await ask_test_questions(tmp_path / key, made, client)
        found.append(content(tmp_path / key))
    assert found[0] == found[1]
    names = {row["name"] for row in decisions(tmp_path / "full_history")}
    assert names == {"role", "backbone", "halt"}


async def test_a_dearer_weight_of_cost_makes_shorter_trajectories(tmp_path: Path) -> None:
    depth = {}
    for weight in (0.0, 500.0):
        folder, client = tmp_path / str(weight), Client(lambda backbone, request: "right", tokens=(10_000, 1_000))
        more = {"epochs": ONCE, "group": 4, "max_depth": 4, "lambda_c": weight}
        await fitted(folder, client, questions=16, **more)
        log = pq.read_table(folder / "training.parquet").to_pylist()
        depth[weight] = [row["value"] for row in log if row["measure"] == "depth"]
    assert depth[500.0][0] == depth[0.0][0]
    assert depth[500.0][-1] < depth[0.0][-1] - 0.5
